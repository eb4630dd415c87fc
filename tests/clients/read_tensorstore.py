"""Reads the data of write_zarr_python.py with tensorstore's http driver:

    read_tensorstore.py DIR
"""

import importlib.metadata
import json
import pathlib
import sys

import numpy as np
import tensorstore as ts

directory = pathlib.Path(sys.argv[1])
manifest = json.loads((directory / "manifest.json").read_text())
compared = sharded = 0
for entry in manifest:
    dtype = np.dtype(entry["dtype"]).newbyteorder("<")
    wanted = np.frombuffer((directory / entry["file"]).read_bytes(), dtype).reshape(entry["shape"])
    driver = {2: "zarr", 3: "zarr3"}[entry["format"]]
    base, _, path = entry["url"].partition("/store/")
    array = ts.open(
        {"driver": driver, "kvstore": {"driver": "http", "base_url": f"{base}/store/", "path": f"{path}/"}},
        read=True,
        open=True,
    ).result()
    found = array.read().result()
    assert found.shape == wanted.shape, entry
    assert np.ascontiguousarray(found.astype(dtype)).tobytes() == wanted.tobytes(), entry
    if wanted.ndim:
        region = tuple(slice(extent // 4, extent // 4 + 3) for extent in wanted.shape)
        part = array[region].read().result()
        assert np.array_equal(part, wanted[region]), entry
    compared += 1
    sharded += entry["sharded"]

print(f"tensorstore {importlib.metadata.version('tensorstore')} compared {compared} arrays, {sharded} of them sharded")
