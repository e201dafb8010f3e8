"""Runs what the documents show (README.md and docs/*.md), so that they cannot rot.

A fenced block says by its mark what it is:
  psk check [NAME [ARGS]]  a program, written to NAME (program.psk); `presk check NAME ARGS` prints
                           the `text` block that follows, or nothing is wrong with it
  psk file NAME            a file that later blocks use
  console                  commands behind `$ ` with what they print, exit status 0, or 1 where they
                           print an error; a last line `exit: N` is another status
  anything else            not run; a bare `psk` is refused, since nobody would check it
In what is printed `[..]` stands for any text within a line, a line `…` or `...` for any lines.
The blocks of a document run in order in one scratch folder, in which examples/, corpus/, std/ and
tests/ are the repository's. In docs/errors.md every code of diag.def has a section, which raises it
or says why it shows no example. The grammar of docs/language.md is that of parse.c, and the page
names every builtin and reserved word; docs/architecture.md has the include order of the script.
"""
import os
import pathlib
import re
import shutil
import tempfile

ANY_LINES = ("…", "...")


def matches(expected, output):
    """Whether the output is what the lines say, with `[..]` and lines of dots as wildcards."""
    while expected and not expected[-1]:
        expected = expected[:-1]
    pattern = ""
    for line in expected:
        if line.strip() in ANY_LINES:
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(re.escape(part) for part in line.split("[..]")) + r"\n"
    text = output.rstrip("\n") + "\n" if output.strip() else ""
    return re.fullmatch(pattern, text) is not None


def parse_script(lines):
    """(command, expected lines, exit status or None) of lines `$ command`, output, `exit: N`."""
    command, expected, status = None, [], None
    for line in lines:
        if line.startswith("$ "):
            if command is not None:
                yield command, expected, status
            command, expected, status = line[2:], [], None
        elif line.startswith("exit: "):
            status = int(line[6:])
        elif command is not None:
            expected.append(line)
    if command is not None:
        yield command, expected, status


class Block:
    def __init__(self, mark, line):
        self.mark, self.line, self.lines = mark, line, []


def blocks_of(path):
    """The fenced blocks of a document in order; a block's line is that of its first line, from 1."""
    blocks, inside = [], None
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if inside is not None and line == "```":
            inside = None
        elif inside is not None:
            inside.lines.append(line)
        elif line.startswith("```"):
            inside = Block(line[3:].strip(), number + 1)
            blocks.append(inside)
    return blocks


