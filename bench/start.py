#!/usr/bin/env python3
"""How long presk takes to start, to check a program, to compile a small GPT and to run it again.

Processor time of whole processes (both threads together), the median of interleaved rounds, beside
that of /bin/true, which is what the system asks for any process at all. Files opened are watched
once, to see that LLVM stays away where nothing is compiled. Status 3: a limit was missed.
"""
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

BUILD = sys.argv[1] if len(sys.argv) > 1 else "build"
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 15
PRESK = f"{BUILD}/presk"
GPT = "corpus/nlp/05_gpt.psk"
SMALL = "--const D=64 --const H=2 --const L=2 --dim B=2 --dim T=32".split()
RUN = [PRESK, "run", GPT, "--entry", "loss", *SMALL]


def spend(command, cache):
    """Milliseconds of processor time and of the clock."""
    env = dict(os.environ, PRESK_CACHE=cache)
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return 1e3 * spent, 1e3 * (time.perf_counter() - started)


def maps_llvm(command, cache):
    """Whether the loader of the process says that it took in a libLLVM."""
    env = dict(os.environ, PRESK_CACHE=cache, LD_DEBUG="files")
    done = subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return b"libLLVM" in done.stderr


def main():
    with tempfile.TemporaryDirectory() as folder:
        warm, cold = f"{folder}/warm", f"{folder}/cold"
        # name, command, cache, limit in ms of processor time, whether LLVM belongs there
        rows = [("/bin/true", ["/bin/true"], warm, None, False),
                ("start", [PRESK, "--version"], warm, 5, False),
                ("check", [PRESK, "check", GPT], warm, 20, False),
                ("run, compiled before", RUN, warm, 50, False),
                ("run, compiling", RUN, cold, 1000, True)]
        times = {row[0]: [] for row in rows}
        spend(RUN, warm)
        for _ in range(ROUNDS):
            for name, command, cache, _, _ in rows:
                shutil.rmtree(cold, ignore_errors=True)
                times[name].append(spend(command, cache))
        print(f"processes, ms (medians of {ROUNDS} interleaved rounds)")
        print(f"{'':22} {'processor':>10} {'clock':>10} {'limit':>7}  LLVM")
        good = True
        base = statistics.median(spent for spent, _ in times["/bin/true"])
        for name, command, cache, limit, llvm in rows:
            spent = statistics.median(spent for spent, _ in times[name])
            clock = statistics.median(clock for _, clock in times[name])
            shutil.rmtree(cold, ignore_errors=True)
            mapped = maps_llvm(command, cache)
            missed = mapped != llvm or (limit is not None and spent - base > limit)
            good = good and not missed
            print(f"{name:22} {spent:10.1f} {clock:10.1f} {limit or '':>7}  "
                  f"{'yes' if mapped else 'no'}{'  missed' if missed else ''}")
        print(f"limits hold for the processor time above that of /bin/true")
    return 0 if good else 3


sys.exit(main())
