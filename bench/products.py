#!/usr/bin/env python3
"""Races planned products against OpenBLAS, BLIS, oneDNN and libxsmm, and against default kernels.

Each contestant is a process of build/bench/products that computes one product for some milliseconds
when it is told to. They take turns, one at a time, and a ratio is taken within each round; the
tables show medians. On one thread times are processor time, on two the clock's. All compute in f32;
ours to the bit the sum in order, one fused multiplication and addition a term.

Run by `make bench-products`, which installs the libraries. Ends with status 3 where a figure misses
what is wanted.
"""
import argparse
import math
import os
import pathlib
import signal
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLANS = ROOT / "bench" / "plans"
WANTED_MEAN, WANTED_EACH = 0.95, 0.8
STARTS = 3

# name, entry of bench/products.psk, batch, M, N, K. The course GPT has D = 384 and 16 x 256
# characters, BERT-large D = 1024 and 512 words.
SHAPES = [
    ("dense NN", "nn", 1, 4096, 1536, 384),
    ("dense NT", "nt", 1, 4096, 384, 1536),
    ("dense TN", "tn", 1, 384, 1536, 4096),
    ("attention Q·Kᵀ", "scores", 96, 256, 256, 64),
    ("attention W·V", "values", 96, 256, 64, 256),
    ("tiny NN", "nn", 1, 64, 64, 64),
    ("tiny NN, wide", "nn", 1, 64, 256, 64),
    ("tiny Q·Kᵀ", "scores", 4, 32, 32, 32),
]
# attention's products of the course GPT in training, of BERT-large, and of the GPT with heads of 128
ATTENTION = [
    ("GPT Q·Kᵀ", "scores", 96, 128, 128, 64),
    ("GPT W·V", "values", 96, 128, 64, 128),
    ("BERT-large Q·Kᵀ", "scores", 16, 512, 512, 64),
    ("BERT-large W·V", "values", 16, 512, 64, 512),
    ("head of 128 Q·Kᵀ", "scores", 96, 256, 256, 128),
    ("head of 128 W·V", "values", 96, 256, 128, 256),
]
PEERS = ["openblas", "blis", "onednn", "onednn-sgemm", "libxsmm"]
LIBRARY = {"onednn-sgemm": "onednn"}  # two ways into one library


def target():
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    if all(f" {flag}" in flags for flag in ("avx512f", "avx512vl", "avx512bw", "avx512dq")):
        return 512
    return 256 if " avx2" in flags and " fma" in flags else 128


