"""Generates crates/meta/src/data_type/tests/small_numbers.json, with ml_dtypes: the values of all codes of each type of at
most 8 bits, and the codes of numbers that are rounded to it (`null` if they are too big).
"""

import json
import pathlib

import ml_dtypes
import numpy as np

NAMES = ["int2", "int4", "uint2", "uint4", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3", "float8_e4m3fn"]
NAMES += ["float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"]
NUMBERS = [sign * n * 2.0**e for e in (-18, *range(-9, 10), 15, 16) for n in (1, 1.0625, 1.125, 1.5, 1.625) for sign in (1, -1)]


def text(value):
    return "NaN" if np.isnan(value) else "Infinity" if value == np.inf else "-Infinity" if value == -np.inf else float(value)


def table(name):
    dtype = getattr(ml_dtypes, name)
    bits = (ml_dtypes.iinfo(dtype) if "int" in name else ml_dtypes.finfo(dtype)).bits
    codes = np.arange(2**bits, dtype="u1")
    values = codes.view(dtype).astype("f4")
    found = {"values": [text(value) for value in values]}
    if "int" not in name:
        highest = np.nanmax(np.where(np.isfinite(values), values, 0))
        below = np.sort(values[np.isfinite(values)])[-2]
        numbers = [n for n in NUMBERS if name != "float8_e8m0fnu" or n > 0]
        rounded = np.array(numbers, "f4").astype(dtype)
        # ml_dtypes has the highest number for all that are too big, if a type has neither NaN nor infinity.
        big = [not np.isfinite(float(r)) or abs(n) > highest + (highest - below) / 2 for n, r in zip(numbers, rounded)]
        found["rounded"] = [[n, None if b else int(r)] for n, r, b in zip(numbers, rounded.view("u1"), big)]
    return found


path = pathlib.Path(__file__).parents[2] / "crates/meta/src/data_type/tests/small_numbers.json"
path.write_text("{\n" + ",\n".join(f'"{name}": {json.dumps(table(name), separators=(",", ":"))}' for name in NAMES) + "\n}\n")
