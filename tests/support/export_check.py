#!/usr/bin/env python3
"""export_check.py [--all] PRESK FILE ENTRY REALIZATION [ARGS…]: exports an entry as C, compiles it
with every compiler found (gcc, clang) at -O1, or with --all at -O0, -O2 and -O3 -march=native, runs it on the values of
`presk run --save-values`, and compares every byte with presk's own result, of one tensor or of
several. REALIZATION `plan`: ARGS have a --plan. Exit status 1 on a difference. Prints one line."""
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

SIZE = {"f64": 8, "f32": 4, "bf16": 2, "u8": 1, "u16": 2, "u32": 4, "u64": 8}


def call(*command):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def npy_bytes(path):
    raw = path.read_bytes()
    size = struct.unpack("<H", raw[8:10])[0] if raw[6] == 1 else struct.unpack("<I", raw[8:12])[0]
    return raw[(10 if raw[6] == 1 else 12) + size:]


def safetensors(path):
    """Bytes by C name, as `presk export` names arguments and results."""
    raw, values = path.read_bytes(), {}
    size, = struct.unpack("<Q", raw[:8])
    for name, entry in json.loads(raw[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            c_name = re.sub(r"[^A-Za-z0-9_]", "_", f"{path.stem}_{name}")
            values[c_name] = raw[8 + size + begin:8 + size + end]
    return values


def saved(folder):
    values = {path.stem: npy_bytes(path) for path in folder.glob("*.npy")}
    for path in folder.glob("*.safetensors"):
        values.update(safetensors(path))
    return values


def fields(header, kind):
    body = re.search(rf"struct \w+_{kind} {{(.*?)}};", header, re.S).group(1)
    for c_type, name, dtype, shape in re.findall(r"(?:const )?(\w+) \*(\w+); /\* (\w+)\[(.*?)\]", body):
        count = 1
        for extent in filter(None, shape.split(", ")):
            count *= int(extent)
        yield c_type, name, count * SIZE[dtype]


def write_main(folder, name, header, values):
    lines = [f'#include "{name}.h"', "#include <stdio.h>", "#include <stdlib.h>",
             "static void *load(const char *path, size_t size) {",
             "    void *at = aligned_alloc(64, (size / 64 + 1) * 64);",
             '    FILE *f = fopen(path, "rb");',
             "    if (!at || !f || fread(at, 1, size, f) != size) exit(2);",
             "    fclose(f); return at; }", "int main(void) {",
             f"    struct {name}_arguments a; struct {name}_results r;"]
    for c_type, field, size in fields(header, "arguments"):
        data = values[field]
        if c_type == "uint16_t" and len(data) == 2 * size:  # bf16 is saved as f32, exactly
            data = b"".join(data[i + 2:i + 4] for i in range(0, len(data), 4))
        assert len(data) == size, (field, len(data), size)
        (folder / f"{field}.bin").write_bytes(data)
        lines.append(f'    a.{field} = load("{folder}/{field}.bin", {size});')
    results = list(fields(header, "results"))
    for c_type, field, size in results:
        lines.append(f"    r.{field} = malloc({size} + 1);")
    lines.append(f"    {name}(&a, &r, aligned_alloc(64, ({name}_WORKSPACE / 64 + 1) * 64));")
    for c_type, field, size in results:
        lines.append(f"    fwrite(r.{field}, 1, {size}, stdout);")
    lines.append("    return 0; }")
    (folder / "main.c").write_text("\n".join(lines))
    return sum(size for _, _, size in results)


def main():
    arguments = sys.argv[1:]
    every = arguments[0] == "--all"
    levels = [["-O0"], ["-O2"], ["-O3", "-march=native"]] if every else [["-O1"]]
    presk, source, entry, realization, *rest = arguments[every:]
    folder = pathlib.Path(tempfile.mkdtemp(prefix="presk-export-"))
    realize = [] if realization == "plan" else ["--realize", realization]
    common = [source, "--entry", entry, *realize, *rest]
    try:
        call(presk, "export", *common, "-o", folder)
        name = re.sub(r"[^A-Za-z0-9_]", "_", entry)
        header = (folder / f"{name}.h").read_text()
        results = [field for _, field, _ in fields(header, "results")]
        out = folder / ("result.npy" if results == ["result"] else "result.safetensors")
        call(presk, "run", *common, "--seed", "3", "--save-values", folder / "v", "-o", out)
        values = {"result": npy_bytes(out)} if results == ["result"] else safetensors(out)
        expected = b"".join(values[field] for field in results)
        size = write_main(folder, name, header, saved(folder / "v"))
        bf16 = all(c_type == "uint16_t" for c_type, _, _ in fields(header, "results"))
        builds = 0
        for compiler in filter(shutil.which, ("gcc", "clang-19", "clang")):
            for flags in levels:
                program = folder / "program"
                call(compiler, "-std=c99", *flags, "-D_ISOC11_SOURCE", folder / f"{name}.c",
                     folder / "main.c", "-o", program, "-lm")
                actual = subprocess.run([program], stdout=subprocess.PIPE).stdout
                complete = len(actual) == size
                if bf16:  # .npy has no bf16: presk writes it as f32, exactly
                    actual = b"".join(b"\0\0" + actual[i:i + 2] for i in range(0, size, 2))
                if not complete or actual != expected:
                    sys.exit(f"{entry} {realization}: other bytes by {compiler} {' '.join(flags)}")
                builds += 1
        print(f"{entry} {realization}: the same {size} bytes" if builds else "no compiler")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
