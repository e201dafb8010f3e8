#!/usr/bin/env python3
"""Checks programs of the corpus against PyTorch, and races them.

The PyTorch side is the same program, written by hand below: the same parameters (saved by
`presk run --save-values`), the same real text, erf gelu, biases, mask, shapes. Outputs and loss must
agree, relative to each tensor's largest value, to 1e-12 in f64 and 1e-5 in f32. The gradient of the
loss in every parameter must agree with autograd's to 1e-10 in f64, relative to the tensor's largest
value or a thousandth of the largest of all. Then the forward passes are raced: short bursts in turn,
the ratio taken within each round.

Run by `make peers`, which installs Debian's python3-torch.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import torch
import torch.nn.functional as F

ROOT = pathlib.Path(__file__).resolve().parent.parent
TYPES = {"F64": torch.float64, "F32": torch.float32}
LIMIT = {"f64": 1e-12, "f32": 1e-5}
GRADIENT_LIMIT = 1e-10


def read_safetensors(path):
    raw = pathlib.Path(path).read_bytes()
    size, = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + size])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        data = bytearray(raw[8 + size + begin:8 + size + end])
        tensors[name] = torch.frombuffer(data, dtype=TYPES[entry["dtype"]]).reshape(entry["shape"]) \
            if data else torch.zeros(entry["shape"], dtype=TYPES[entry["dtype"]])
    return tensors


def read_npy(path):
    raw = pathlib.Path(path).read_bytes()
    assert raw[:6] == b"\x93NUMPY", path
    size = struct.unpack("<H", raw[8:10])[0] if raw[6] == 1 else struct.unpack("<I", raw[8:12])[0]
    start = (10 if raw[6] == 1 else 12) + size
    header = eval(raw[start - size:start].decode("latin1"), {"__builtins__": {}})  # a dict literal
    types = {"<f8": torch.float64, "<f4": torch.float32, "|u1": torch.uint8, "<u2": torch.int16,
             "<u4": torch.int32, "<u8": torch.int64}
    data = bytearray(raw[start:])
    return torch.frombuffer(data, dtype=types[header["descr"]]).reshape(header["shape"])


# ---- the programs ----------------------------------------------------------------------------

def linear(p, name, x):
    return x @ p[name + ".w"] + p[name + ".b"]


def layer_norm(p, name, x):
    return F.layer_norm(x, x.shape[-1:], p[name + ".gain"], p[name + ".bias"], 1e-5)


def attention(p, name, x, heads):
    B, T, D = x.shape
    q, k, v = (linear(p, f"{name}.{part}", x).view(B, T, heads, D // heads).transpose(1, 2)
               for part in ("query", "key", "value"))
    scores = (q @ k.transpose(-2, -1)) / math.sqrt(D // heads)
    future = torch.triu(torch.ones(T, T, dtype=torch.bool), 1)
    weights = torch.softmax(scores.masked_fill(future, -math.inf), -1)
    return linear(p, name + ".out", (weights @ v).transpose(1, 2).reshape(B, T, D))


def gpt(p, x, heads):
    h = p["token"][x] + p["pos"]
    layers = 1 + max(int(name.split(".")[1]) for name in p if name.startswith("blocks."))
    for i in range(layers):
        block = f"blocks.{i}"
        h = h + attention(p, block + ".attn", layer_norm(p, block + ".norm1", h), heads)
        up = linear(p, block + ".mlp.up", layer_norm(p, block + ".norm2", h))
        h = h + linear(p, block + ".mlp.down", F.gelu(up))
    return linear(p, "head", layer_norm(p, "norm", h))


def mlp(p, x):
    pixels = x.to(p["up.w"].dtype) / 255
    return linear(p, "down", F.relu(linear(p, "up", pixels)))


def cross_entropy(logits, y):
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))


# ---- the comparison --------------------------------------------------------------------------

class Case:
    def __init__(self, name, source, arguments, model, output, gradient=True):
        self.name, self.source, self.arguments = name, source, arguments
        self.model, self.output = model, output  # the output's entry
        self.gradient = gradient  # is it small enough for one?


def presk(*arguments):
    command = [str(ROOT / "build/presk"), *arguments]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def difference(ours, theirs):
    theirs = theirs.to(torch.float64)
    return float((ours.to(torch.float64) - theirs).abs().max() / theirs.abs().max())


def check(case, realization, folder):
    """Largest differences of output and loss; and what the race needs."""
    common = [case.source, *case.arguments, "--realize", realization, "--seed", "0"]
    presk("run", *common, "--entry", "loss", "--save-values", folder, "-o", f"{folder}/loss.npy")
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
    presk("run", case.source, *case.arguments, "--realize", "f64", "--seed", "0", "--entry",
          "loss.grad", "-o", f"{folder}/grad.safetensors")
    ours = read_safetensors(f"{folder}/grad.safetensors")
    for tensor in p.values():
        tensor.requires_grad_(True)
    loss = cross_entropy(case.model(p, x), y.long())
    loss.backward()
    theirs = {name: tensor.grad for name, tensor in p.items()}
    top = max(float(tensor.abs().max()) for tensor in theirs.values())
    worst, where = 0.0, ""
    for name, tensor in theirs.items():
        unit = max(float(tensor.abs().max()), 1e-3 * top)
        relative = float((ours["1." + name] - tensor).abs().max()) / unit
        if relative >= worst:
            worst, where = relative, name
    fine = worst <= GRADIENT_LIMIT and difference(ours["0"], loss.detach()) <= LIMIT["f64"]
    print(f"  {case.name:12} f64  gradient of {len(theirs)} tensors differs by {worst:.2e} "
          f"({where}; limit {GRADIENT_LIMIT:.0e})  {'ok' if fine else 'TOO LARGE'}", flush=True)
    for tensor in p.values():
        tensor.requires_grad_(False)
    return fine


def race(case, p, x, y, folder, rounds, threads):
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
        report = json.loads(presk("bench", case.source, *case.arguments, "--entry", "loss",
                                  "--realize", "f32", "--seed", "0", "--runs", "5", "--json",
                                  "--threads", str(threads)))
        ours.append(report["median_s"])
        theirs.append(burst())
        ratios.append(theirs[-1] / ours[-1])
    print(f"  {case.name:12} f32  {threads} thread{'s' if threads > 1 else ' '}  presk "
          f"{statistics.median(ours) * 1e3:.3f} ms, PyTorch {statistics.median(theirs) * 1e3:.3f} ms: "
          f"presk is {statistics.median(ratios):.2f} times as fast (median of {rounds} rounds)",
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="rounds of a race; 0: none")
    options = parser.parse_args()
    text = ROOT / "out/text.psk.d"
    if not text.exists():
        presk("data", "text", "/usr/share/common-licenses/GPL-3", "-o", str(text), "--vocab", "92")
    small = ["--const", "D=64", "--const", "H=2", "--const", "L=2", "--dim", "B=2", "--dim", "T=32",
             "--batch", "0"]
    cases = [
        Case("small GPT", "corpus/nlp/05_gpt.psk", small, lambda p, x: gpt(p, x, 2), "GPT.apply"),
        Case("course GPT", "corpus/nlp/05_gpt.psk",
             ["--dim", "B=2", "--dim", "T=128", "--batch", "0"], lambda p, x: gpt(p, x, 6),
             "GPT.apply", gradient=False),
        Case("MLP", "corpus/vision/01_mlp.psk", ["--dim", "B=32"], mlp, "logits"),
    ]
    print(f"PyTorch {torch.__version__}, OPENBLAS_CORETYPE={os.environ.get('OPENBLAS_CORETYPE', '')}")
    good = True
    for case in cases:
        for realization in ("f64", "f32"):
            with tempfile.TemporaryDirectory(prefix="presk-peers-") as folder:
                fine, p, x, y = check(case, realization, folder)
                good = good and fine
                if realization == "f64" and case.gradient:
                    good = check_gradient(case, folder, p, x, y) and good
                if realization == "f32" and options.rounds:
                    for threads in sorted({1, os.cpu_count() or 1}):
                        race(case, p, x, y, folder, options.rounds, threads)
    print("all within the limits" if good else "some differences are too large")
    return 0 if good else 3


if __name__ == "__main__":
    sys.exit(main())
