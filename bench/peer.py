"""What the comparisons with PyTorch share: presk's files as tensors, and the programs of the corpus
written by hand in PyTorch, with the parameters under the paths that presk gives them."""
import json
import math
import pathlib
import struct
import subprocess
import sys

import torch
import torch.nn.functional as F

ROOT = pathlib.Path(__file__).resolve().parent.parent
TYPES = {"F64": torch.float64, "F32": torch.float32}


class Case:
    def __init__(self, name, source, arguments, data, model, output, trained=True, raced=False):
        self.name, self.source, self.arguments, self.data = name, source, arguments, data
        self.model, self.output = model, output  # the output's entry
        self.trained = trained  # is it small enough for gradients and steps?
        self.raced = raced  # its training step, too

    def batch(self, number):
        """Arguments of a command that reads one batch of the training block's stream."""
        return [self.source, *self.arguments, "--data", self.data, "--batch", str(number)]


def presk(*arguments):
    command = [str(ROOT / "build/presk"), *arguments]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def difference(ours, theirs):
    theirs = theirs.to(torch.float64)
    return float((ours.to(torch.float64) - theirs).abs().max() / theirs.abs().max())


def worst_difference(ours, theirs):
    """The largest difference among named tensors and where it is, each relative to the tensor's
    largest value or a thousandth of the largest of all: noise is not compared with noise."""
    top = max(float(tensor.abs().max()) for tensor in theirs.values())
    worst, where = 0.0, ""
    for name, tensor in theirs.items():
        unit = max(float(tensor.abs().max()), 1e-3 * top)
        relative = float((ours[name] - tensor).abs().max()) / unit
        if relative >= worst:
            worst, where = relative, name
    return worst, where


# ---- files -----------------------------------------------------------------------------------

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


def write_bytes_npy(path, tensor):
    """A tensor of bytes as a NumPy file."""
    header = repr({"descr": "|u1", "fortran_order": False, "shape": tuple(tensor.shape)})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    raw = bytes(tensor.contiguous().view(-1).tolist())
    pathlib.Path(path).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) +
                                   header.encode() + raw)


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
