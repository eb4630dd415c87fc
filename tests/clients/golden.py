"""Generates the golden checksums and bytes of the tests of crates/codec, with numcodecs and zarr-python:

    golden.py [--write]

The rows of the tests' tables specify the input; the results are regenerated. With `--write` they replace the tables,
otherwise the script fails if a table differs.
"""

import pathlib
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parent / "golden"))

import casts
import chunks
import filters
import known

warnings.simplefilter("ignore")
crate = pathlib.Path(__file__).parents[2] / "crates/codec"
TABLES = {"tests/it/numcodecs/*.rs": filters, "src/codecs/golden.rs": known, "src/codecs/cast_value/golden.rs": casts, "tests/it/chain/rows.rs": chunks}

counts, differing = [], 0
for files, table in TABLES.items():
    total = 0
    for path in sorted(crate.glob(files)):
        before = path.read_text()
        after, rows = table.regenerated(before)
        total += rows
        lines = [(old, new) for old, new in zip(before.splitlines(), after.splitlines(), strict=True) if old != new]
        for old, new in lines[:5]:
            print(f"{path.relative_to(crate)}\n  has   {old[:300]}\n  needs {new[:300]}")
        differing += len(lines)
        if "--write" in sys.argv[1:]:
            path.write_text(after)
    counts.append(f"{total} rows of {files}")
print(f"made {', '.join(counts)}; {differing} differ")
sys.exit(1 if differing and "--write" not in sys.argv[1:] else 0)
