"""Writes hierarchies of v3 and v2 with zarr-python 3.

    write_zarr3.py DIR COUNT

Each becomes a directory DIR/3-NUMBER or DIR/32-NUMBER of keys and values.
"""

import pathlib
import random
import sys
import warnings

import zarr
from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec

import nasty

directory, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
warnings.simplefilter("ignore")
DTYPES = {"float64": float("nan"), "int16": -1, "uint8": 7, "float32": float("-inf"), "bool": True, "int64": 0}
COMPRESSORS = [None, ZstdCodec(), GzipCodec(level=1), BloscCodec(cname="lz4")]
for number in range(count):
    rng = random.Random(number)
    format = 2 if number % 4 == 3 else 3
    root = zarr.open_group(directory / f"{'3' if format == 3 else '32'}-{number}", mode="w-", zarr_format=format)
    below = root.create_group("rooms")
    below.create_group("bare")
    for group in (root, below):
        group.attrs.put(nasty.attributes(rng))
    for name in ("rain", "snow", "hail"):
        rank = rng.randrange(1, 4)
        dtype = rng.choice(list(DTYPES))
        shape = tuple(rng.randrange(1, 20) for _ in range(rank))
        options = {"fill_value": DTYPES[dtype], "chunks": tuple(max(1, n // 2) for n in shape)}
        if format == 3:
            options["compressors"] = rng.choice(COMPRESSORS)
            options["chunk_key_encoding"] = {"name": "v2" if number % 2 else "default", "separator": rng.choice("./")}
            if rng.random() < 0.5:
                options["dimension_names"] = list("xyz"[:rank])
        array = rng.choice((root, below)).create_array(name, shape=shape, dtype=dtype, **options)
        array.attrs.put(nasty.attributes(rng))
    if number % 3:
        zarr.consolidate_metadata(root.store)
