# check.sh TEXT ARGS: the first error that a plan gives, its place, notes and help, or its kernels
printf '%s\n' "$1" > p.json; shift
presk dump "$ROOT/tests/plan/two_dots.psk" --stage kernel --plan @p.json "$@" 2>&1 |
    grep -E '^(error|warning)|-->| = (note|help)|^kernel' | head -n 5
