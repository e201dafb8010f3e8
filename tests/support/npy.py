"""Writes a NumPy array file without NumPy: npy.py FILE DESCR EXTENTS VALUES

DESCR is one of NumPy's type strings (<f8, |u1 …), EXTENTS and VALUES are separated by commas;
VALUES may be `range`. --fortran states Fortran order.
"""
import math
import struct
import sys

CODES = {"f8": "d", "f4": "f", "u1": "B", "u2": "H", "u4": "I", "u8": "Q",
         "i1": "b", "i2": "h", "i4": "i", "i8": "q", "b1": "?", "f2": "e"}


def main():
    fortran = "--fortran" in sys.argv
    path, descr, extents, values = [a for a in sys.argv[1:] if a != "--fortran"]
    shape = tuple(int(e) for e in extents.split(",") if e)
    count = math.prod(shape)
    kind = descr[1:]
    number = float if kind[0] == "f" else int
    items = range(count) if values == "range" else [number(v) for v in values.split(",")]
    header = repr({"descr": descr, "fortran_order": fortran, "shape": shape})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    order = ">" if descr[0] == ">" else "<"
    with open(path, "wb") as out:
        out.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode("latin1"))
        out.write(struct.pack(f"{order}{count}{CODES[kind]}", *items))


main()