class Document:
    """One run of a document's blocks; results are (name, good, what is wrong)."""

    def __init__(self, path, root, env, run, bless):
        self.path, self.root, self.run_command = path, root, run
        self.name = str(path.relative_to(root))
        self.bless, self.changes, self.results = bless, [], []
        self.env = env

    def run(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="presk-docs-"))
        for name in ("examples", "corpus", "std", "tests"):
            os.symlink(self.root / name, self.folder / name)
        try:
            blocks = blocks_of(self.path)
            for block, after in zip(blocks, blocks[1:] + [None]):
                self.run_block(block, after)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
        if self.changes:
            self.write_changes()
        return self.results

    def add(self, block, good, why=""):
        self.results.append((f"{self.name}:{block.line}", good, why))

    def run_block(self, block, after):
        words = block.mark.split()
        if words[:2] == ["psk", "check"]:
            self.run_program(block, words[2:] or ["program.psk"], after)
        elif words[:2] == ["psk", "file"] and len(words) == 3:
            self.write(words[2], block)
        elif words[:1] == ["psk"]:
            self.add(block, False, "a program is marked `psk check` or `psk file NAME`")
        elif words == ["console"]:
            self.run_console(block)

    def write(self, name, block):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(block.lines) + "\n", "utf-8")

    def run_program(self, block, arguments, after):
        self.write(arguments[0], block)
        status, output = self.run_command(["presk", "check", *arguments], cwd=self.folder,
                                          env=self.env)
        paired = after is not None and after.mark == "text"
        wanted = after.lines if paired else []
        if not paired and status == 0 and "warning[" not in output:
            self.add(block, True)
        else:
            self.compare(after if paired else block, f"presk check {' '.join(arguments)}", wanted,
                         status, 1 if "error[" in output else 0, output, paired)

    def run_console(self, block):
        shown = []
        for command, expected, stated in parse_script(block.lines):
            status, output = self.run_command(["bash", "-c", command], cwd=self.folder,
                                              env=self.env)
            wanted = stated if stated is not None else 1 if "error[" in output else 0
            dotted = any(line.strip() in ANY_LINES or "[..]" in line for line in expected)
            self.compare(block, command, expected, status, wanted, output, False)
            shown.append((command, expected if dotted else output.rstrip("\n").splitlines(), stated))
        if self.bless and not all(good for name, good, _ in self.results
                                  if name == f"{self.name}:{block.line}"):
            lines = []
            for command, output, stated in shown:
                lines += [f"$ {command}", *output]
                lines += [f"exit: {stated}"] if stated is not None else []
            self.changes.append((block, lines))

    def compare(self, block, command, expected, status, wanted, output, may_bless):
        good = status == wanted and matches(expected, output)
        if not good and self.bless and may_bless and status == wanted:
            self.changes.append((block, output.rstrip("\n").splitlines()))
            good = True
        why = f"$ {command}\nexit status {status}, expected {wanted}\nshown:\n" + \
              "\n".join(expected) + f"\nprinted:\n{output}"
        self.add(block, good, why)

    def write_changes(self):
        lines = self.path.read_text("utf-8").splitlines()
        for block, new in sorted(self.changes, key=lambda change: -change[0].line):
            lines[block.line - 1:block.line - 1 + len(block.lines)] = new
        self.path.write_text("\n".join(lines) + "\n", "utf-8")


def missing_codes(errors, table):
    """What docs/errors.md lacks of the codes of diag.def: (code, why) pairs; why is empty if
    the code's section shows it."""
    codes = re.findall(r"^DIAG\(([EW]\d{4}),", table, re.M)
    sections = {}
    for section in re.split(r"^### ", errors, flags=re.M)[1:]:
        title, _, text = section.partition("\n")
        for code in re.findall(r"\b[EW]\d{4}\b", title):
            sections[code] = sections.get(code, "") + text
    for code in codes:
        text = sections.get(code)
        if text is None:
            yield code, "has no section in docs/errors.md"
        elif f"[{code}]" not in text and "No example" not in text:
            yield code, "is not shown in its section of docs/errors.md"
        else:
            yield code, ""
    for code in sorted(set(sections) - set(codes)):
        yield code, "is in docs/errors.md and not in diag.def"


def table_faults(root):
    """(name, what a document says otherwise than the sources; empty: nothing) pairs."""
    language = (root / "docs/language.md").read_text("utf-8")
    source = (root / "src/syntax/parse.c").read_text("utf-8")
    grammar = re.search(r"^//   program .*?(?=^//$)", source, re.M | re.S).group()
    grammar = re.sub(r"^//   ", "", grammar, flags=re.M)
    yield "grammar", "" if f"```ebnf\n{grammar}```" in language else \
        f"the grammar is not that of parse.c:\n{grammar}"
    for table, pattern in (("src/check/builtin.def", r"^BUILTIN\((\w+),"),
                           ("src/syntax/token.def", r'^(?:WORD|CONTEXT)\(\w+, +"(\w+)"\)')):
        names = re.findall(pattern, (root / table).read_text("utf-8"), re.M)
        missing = [name for name in names if not re.search(rf"`[^`]*\b{name}\b[^`]*`", language)]
        yield table, f"not named in the page: {' '.join(missing)}" if missing or not names else ""
    architecture = (root / "docs/architecture.md").read_text("utf-8")
    order = (root / "scripts/include-order.sh").read_text("utf-8")
    for stage, below in re.findall(r"^allow (\w+)(.*)$", order, re.M):
        row = re.search(rf"^\| `{stage}` \|.*\|(.*)\|$", architecture, re.M)
        good = row and row.group(1).strip() in (below.strip(), "all")
        yield f"order/{stage}", "" if good else f"{stage} may include:{below}"
