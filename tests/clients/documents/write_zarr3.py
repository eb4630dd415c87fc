"""Writes hierarchies of v3 and v2 with zarr-python 3.

    write_zarr3.py DIR COUNT

Each one is a directory DIR/3-NUMBER or DIR/32-NUMBER of keys and values.
"""

import pathlib
import random
import sys
import warnings

import zarr
from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec

import generated

directory, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
warnings.simplefilter("ignore")
DTYPES = {"float64": float("nan"), "int16": -1, "uint8": 7, "float32": float("-inf"), "bool": True, "int64": 0}
COMPRESSORS = [None, ZstdCodec(), GzipCodec(level=1), BloscCodec(cname="lz4")]
for number in range(count):
    rng = random.Random(number)
    format = 2 if number % 4 == 3 else 3
    root = zarr.open_group(directory / f"{'3' if format == 3 else '32'}-{number}", mode="w-", zarr_format=format)
    groups = generated.groups(root, rng)
    for name, dtype, shape in generated.arrays(rng, DTYPES):
        options = {"fill_value": DTYPES[dtype], "chunks": tuple(max(1, n // 2) for n in shape)}
        if format == 3:
            options["compressors"] = rng.choice(COMPRESSORS)
            options["chunk_key_encoding"] = {"name": "v2" if number % 2 else "default", "separator": rng.choice("./")}
            if rng.random() < 0.5:
                options["dimension_names"] = list("xyz"[: len(shape)])
        array = rng.choice(groups).create_array(name, shape=shape, dtype=dtype, **options)
        array.attrs.put(generated.attributes(rng))
    if number % 3:
        zarr.consolidate_metadata(root.store)
