"""Training against PyTorch: parameters after steps of AdamW, and the time of a step's parts."""
import json
import pathlib
import statistics
import tempfile
import time

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from peer import cross_entropy, presk, read_npy, read_safetensors, worst_difference

STEPS = 20
STEPS_LIMIT = 1e-8
SETTINGS = dict(lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
PLAN = "bench/plans/small_gpt-512.json"
PRODUCTS = ("mm", "bmm", "addmm", "baddbmm")


def trained(p):
    return {name: tensor.clone().requires_grad_(True) for name, tensor in p.items()}


# ---- right values ----------------------------------------------------------------------------

def check_steps(case, folder, p):
    """Parameters after STEPS steps in f64 from the values that `check` has saved, on the same
    batches: those of the training block's stream."""
    presk("train", case.source, *case.arguments, "--data", case.data, "--realize", "f64", "--seed",
          "0", "--steps", str(STEPS), "--set", "lr=0.001", "--quiet", "--checkpoint",
          f"{folder}/trained.safetensors")
    ours = read_safetensors(f"{folder}/trained.safetensors")
    theirs = trained(p)
    optimizer = torch.optim.AdamW(theirs.values(), **SETTINGS)
    for number in range(STEPS):
        with tempfile.TemporaryDirectory(dir=folder) as batch:
            presk("run", *case.batch(number), "--realize", "f64", "--seed", "0", "--entry", "loss",
                  "--save-values", batch)
            x, y = (read_npy(pathlib.Path(batch) / f"{name}.npy") for name in ("x", "y"))
        optimizer.zero_grad(set_to_none=True)
        cross_entropy(case.model(theirs, x.long()), y.long()).backward()
        optimizer.step()
    worst, where = worst_difference(ours, {name: tensor.detach() for name, tensor in theirs.items()})
    fine = worst <= STEPS_LIMIT
    print(f"  {case.name:12} f64  parameters after {STEPS} AdamW steps differ by {worst:.2e} "
          f"({where}; limit {STEPS_LIMIT:.0e})  {'ok' if fine else 'TOO LARGE'}", flush=True)
    return fine


# ---- the race --------------------------------------------------------------------------------

class Recorder(TorchDispatchMode):
    """The operations that compute something, as they were called: no views, no products."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        returns = func._schema.returns
        view = any(r.alias_info is not None and not r.alias_info.is_write for r in returns)
        name = func._schema.name.split("::")[1]
        if not view and name not in (*PRODUCTS, "detach", "_unsafe_view"):
            self.calls.append((func, args, kwargs))
        return result


def timed(function, times=5):
    """Processor time: on one thread, what else runs does not count."""
    seconds = []
    for _ in range(times):
        started = time.process_time()
        function()
        seconds.append(time.process_time() - started)
    return statistics.median(seconds)


class Theirs:
    """PyTorch's step in parts: `optimizer`, the faster of its two ways; `elementwise`, the gradient's
    operations without products and without autograd's own work; `step`, all of it."""

    def __init__(self, case, p, x, y):
        self.case, self.x, self.y = case, x, y.long()
        self.p = trained(p)
        ways = [torch.optim.AdamW(self.p.values(), foreach=way, **SETTINGS) for way in (False, True)]
        with Recorder() as record:
            self.gradient()
        self.calls = record.calls
        for way in ways:
            way.step()
        self.optimizer = min(ways, key=lambda way: timed(way.step, 20)).step

    def gradient(self):
        for tensor in self.p.values():
            tensor.grad = None
        cross_entropy(self.case.model(self.p, self.x), self.y).backward()

    def elementwise(self):
        with torch.no_grad():
            for function, args, kwargs in self.calls:
                function(*args, **kwargs)

    def step(self):
        self.gradient()
        self.optimizer()

    planned = step


def bench(case, entry, *plan):
    return json.loads(presk("bench", *case.batch(0), "--entry", entry, *(plan or ("--realize", "f32")),
                            "--seed", "0", "--runs", "5", "--json", "--threads", "1"))


def ours(case):
    """Seconds of the same parts: of each nest alone, and of the two programs of a step. `planned`:
    of these under the plan, where the machine has its vectors."""
    update, gradient = bench(case, "adamw.step"), bench(case, "loss.grad")
    elementwise = sum(nest["median_s"] * nest["launches"] for nest in gradient["nests"]
                      if nest["kind"] != "contraction")
    parts = {"optimizer": update["median_s"], "elementwise": elementwise,
             "step": update["median_s"] + gradient["median_s"]}
    if " avx512dq" in pathlib.Path("/proc/cpuinfo").read_text():
        parts["planned"] = sum(bench(case, entry, "--plan", f"@{PLAN}")["median_s"]
                               for entry in ("adamw.step", "loss.grad"))
    return parts


def race_step(case, p, x, y, rounds):
    """On one thread: tensors so small are not divided there either."""
    torch.set_num_threads(1)
    peer = Theirs(case, p, x, y)
    seconds = {}
    for number in range(rounds + 1):
        mine = ours(case)
        for part, time_of_mine in mine.items():
            pair = (time_of_mine, timed(getattr(peer, part)))
            if number:  # the first round warms up
                seconds.setdefault(part, []).append(pair)
    words = {"optimizer": "AdamW", "elementwise": f"elementwise parts ({len(peer.calls)} calls there)",
             "step": "the whole step", "planned": "the whole step in a plan"}
    for part, pairs in seconds.items():
        mine, theirs = (statistics.median(column) for column in zip(*pairs))
        ratio = statistics.median(there / here for here, there in pairs)
        print(f"  {case.name:12} f32  1 thread   {words[part]}: "
              f"presk {mine * 1e6:.0f} us, PyTorch {theirs * 1e6:.0f} us: presk is {ratio:.2f} times "
              f"as fast (median of {rounds} rounds)", flush=True)
