"""Reads one inner chunk of an 8 MiB shard, and nothing else:

    read_part_of_shard.py LIBRARY URL DIR
"""

import json
import pathlib
import sys

import numpy as np

library, url, directory = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
manifest = json.loads((directory / "manifest.json").read_text())
entry = next(entry for entry in manifest if entry["url"].endswith("/shards/large"))
wanted = np.frombuffer((directory / entry["file"]).read_bytes(), "<f8").reshape(entry["shape"])
region = (slice(640, 704), slice(128, 192))
if library == "zarr":
    import zarr

    found = zarr.open_array(entry["url"], mode="r")[region]
else:
    import tensorstore as ts

    base, _, path = entry["url"].partition("/store/")
    kvstore = {"driver": "http", "base_url": f"{base}/store/", "path": f"{path}/"}
    found = ts.open({"driver": "zarr3", "kvstore": kvstore}, read=True, open=True).result()[region].read().result()
assert np.array_equal(found, wanted[region])
