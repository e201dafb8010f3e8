"""Programs with values that are known from outside: tests/bugs/NAME.psk beside NAME.cases.

A .cases file is Python. It calls

    case(entry, result, inputs={...}, dims={...}, realize="f32", near=None, options=[], plans=[])

once for each run: `result` is a list of numbers (row-major), or a tuple of such lists for a tuple;
`inputs` gives (extents, numbers) by name, or (extents, numbers, "u1") for indices. Values are
rounded to the realization's storage type here and must then agree to the bit (a NaN with a NaN),
or within `near`, absolute. `seq(n)` is 0 … n − 1; `f32` and `bf16` round; `product` is an exact one.

Each case runs on the reference, on the kernel interpreter and natively, natively also in narrow
vectors on three workers, and without fusion where that may not change a bit; and under each plan,
{nest: {decision: value}} for target 512, on the interpreter and, where the machine has the target,
natively on three workers. `every(decision=[...], ...)` lists layouts, one for each combination;
`tiled` those of a product in its tiled form.
"""
import itertools
import json
import math
import pathlib
import struct
import subprocess

RUNS = [["--backend", "ref"], ["--backend", "kernel"], ["--backend", "native"],
        ["--backend", "native", "--target", "128", "--threads", "3"]]
PLANNED = [["--backend", "kernel", "--target", "512"]]
if "avx512dq" in pathlib.Path("/proc/cpuinfo").read_text("utf-8"):
    PLANNED.append(["--backend", "native", "--target", "512", "--threads", "3"])
UNFUSED = ["--backend", "kernel", "--fusion", "off"]


def f32(x):
    if math.isnan(x) or math.isinf(x):
        return x
    try:
        return struct.unpack("<f", struct.pack("<f", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


def bf16(x):
    """To nearest even; x must be a double that f32 holds, or far from a tie."""
    if math.isnan(x) or math.isinf(x):
        return x
    bits = struct.unpack("<I", struct.pack("<f", f32(x)))[0]
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16
    return struct.unpack("<f", struct.pack("<I", bits))[0]


ROUND = {"f64": float, "f32": f32, "bf16": bf16}


def seq(n):
    return [float(i) for i in range(n)]


def product(a, b, m, k, n):
    """Rows of a [m, k] times columns of b [k, n]; exact where all sums are."""
    return [math.fsum(a[i * k + t] * b[t * n + j] for t in range(k))
            for i in range(m) for j in range(n)]


def every(**values):
    """Layouts with each combination of the decisions' values."""
    return [dict(zip(values, chosen)) for chosen in itertools.product(*values.values())]


def tiled(**values):
    """The same of a product's tiles, where a last one may be partial."""
    return every(form=["tiled"], tail=["peel"], **values)


def write_npy(path, extents, numbers, kind):
    header = repr({"descr": f"<{kind}", "fortran_order": False, "shape": tuple(extents)})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    code = {"f8": "d", "f4": "f", "u1": "B", "u4": "I"}[kind]
    with open(path, "wb") as out:
        out.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode("latin1"))
        out.write(struct.pack(f"<{len(numbers)}{code}", *numbers))


def same(expected, actual, near):
    if math.isnan(expected) or math.isnan(actual):
        return math.isnan(expected) and math.isnan(actual)
    if near is not None and not math.isinf(expected):
        return abs(expected - actual) <= near
    return struct.pack("<d", expected) == struct.pack("<d", actual)


def judge(result, parts, realize, near):
    """What is wrong with a run's result, or an empty text."""
    if len(parts) != len(result):
        return f"{len(parts)} tensors, not {len(result)}"
    for number, (part, tensor) in enumerate(zip(result, parts)):
        actual = [float(v) for v in tensor["values"]]
        rounding = ROUND.get(tensor["type"], float)
        if len(part) != len(actual):
            return f"part {number} has {len(actual)} elements, not {len(part)}"
        for at, (want, have) in enumerate(zip(part, actual)):
            want = rounding(float(want)) if near is None else float(want)
            if not same(want, have, near):
                return f"part {number} element {at} is {have!r}, not {want!r}"
    return ""


def run_cases(presk, program, folder, env):
    """(name, what is wrong or empty) of each case."""
    results = []

    def case(entry, result, inputs=None, dims=None, realize="f32", near=None, options=(),
             plans=()):
        command = [str(presk), "run", str(program), "--entry", entry, "--json", *options]
        for name, value in (dims or {}).items():
            command += ["--dim", f"{name}={value}"]
        for name, value in (inputs or {}).items():
            path = pathlib.Path(folder) / f"{program.stem}-{name}.npy"
            write_npy(path, value[0], value[1], value[2] if len(value) > 2 else "f8")
            command += ["--in", f"{name}=@{path}"]
        parts = result if isinstance(result, tuple) else (result,)
        wrong = ""
        runs = [["--realize", realize, *run]
                for run in RUNS + ([UNFUSED] if realize != "bf16" else [])]
        for number, layout in enumerate(plans):
            path = pathlib.Path(folder) / f"{program.stem}-{number}.json"
            path.write_text(json.dumps({"target": 512, "realization": realize, "layout": layout}))
            runs += [["--plan", f"@{path}", *run] for run in PLANNED]
        for run in runs:
            done = subprocess.run(command + run, env=env, capture_output=True, text=True,
                                  timeout=300, check=False)
            if done.returncode != 0:
                wrong = f"exit status {done.returncode}\n{done.stderr}"
            else:
                wrong = judge(parts, json.loads(done.stdout)["result"], realize, near)
            if wrong:
                wrong = f"{' '.join(command + run)}\n{wrong}"
                break
        results.append((f"{entry}/{len(results) + 1}", wrong))

    names = {"case": case, "f32": f32, "bf16": bf16, "seq": seq, "product": product,
             "every": every, "tiled": tiled,
             "math": math, "nan": math.nan, "inf": math.inf}
    source = program.with_suffix(".cases").read_text("utf-8")
    exec(compile(source, str(program.with_suffix(".cases")), "exec"), names)
    return results
