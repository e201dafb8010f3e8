#!/usr/bin/env python3
"""Checks programs of the corpus against PyTorch, and races them.

The PyTorch side is the same program, written by hand in peer.py: the same parameters (saved by
`presk run --save-values`), the same real text, erf gelu, biases, mask, shapes. Outputs and loss must
agree, relative to each tensor's largest value, to 1e-12 in f64 and 1e-5 in f32. In f64, relative to
a tensor's largest value or a thousandth of the largest of all, the gradient of the loss in every
parameter must agree with autograd's to 1e-10, and the parameters after 20 steps of AdamW on the same
batches with those of torch.optim to 1e-8.

Then they are raced in f32: short bursts in turn, the ratio taken within each round. First the
forward passes; then, of the small GPT's training step, the optimizer, the elementwise parts of the
gradient, and all of it. Products are slow here by design (no plan is used), so the last ratio says
how much.

Run by `make peers`, which installs Debian's python3-torch.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile
import time

if "avx512f" in open("/proc/cpuinfo", encoding="ascii").read():
    # Debian's OpenBLAS does not know recent processors and would take them for older ones.
    os.environ.setdefault("OPENBLAS_CORETYPE", "SKYLAKEX")
import torch  # noqa: E402

from peer import (ROOT, Case, cross_entropy, difference, gpt, mlp, presk, read_npy, read_safetensors,
                  worst_difference, write_bytes_npy)
from peer_training import check_steps, race_step

LIMIT = {"f64": 1e-12, "f32": 1e-5}
GRADIENT_LIMIT = 1e-10


# ---- the comparison --------------------------------------------------------------------------

def check(case, realization, folder):
    """Are output and loss within the limits? And what the race needs."""
    presk("run", *case.batch(0), "--realize", realization, "--seed", "0", "--entry", "loss",
          "--save-values", folder, "-o", f"{folder}/loss.npy")
    p = read_safetensors(f"{folder}/p.safetensors")
    x, y = (read_npy(f"{folder}/{name}.npy") for name in ("x", "y"))
    x = x.long()
    with torch.no_grad():
        logits = case.model(p, x)
        loss = cross_entropy(logits, y.long())
    presk("run", case.source, *case.arguments, "--realize", realization, "--entry", case.output,
          "--in", f"x=@{folder}/x.npy", "--params", f"@{folder}/p.safetensors",
          "-o", f"{folder}/out.npy")
    worst = 0.0
    for name, ours, theirs in (("output", read_npy(f"{folder}/out.npy"), logits),
                               ("loss", read_npy(f"{folder}/loss.npy"), loss)):
        relative = difference(ours, theirs)
        worst = max(worst, relative)
        verdict = "ok" if relative <= LIMIT[realization] else "TOO LARGE"
        print(f"  {case.name:12} {realization}  {name:7} differs by {relative:.2e} "
              f"(limit {LIMIT[realization]:.0e})  {verdict}", flush=True)
    return worst <= LIMIT[realization], p, x, y


def check_gradient(case, folder, p, x, y):
    """The gradient of the loss at the values that `check` has saved."""
    presk("run", *case.batch(0), "--realize", "f64", "--seed", "0", "--entry", "loss.grad",
          "-o", f"{folder}/grad.safetensors")
    ours = read_safetensors(f"{folder}/grad.safetensors")
    for tensor in p.values():
        tensor.requires_grad_(True)
    loss = cross_entropy(case.model(p, x), y.long())
    loss.backward()
    theirs = {"1." + name: tensor.grad for name, tensor in p.items()}
    worst, where = worst_difference(ours, theirs)
    fine = worst <= GRADIENT_LIMIT and difference(ours["0"], loss.detach()) <= LIMIT["f64"]
    print(f"  {case.name:12} f64  gradient of {len(theirs)} tensors differs by {worst:.2e} "
          f"({where[2:]}; limit {GRADIENT_LIMIT:.0e})  {'ok' if fine else 'TOO LARGE'}", flush=True)
    for tensor in p.values():
        tensor.requires_grad_(False)
    return fine


def race(case, p, x, y, rounds, threads):
    """Median over rounds of PyTorch's time over ours, for the loss (forward pass)."""
    torch.set_num_threads(threads)

    def burst():
        times = []
        with torch.no_grad():
            for _ in range(5):
                started = time.perf_counter()
                cross_entropy(case.model(p, x), y.long())
                times.append(time.perf_counter() - started)
        return statistics.median(times)

    burst()
    ratios, ours, theirs = [], [], []
    for _ in range(rounds):
        report = json.loads(presk("bench", *case.batch(0), "--entry", "loss", "--realize", "f32",
                                  "--seed", "0", "--runs", "5", "--json", "--threads",
                                  str(threads)))
        ours.append(report["median_s"])
        theirs.append(burst())
        ratios.append(theirs[-1] / ours[-1])
    print(f"  {case.name:12} f32  {threads} thread{'s' if threads > 1 else ' '}  presk "
          f"{statistics.median(ours) * 1e3:.3f} ms, PyTorch {statistics.median(theirs) * 1e3:.3f} ms: "
          f"presk is {statistics.median(ratios):.2f} times as fast (median of {rounds} rounds)",
          flush=True)


