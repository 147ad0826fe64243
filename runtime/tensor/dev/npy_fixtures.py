#!/usr/bin/env python3
"""Writes tests/fixtures/*.npy with NumPy; needed only when a fixture is added.

Every fixture but the special ones holds arange(24) mapped into its dtype and shaped (2, 3, 4).
With --check DIR it reads the files that the test `written_files` leaves in DIR and compares them.
"""
import pathlib
import sys
import numpy as np
from numpy.lib import format as npy

here = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures"
base = np.arange(24).reshape(2, 3, 4)


def values(dtype):
    if dtype == np.bool_:
        return base % 3 == 1
    if np.dtype(dtype).kind == "f":
        return ((base - 11) / 8).astype(dtype)
    if np.dtype(dtype).kind == "i":
        return (base - 11).astype(dtype)
    return base.astype(dtype)


def save(name, array, version=None):
    with open(here / f"{name}.npy", "wb") as f:
        npy.write_array(f, array, version=version)


plain = ["bool", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4"]
if len(sys.argv) == 3 and sys.argv[1] == "--check":
    for code in plain:
        got = np.load(pathlib.Path(sys.argv[2]) / f"{code}.npy")
        assert got.dtype == np.dtype(code) and (got == values(np.dtype(code).type)).all(), code
    got = np.load(pathlib.Path(sys.argv[2]) / "bf16.npy")
    assert got.dtype.str == "|V2" and (got.view("<u2") == np.load(here / "bf16_as_u2.npy")).all()
    sys.exit()

here.mkdir(exist_ok=True)
for code in plain:
    save(code, values(np.dtype(code).type))
    if code in ("i2", "u4", "i8", "f2", "f4"):
        save(f"{code}_big", values(np.dtype(code).type).astype(f">{code}"))
    if code in ("u1", "f4"):
        save(f"{code}_fortran", np.asfortranarray(values(np.dtype(code).type)))
save("i2_big_fortran", np.asfortranarray(values(np.int16).astype(">i2")))
save("v2", values(np.float32), version=(2, 0))
save("v3", values(np.float32), version=(3, 0))
save("scalar", np.array(2.5, np.float32))
save("vector", np.arange(5, dtype=np.int32))
save("empty", np.zeros((3, 0, 2), np.float16))
bf16 = (values(np.float32).view(np.uint32) >> 16).astype(np.uint16)  # eighths below 2 are exact in bf16
save("bf16_as_u2", bf16)
save("bf16_as_v2", bf16.view("V2"))
save("bad_f8", values(np.float64))
save("bad_complex", np.zeros(2, np.complex64))
save("bad_text", np.array(["é", "b"]))
save("bad_object", np.array([None, {}], dtype=object))
save("bad_structured", np.zeros(2, dtype=[("a", "<f4"), ("b,'", "<i4", (2,))]))
save("bad_date", np.zeros(2, "M8[us]"))
save("bad_raw", np.zeros(2, "V5"))
