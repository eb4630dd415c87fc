"""Writes hierarchies with zarr-python 2: of v2, and of the 2020 draft of v3.

    write_zarr2.py DIR COUNT

Each one is a directory DIR/2-NUMBER or DIR/d-NUMBER of keys and values.
"""

import os
import pathlib
import random
import sys

os.environ["ZARR_V3_EXPERIMENTAL_API"] = "1"
import numcodecs
import zarr

import generated

directory, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
DTYPES = {"<f8": float("nan"), ">i2": -1, "|u1": 7, "<f4": float("-inf"), "|b1": True, "<i8": None}
COMPRESSORS = [None, numcodecs.Zlib(1), numcodecs.Blosc("lz4", 5), numcodecs.Zstd(3)]
for number in range(count):
    rng = random.Random(number)
    is_draft = number % 5 == 4
    path = directory / f"{'d' if is_draft else '2'}-{number}"
    if is_draft:
        root = zarr.group(zarr.DirectoryStoreV3(str(path)), path="lab", zarr_version=3)
    else:
        root = zarr.group(zarr.DirectoryStore(str(path)))
    groups = generated.groups(root, rng)
    for name, dtype, shape in generated.arrays(rng, DTYPES):
        options = {} if is_draft else {"dimension_separator": rng.choice("./"), "order": rng.choice("CF")}
        array = rng.choice(groups).create_dataset(
            name, shape=shape, chunks=[max(1, n // 2) for n in shape], dtype=dtype, fill_value=DTYPES[dtype],
            compressor=rng.choice(COMPRESSORS), **options,
        )
        names = {"_ARRAY_DIMENSIONS": list("xyz"[: len(shape)])}
        array.attrs.put(generated.attributes(rng) | (names if rng.random() < 0.5 else {}))
    if not is_draft and number % 3:
        zarr.consolidate_metadata(root.store)