class Contestant:
    """A process that computes when it is given a turn; `seconds` has one figure a round."""

    def __init__(self, program, name, shape, threads):
        self.name, self.seconds = name, []
        cpus = ",".join(map(str, sorted(os.sched_getaffinity(0))[:threads]))
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith(("OPENBLAS", "BLIS", "OMP"))}
        environment.update(OMP_NUM_THREADS=str(threads), OPENBLAS_THREAD_TIMEOUT="10",
                           GOMP_SPINCOUNT="20000")
        if "onednn" in name or (name == "blis" and shape[2] == 1):  # they have OpenMP's threads
            environment.update(OMP_PROC_BIND="true")
        if target() == 512:  # neither library knows recent processors
            environment.update(OPENBLAS_CORETYPE="SKYLAKEX", BLIS_ARCH_TYPE="0")
        command = ["taskset", "-c", cpus, program, name, *map(str, shape[1:]), str(threads)]
        self.process = subprocess.Popen(command, cwd=ROOT, env=environment, bufsize=0,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        self.ready = self.process.stdout.readline() == b"ready\n"
        if self.ready:
            self.rest(True)
        else:
            self.error = self.process.stderr.read().decode().strip()
            self.process.wait()

    def rest(self, resting):  # nothing of it spins while others have their turn
        self.process.send_signal(signal.SIGSTOP if resting else signal.SIGCONT)

    def turn(self):
        self.rest(False)
        self.process.stdin.write(b"x")
        self.seconds.append(float(self.process.stdout.readline()))
        self.rest(True)

    def end(self):
        self.rest(False)
        self.process.stdin.close()
        self.process.wait()


def race(program, shape, threads, names, rounds):
    """Seconds by name, one figure a round. The processes are started anew STARTS times: where a
    process's memory lies makes a tenth of its time."""
    seconds = {}
    for _ in range(STARTS):
        contestants = []
        for name in names:
            contestant = Contestant(program, str(name), shape, threads)
            if contestant.ready:
                contestants.append(contestant)
            elif isinstance(name, pathlib.Path) or name == "default":
                sys.exit(f"{shape[0]}: {contestant.error}")
        for _ in range(math.ceil(rounds / STARTS)):
            for contestant in contestants:
                contestant.turn()
        for contestant in contestants:
            contestant.end()
            seconds.setdefault(contestant.name, []).extend(contestant.seconds)
    return seconds


def ratio(over, under):
    """The median of the ratios within the rounds."""
    return statistics.median(a / b for a, b in zip(over, under))


def gflops(shape, seconds):
    return 2e-9 * shape[2] * shape[3] * shape[4] * shape[5] / statistics.median(seconds)


def against_libraries(args, plan):
    print("products in f32, one thread and more, against the best of four libraries\n"
          "(GFLOP/s, medians; of best: the median of the ratios within rounds; fastest: our fastest\n"
          "turn against the fastest of any library)")
    print(f"{'product':16} {'B x M x N x K':>20} {'thr':>3} " +
          " ".join(f"{name:>12}" for name in PEERS) + f" {'presk':>8} {'of best':>8} {'fastest':>8}")
    good = True
    for threads in args.threads:
        ratios = []
        for shape in SHAPES:
            if args.only and args.only not in shape[0]:
                continue
            times = race(args.program, shape, threads, [*PEERS, plan], args.rounds)
            ours = times.pop(str(plan))
            # The best library is the one that is faster than the others by the median ratio to ours.
            best = min(times, key=lambda name: ratio(times[name], ours))
            value = ratio(times[best], ours)
            fastest = min(min(times[name]) for name in times) / min(ours)
            ratios.append(value)
            missed = value < WANTED_EACH
            good = good and not missed
            print(f"{shape[0]:16} {' x '.join(map(str, shape[2:])):>20} {threads:3} " +
                  " ".join(f"{gflops(shape, times[name]):12.1f}" if name in times else f"{'-':>12}"
                           for name in PEERS) +
                  f" {gflops(shape, ours):8.1f} {value:8.2f} {fastest:8.2f}" +
                  ("  missed" if missed else ""), flush=True)
        if ratios:
            mean = math.exp(statistics.mean(map(math.log, ratios)))
            good = good and mean >= WANTED_MEAN
            print(f"geometric mean over {len(ratios)} products, {threads} thread(s): {mean:.3f}, "
                  f"wanted {WANTED_MEAN}{'' if mean >= WANTED_MEAN else '  missed'}", flush=True)
    return good


def against_default(args):
    targets = [bits for bits in (128, 256, 512) if bits <= target()]
    print("\nattention's products on one thread: the default kernel, and planned ones\n"
          "(GFLOP/s, and how many times as fast as the default)")
    print(f"{'product':17} {'B x M x N x K':>20} {'default':>8} " +
          " ".join(f"{f'target {bits}':>16}" for bits in targets))
    for shape in ATTENTION:
        if args.only and args.only not in shape[0]:
            continue
        plans = [PLANS / f"products-{bits}.json" for bits in targets]
        times = race(args.program, shape, 1, ["default", *plans], max(3, args.rounds // 3))
        base = times["default"]
        print(f"{shape[0]:17} {' x '.join(map(str, shape[2:])):>20} {gflops(shape, base):8.1f} " +
              " ".join(f"{gflops(shape, times[str(plan)]):7.1f} "
                       f"{ratio(base, times[str(plan)]):7.1f}x" for plan in plans), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", nargs="?", default="build")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, nargs="*")
    parser.add_argument("--only", help="products whose name has this in it")
    parser.add_argument("--plan", type=pathlib.Path)
    args = parser.parse_args()
    args.program = str(ROOT / args.build / "bench" / "products")
    workers = min(2, len(os.sched_getaffinity(0)))
    args.threads = args.threads or list(range(1, workers + 1))
    plan = args.plan or PLANS / f"products-{target()}.json"
    good = against_libraries(args, plan.resolve())
    against_default(args)
    sys.exit(0 if good else 3)


if __name__ == "__main__":
    main()
