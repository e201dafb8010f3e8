#!/usr/bin/env python3
"""Runs every test and ends with one line: `N passed, N failed, N skipped`.

Suites:
  unit    build/unit/*: cmocka programs, one test a function
  golden  tests/golden/**/NAME.psk beside NAME.STAGE (tokens, tree, core, realize, kernel …): the
          output of `presk dump NAME.psk --stage STAGE`; a first line `-- dump: ARGS` adds arguments
  error   tests/error/CODE_*.psk beside its .err: what `presk check` prints (from the repository's
          root), with exit status 1, or 0 where there are only warnings; a first line
          `-- check: ARGS` adds arguments
  cli     tests/cli/*.test: commands and their output. A block is `$ command`, then the expected
          lines (stdout and stderr together), then optionally `exit: N`. `[..]` stands for any text
          within a line, a line `...` for any lines; a line that begins with `# ` is a comment.
          Commands run in a scratch folder with presk on the PATH and $ROOT set; blocks of one file
          share the folder.
  bugs    tests/bugs/NAME.psk beside NAME.cases: programs that compilers have got wrong, with their
          right values, on every backend (tests/support/cases.py says how cases are written)
  docs    the programs and commands of README.md and docs/*.md (support/documents.py says how)
  codes   every code of diag.def is raised by a test, or tests/error/UNCOVERED says why not

Options: --bless rewrites goldens and .err files; --only TEXT runs the tests whose name holds TEXT;
--list names them; --build DIR.
"""
import argparse
import concurrent.futures
import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))
sys.dont_write_bytecode = True
from cases import run_cases  # noqa: E402
from documents import (Document, matches, missing_codes, parse_script,  # noqa: E402
                       table_faults)

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
TIMEOUT = 540


def run(command, cwd=ROOT, env=None, shell=False, merge=True):
    """(exit status, output); a signal gives a negative status."""
    try:
        done = subprocess.run(command, cwd=cwd, env=env, shell=shell, timeout=TIMEOUT,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT if merge else subprocess.PIPE)
        return done.returncode, done.stdout.decode("utf-8", "replace")
    except subprocess.TimeoutExpired as late:
        return -1, (late.stdout or b"").decode("utf-8", "replace") + "\n(timed out)\n"


def difference(expected, actual, name):
    lines = difflib.unified_diff(expected.splitlines(), actual.splitlines(),
                                 f"{name} (expected)", f"{name} (actual)", lineterm="")
    return "\n".join(list(lines)[:60])


