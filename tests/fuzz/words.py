#!/usr/bin/env python3
"""Prints a libFuzzer dictionary of the words and marks in a token table (argument: token.def)."""
import re
import sys

row = re.compile(r'^(?:WORD|CONTEXT|MARK)\(\w+, *"((?:\\.|[^"])+)"(?:, *"((?:\\.|[^"])*)")?')
for line in open(sys.argv[1], encoding="utf-8"):
    for text in (row.match(line).groups() if row.match(line) else ()):
        if text:
            print('"%s"' % "".join("\\x%02X" % byte for byte in text.replace("\\\\", "\\").encode()))