def check_case(case, rounds):
    good = True
    for realization in ("f64", "f32"):
        with tempfile.TemporaryDirectory(prefix="presk-peers-") as folder:
            fine, p, x, y = check(case, realization, folder)
            good = good and fine
            if realization == "f64" and case.trained:
                good = check_gradient(case, folder, p, x, y) and good
                good = check_steps(case, folder, p) and good
            if realization == "f32" and rounds:
                for threads in sorted({1, os.cpu_count() or 1}):
                    race(case, p, x, y, rounds, threads)
                if case.raced:
                    race_step(case, p, x, y, rounds)
    return good


def write_digits(path):
    """Images for the MLP: each class has its pattern, under noise."""
    draw = torch.Generator().manual_seed(1)
    labels = torch.randint(0, 10, (1024,), generator=draw)
    pattern = torch.randint(0, 128, (10, 784), generator=draw)
    images = pattern[labels] + torch.randint(0, 128, (1024, 784), generator=draw)
    with tempfile.TemporaryDirectory(prefix="presk-peers-") as folder:
        write_bytes_npy(f"{folder}/x.npy", images)
        write_bytes_npy(f"{folder}/y.npy", labels)
        presk("data", "npy", f"{folder}/x.npy", f"{folder}/y.npy", "-o", path, "--type",
              "(idx[256][pixel: 784], idx[10])")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="rounds of a race; 0: none")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    options = parser.parse_args()
    text, digits = str(ROOT / "out/peers_text.psk.d"), str(ROOT / "out/peers_digits.psk.d")
    presk("data", "text", "/usr/share/common-licenses/GPL-3", "-o", text, "--vocab", "92")
    write_digits(digits)
    small = ["--const", "D=64", "--const", "H=2", "--const", "L=2", "--dim", "B=2", "--dim", "T=32"]
    cases = [
        Case("small GPT", "corpus/nlp/05_gpt.psk", small, text, lambda p, x: gpt(p, x, 2),
             "GPT.apply", raced=True),
        Case("course GPT", "corpus/nlp/05_gpt.psk", ["--dim", "B=2", "--dim", "T=128"], text,
             lambda p, x: gpt(p, x, 6), "GPT.apply", trained=False),
        Case("MLP", "corpus/vision/01_mlp.psk", ["--dim", "B=32"], digits, mlp, "logits"),
    ]
    print(f"PyTorch {torch.__version__}, OPENBLAS_CORETYPE={os.environ.get('OPENBLAS_CORETYPE', '')}")
    good = True
    for case in cases:
        if options.only in case.name:
            good = check_case(case, options.rounds) and good
    print("all within the limits" if good else "some differences are too large")
    return 0 if good else 3


if __name__ == "__main__":
    sys.exit(main())
