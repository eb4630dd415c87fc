"""Writes hierarchies with zarr-python 2: of v2, and of the 2020 draft of v3.

    write_zarr2.py DIR COUNT

Each becomes a directory DIR/2-NUMBER or DIR/d-NUMBER of keys and values.
"""

import os
import pathlib
import random
import sys

os.environ["ZARR_V3_EXPERIMENTAL_API"] = "1"
import numcodecs
import zarr

import nasty

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
    below = root.create_group("rooms")
    below.create_group("bare")
    for group in (root, below):
        group.attrs.put(nasty.attributes(rng))
    for name in ("rain", "snow", "hail"):
        rank = rng.randrange(1, 4)
        dtype = rng.choice(list(DTYPES))
        shape = [rng.randrange(1, 20) for _ in range(rank)]
        options = {} if is_draft else {"dimension_separator": rng.choice("./"), "order": rng.choice("CF")}
        group = rng.choice((root, below))
        array = group.create_dataset(
            name, shape=shape, chunks=[max(1, n // 2) for n in shape], dtype=dtype, fill_value=DTYPES[dtype],
            compressor=rng.choice(COMPRESSORS), **options,
        )
        array.attrs.put(nasty.attributes(rng) | ({"_ARRAY_DIMENSIONS": list("xyz"[:rank])} if rng.random() < 0.5 else {}))
    if not is_draft and number % 3:
        zarr.consolidate_metadata(root.store)