class Suite:
    def __init__(self, options):
        self.options = options
        self.build = (ROOT / options.build).resolve()
        self.presk = self.build / "presk"

    def first_line_arguments(self, path, tag):
        with open(path, "rb") as file:
            line = file.readline().decode("utf-8", "replace")
        match = re.match(rf"--\s*{tag}:(.*)", line)
        return match.group(1).split() if match else []

    # Each suite gives (name, function) pairs; the function gives a list of (name, result, text).
    def unit(self):
        for program in sorted((self.build / "unit").glob("*")):
            if os.access(program, os.X_OK) and program.is_file() and "." not in program.name:
                yield f"unit/{program.name}", lambda p=program: self.run_unit(p)

    def run_unit(self, program):
        status, output = run([str(program)])
        results = []
        for mark, name in re.findall(r"^\[\s*(OK|FAILED|SKIPPED)\s*\] (\S+)\s*$", output, re.M):
            full = f"unit/{program.name}/{name}"
            if not any(r[0] == full for r in results):
                kind = {"OK": PASSED, "FAILED": FAILED, "SKIPPED": SKIPPED}[mark]
                results.append((full, kind, output if kind == FAILED else ""))
        failed = any(r[1] == FAILED for r in results)
        if not results or (status != 0 and not failed):
            results.append((f"unit/{program.name}", FAILED, f"exit status {status}\n{output}"))
        return results

    def golden(self):
        for source in sorted((ROOT / "tests/golden").rglob("*.psk")):
            for sibling in sorted(source.parent.glob(source.stem + ".*")):
                if sibling.suffix not in (".psk", ".orig"):
                    name = f"golden/{sibling.relative_to(ROOT / 'tests/golden')}"
                    yield name, lambda s=source, g=sibling, n=name: self.run_golden(s, g, n)

    def run_golden(self, source, golden, name):
        stage = golden.suffix[1:]
        arguments = self.first_line_arguments(source, "dump")
        if stage in ("tokens", "tree"):
            arguments = []
        path = str(source.relative_to(ROOT))
        status, output = run([str(self.presk), "dump", path, "--stage", stage, *arguments])
        if status != 0:
            return [(name, FAILED, f"exit status {status}\n{output}")]
        return self.compare(golden, output, name)

    def compare(self, golden, output, name):
        expected = golden.read_text("utf-8", "replace")
        if expected == output:
            return [(name, PASSED, "")]
        if self.options.bless:
            golden.write_text(output, "utf-8")
            return [(name, PASSED, "")]
        return [(name, FAILED, difference(expected, output, name))]

    def error(self):
        for source in sorted((ROOT / "tests/error").glob("*.psk")):
            name = f"error/{source.stem}"
            yield name, lambda s=source, n=name: self.run_error(s, n)

    def run_error(self, source, name):
        path = str(source.relative_to(ROOT))
        arguments = self.first_line_arguments(source, "check")
        status, output = run([str(self.presk), "check", path, *arguments])
        wanted = 1 if "error[" in output else 0
        if status != wanted:
            return [(name, FAILED, f"exit status {status}, not {wanted}\n{output}")]
        code = source.stem.split("_")[0]
        if f"[{code}]" not in output:
            return [(name, FAILED, f"{code} was not raised:\n{output}")]
        golden = source.with_suffix(".err")
        if not golden.exists() and self.options.bless:
            golden.write_text("", "utf-8")
        if not golden.exists():
            return [(name, FAILED, f"{golden.name} is missing; --bless makes it from:\n{output}")]
        return self.compare(golden, output, name)

    def cli(self):
        for script in sorted((ROOT / "tests/cli").glob("*.test")):
            yield f"cli/{script.stem}", lambda s=script: self.run_cli(s)

    def environment(self):
        # Under the sanitizer, memory that is refused is refused as it is without it. Leaks are the
        # unit tests' business: at the exit of a process that has loaded code of its own, the leak
        # checker itself crashes now and then.
        options = "allocator_may_return_null=1:detect_leaks=0"
        return dict({"ASAN_OPTIONS": options}, **os.environ)\
            | dict(ROOT=str(ROOT), LC_ALL="C.UTF-8", TERM="dumb",
                    PATH=f"{self.build}:{os.environ['PATH']}",
                    PRESK_CACHE=str(self.build / "test-cache"))

    def run_cli(self, script):
        env = self.environment()
        folder = tempfile.mkdtemp(prefix="presk-cli-")
        results = []
        lines = [line for line in script.read_text("utf-8").splitlines()
                 if not line.startswith("# ")]
        try:
            for number, (command, expected, status) in enumerate(parse_script(lines), 1):
                name = f"cli/{script.stem}/{number}"
                actual_status, output = run(["bash", "-c", command], cwd=folder, env=env)
                status = status or 0
                if actual_status != status or not matches(expected, output):
                    text = f"$ {command}\nexit status {actual_status}, expected {status}\n"
                    text += difference("\n".join(expected), output, name)
                    results.append((name, FAILED, text))
                else:
                    results.append((name, PASSED, ""))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return results or [(f"cli/{script.stem}", FAILED, "no commands")]

    def bugs(self):
        for program in sorted((ROOT / "tests/bugs").glob("*.psk")):
            yield f"bugs/{program.stem}", lambda p=program: self.run_bugs(p)

    def run_bugs(self, program):
        with tempfile.TemporaryDirectory(prefix="presk-bugs-") as folder:
            found = run_cases(self.presk, program, folder, self.environment())
        return [(f"bugs/{program.stem}/{name}", FAILED if wrong else PASSED, wrong)
                for name, wrong in found] or [(f"bugs/{program.stem}", FAILED, "no cases")]

    def docs(self):
        for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
            yield str(path.relative_to(ROOT)), lambda p=path: self.run_document(p)
        yield "docs/tables", self.run_document_tables

    def run_document(self, path):
        document = Document(path, ROOT, self.environment(), run, self.options.bless)
        return [(name, PASSED if good else FAILED, why) for name, good, why in document.run()]

    def run_document_tables(self):
        errors = (ROOT / "docs/errors.md").read_text("utf-8")
        table = (ROOT / "src/base/diag.def").read_text("utf-8")
        results = [(f"docs/codes/{code}", FAILED if why else PASSED, f"{code} {why}")
                   for code, why in missing_codes(errors, table)]
        return results + [(f"docs/tables/{name}", FAILED if why else PASSED, why)
                          for name, why in table_faults(ROOT)]

    def codes(self):
        yield "codes", self.run_codes

    def run_codes(self):
        table = (ROOT / "src/base/diag.def").read_text("utf-8")
        codes = re.findall(r"^DIAG\(([EW]\d{4}),", table, re.M)
        results = [("codes/permanent", PASSED if len(set(codes)) == len(codes) else FAILED,
                    "a code stands twice in diag.def")]
        seen = ""
        for folder in ("error", "cli", "kernel", "unit"):
            for path in sorted((ROOT / "tests" / folder).rglob("*")):
                if path.is_file():
                    seen += path.read_text("utf-8", "replace")
        listed = ROOT / "tests/error/UNCOVERED"
        excused = set(re.findall(r"^([EW]\d{4})\b", listed.read_text("utf-8"), re.M)) \
            if listed.exists() else set()
        for code in codes:
            covered = code in seen
            result = PASSED if covered != (code in excused) else FAILED
            why = "is both tested and excused" if covered else "is raised by no test"
            results.append((f"codes/{code}", result, f"{code} {why}"))
        return results


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--bless", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    suite = Suite(options)
    started = time.time()
    suites = (suite.unit, suite.golden, suite.error, suite.cli, suite.bugs, suite.docs,
              suite.codes)
    jobs = [(name, job) for kind in suites for name, job in kind() if options.only in name]
    if options.list:
        print("\n".join(name for name, _ in jobs))
        return 0
    counts = {PASSED: 0, FAILED: 0, SKIPPED: 0}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        for results in pool.map(lambda job: job[1](), jobs):
            for name, result, text in results:
                counts[result] += 1
                if result == FAILED:
                    print(f"FAILED {name}\n{text}\n", flush=True)
                elif result == SKIPPED:
                    print(f"skipped {name}", flush=True)
    print(f"{len(jobs)} programs in {time.time() - started:.1f} s")
    skipped = f", {counts[SKIPPED]} skipped" if counts[SKIPPED] else ""
    print(f"{counts[PASSED]} passed, {counts[FAILED]} failed{skipped}")
    return 1 if counts[FAILED] or not counts[PASSED] else 0


if __name__ == "__main__":
    sys.exit(main())
