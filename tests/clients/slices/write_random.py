"""Writes arrays of random shapes, chunks, types and codecs with zarr-python 3:

    write_random.py COUNT STORE NOTES

They test selections rather than codecs. SEED in the environment changes the random choices.
"""

import os
import pathlib
import sys
import warnings

import numpy as np
import zarr
from zarr.codecs import BytesCodec, GzipCodec, TransposeCodec, ZstdCodec
from zarr.core.dtype import VariableLengthUTF8

import expectation

count, store, notes = int(sys.argv[1]), pathlib.Path(sys.argv[2]), expectation.Notes(sys.argv[3], f"zarr-python {zarr.__version__}")
seed = int(os.environ.get("SEED", "1"))
generator = np.random.default_rng(seed)
warnings.simplefilter("ignore")
zarr.config.set({"array.rectilinear_chunks": True})

TYPES = ["bool", "u1", "i2", "f4", "f8", "c8", "c16", "S3", "<U2", "<M8[ms]", [("a", "<i2"), ("b", "u1")], "string"]


def edges(extent):
    """Chunks of different sizes that cover an extent."""
    found = []
    while sum(found) < extent:
        found.append(int(generator.integers(1, extent - sum(found) + 1)))
    return found


for index in range(count):
    rank = int(generator.choice([1, 1, 2, 2, 2, 3, 3, 4, 5]))
    shape = tuple(int(extent) for extent in generator.integers(1, {1: 60, 2: 20, 3: 9, 4: 6, 5: 5}[rank], rank))
    chunks = tuple(int(generator.integers(1, extent + 2)) for extent in shape)
    options = {"chunks": chunks}
    dtype = TYPES[int(generator.integers(0, len(TYPES)))]
    if dtype == "string":
        dtype, data = VariableLengthUTF8(), expectation.strings(shape, index)
    else:
        dtype = np.dtype(dtype)
        data = expectation.elements(dtype, shape, index)
        if generator.random() < 0.3:
            options["serializer"] = BytesCodec(endian="big")
    match int(generator.integers(0, 5)):
        case 0:
            options["shards"] = tuple(chunk * int(generator.integers(1, 4)) for chunk in chunks)
        case 1:
            options["chunks"] = [edges(extent) for extent in shape]
        case 2:
            options["filters"] = TransposeCodec(order=tuple(generator.permutation(rank).tolist()))
    options["compressors"] = [[], GzipCodec(level=1), ZstdCodec()][int(generator.integers(0, 3))]
    name = f"random/{seed}/{index:03}"
    array = zarr.create_array(store / name, shape=shape, dtype=dtype, **options)
    # Part of it is missing.
    region = tuple(slice(0, int(generator.integers((extent + 1) // 2, extent + 1))) for extent in shape)
    array[region] = data[region]
    notes.note(name, zarr.open_array(store / name, mode="r")[...])
notes.close()
