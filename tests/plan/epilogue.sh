# epilogue.sh ENTRY [DECISIONS]: what is said of an epilogue of this entry's product
printf '{ "realization": { "default": "f32"%s }, "layout": { "%s": { "epilogue": true%s } } }\n' \
    "$3" "$1" "$2" > p.json
presk run "$ROOT/tests/plan/refused.psk" --entry "${1%%/*}" --plan @p.json --backend kernel 2>&1 |
    grep -E '^error|launches' 
