"""Runs an entry with every product planned at once and compares with the reference, bit for bit.

planned.py PRESK FILE ENTRY REALIZATION [OPTIONS]: OPTIONS go to presk (--dim, --const). REALIZATION
is a uniform one or a file with a record. Each product takes four layouts in turn, with an epilogue
wherever one applies; a decision that a condition refuses is dropped from the product that it names.
Prints how many products were planned and with what, by layout.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

REFUSAL = re.compile(r"error\[E7002\]: plan: condition \d+: `(\w+)` of `([^`]+)`")
AVX512 = "avx512dq" in pathlib.Path("/proc/cpuinfo").read_text("utf-8")


def points(narrow):
    """Layouts by name; `narrow`: running sums cannot be kept in the output."""
    return {
        "small": {"form": "tiled", "tail": "peel", "tile": [2, 8], "lanes": 1, "unroll": 2},
        "packed": {"form": "tiled", "tail": "peel", "tile": [4, 16], "pack": True,
                   "pack_left": True, "stream": True},
        "panel": {"form": "tiled", "tail": "peel", "tile": [6, 16], "pack": "panel",
                  "prefetch": True, "kblock": 32, "order": "JIK" if narrow else "KIJ"},
        "row": {"form": "tiled", "tail": "peel", "merge": True} if narrow else
               {"form": "row-wise", "merge": True},
    }


def run(presk, program, entry, options):
    return subprocess.run([presk, "run", program, "--entry", entry, *options], text=True,
                          capture_output=True, check=False)


def products_of(presk, program, entry, realization, options):
    text = subprocess.run([presk, "dump", program, "--entry", entry, "--stage", "realize",
                           "--realize", realization, *options], text=True, capture_output=True,
                          check=True).stdout
    return re.findall(r"^  (\S+/%\d+@\S+) +contraction", text, re.M)


def planned(presk, program, entry, record, layouts, options):
    """The layouts that are legal, and what a run under them says."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "plan.json"
        while True:
            path.write_text(json.dumps({"target": 512, "realization": record, "layout": layouts}))
            done = run(presk, program, entry, ["--plan", f"@{path}", "--target", "512",
                                               "--compare", "ref", *options])
            refused = REFUSAL.search(done.stderr)
            if not refused:
                return done
            decision, site = refused[1], refused[2]
            same = [key for key in layouts if key == site or key.startswith(site + "@")]
            dropped = [layouts[key].pop(decision) for key in same if decision in layouts[key]]
            if not dropped:
                return done


def main():
    presk, program, entry, realization, *options = sys.argv[1:]
    is_file = realization.endswith(".json")
    record = json.loads(pathlib.Path(realization).read_text("utf-8")) if is_file else realization
    named = f"@{realization}" if is_file else realization
    products = products_of(presk, program, entry, named, options)
    narrow = is_file or realization == "bf16"
    for name, point in points(narrow).items():
        layouts = {product: {**point, "epilogue": True} for product in products}
        for backend in ["kernel"] + (["native"] if AVX512 else []):
            done = planned(presk, program, entry, record, layouts,
                           ["--backend", backend, "--threads", "3", *options])
            if done.returncode != 0 or "the same bits" not in done.stdout:
                print(name, backend, json.dumps(layouts), done.stdout, done.stderr)
                return 1
        count = {key: sum(bool(layout.get(key)) for layout in layouts.values())
                 for key in ("epilogue", "pack")}
        print(f"{name}: {len(products)} products, {count['epilogue']} with an epilogue, "
              f"{count['pack']} packed: the same bits")
    return 0


if __name__ == "__main__":
    sys.exit(main())
