#!/bin/sh
# Kernels of each entry of tests/plan/entries.txt: without a plan, with the default plan, and with a
# plan that states every default of every nest, in three types. Usage: plan-check.sh PRESK
set -e
presk=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
entries=0
differ=0

# compare TITLE FILE FILE
compare() {
    if ! cmp -s "$2" "$3"; then
        echo "different: $1"
        diff "$2" "$3" | head -n 10 || true
        differ=$((differ + 1))
    fi
}

grep -v '^#' tests/plan/entries.txt > "$work/entries"
while read -r entry; do
    for type in f32 f64 bf16; do
        printf '{ "realization": "%s" }\n' $type > "$work/default.json"
        if [ $type = f32 ]; then cp tests/plan/default.json "$work/default.json"; fi
        # shellcheck disable=SC2086
        {
            "$presk" dump $entry --stage kernel --realize $type > "$work/none"
            "$presk" dump $entry --stage kernel --plan "@$work/default.json" > "$work/default"
            "$presk" dump $entry --stage plan --realize $type > "$work/stated.json"
            "$presk" dump $entry --stage kernel --plan "@$work/stated.json" > "$work/stated"
            "$presk" dump $entry --stage plan --plan "@$work/stated.json" > "$work/again.json"
        }
        compare "$entry in $type, with the default plan" "$work/none" "$work/default"
        compare "$entry in $type, every default stated" "$work/none" "$work/stated"
        compare "$entry in $type, the plan read and written" "$work/stated.json" "$work/again.json"
    done
    # shellcheck disable=SC2086
    {
        "$presk" dump $entry --stage llvm > "$work/none"
        "$presk" dump $entry --stage plan --native > "$work/stated.json"
        "$presk" dump $entry --stage llvm --plan "@$work/stated.json" > "$work/stated"
    }
    compare "$entry, native code" "$work/none" "$work/stated"
    entries=$((entries + 1))
done < "$work/entries"
echo "$entries entries, $differ differences"
[ $differ -eq 0 ] && [ $entries -gt 0 ]
