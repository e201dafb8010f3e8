#!/bin/sh
# Checks that each stage includes only the stages below it (docs/architecture.md has the table).
status=0
allow() { # stage: the stages it may include
  stage=$1; shift
  for f in src/$stage/*.[ch]; do
    [ -f "$f" ] || continue
    for inc in $(sed -n 's/^#include "\([a-z_]*\)\/.*/\1/p' "$f" | sort -u); do
      case " $stage $* " in *" $inc "*) ;; *) echo "$f includes $inc/"; status=1 ;; esac
    done
  done
}
allow base
allow maths base
allow syntax base
allow core base maths
allow check base syntax core maths
allow ad base core maths
allow realize base core maths
allow kernel base core maths realize
allow native base kernel
allow runtime base core maths realize kernel native
allow cli base syntax check core maths ad realize kernel native runtime tune
grep -ln '#include "kernel/' src/core/*.[ch] && { echo "the reference evaluator's stage includes kernel/"; status=1; }
grep -rln 'llvm-c/' src --include=*.[ch] | grep -v '^src/native/' && { echo "LLVM seen outside src/native"; status=1; }
[ $status = 0 ] && echo "include order: ok"
exit $status
