#!/bin/sh
# Prints a C file that holds each given file as bytes, by name: presk_embedded[] = {path, text, size}.
printf '#include <stddef.h>\n#include "check/embedded.h"\n'
n=0
for f in "$@"; do
  [ -f "$f" ] || continue
  printf 'static const unsigned char file%d[] = {' "$n"
  od -An -v -tx1 "$f" | sed 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g'
  printf '0};\n'
  n=$((n + 1))
done
printf 'const Embedded presk_embedded[] = {\n'
n=0
for f in "$@"; do
  [ -f "$f" ] || continue
  printf '  {"%s", (const char *)file%d, sizeof file%d - 1},\n' "$f" "$n" "$n"
  n=$((n + 1))
done
printf '  {NULL, NULL, 0}};\n'
