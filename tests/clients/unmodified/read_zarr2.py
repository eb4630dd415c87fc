"""Reads a v2 hierarchy with zarr-python 2 through fsspec:

    read_zarr2.py URL DIR
"""

import pathlib
import sys
from urllib.parse import quote

import fsspec
import numpy as np
import zarr

url, directory = sys.argv[1], pathlib.Path(sys.argv[2])
remote = zarr.open_group(f"{url}/store/lab/v2.zarr", mode="r")
local = zarr.open_group(str(directory / "v2.zarr"), mode="r")
arrays = {}
for group, found in ((remote, arrays.setdefault("remote", {})), (local, arrays.setdefault("local", {}))):
    group.visititems(lambda name, node: found.update({name: node}))
    assert group.attrs["title"] == "Über v2"
assert arrays["remote"].keys() == arrays["local"].keys() and len(arrays["local"]) == 6, arrays["remote"].keys()
compared = 0
for name, wanted in arrays["local"].items():
    if isinstance(wanted, zarr.Array):
        found = arrays["remote"][name]
        assert found.dtype == wanted.dtype and np.array_equal(found[...], wanted[...]), name
        assert np.array_equal(found[1:4, ::2], wanted[1:4, ::2]) and found.nchunks_initialized == wanted.nchunks_initialized
        compared += 1
for name in ("weather-v2-consolidated.zarr",):
    consolidated = zarr.open_consolidated(f"{url}/store/lab/{name}", mode="r")
    wanted = zarr.open_group(str(directory / name), mode="r")
    assert sorted(consolidated) == ["count", "rain", "time", "x", "y"]
    for array in consolidated:
        assert np.array_equal(consolidated[array][...], wanted[array][...], equal_nan=True), array
        compared += 1
written = zarr.open(f"{url}/store/{quote('scratch/a b')}", mode="w", shape=(5, 6), chunks=(2, 2), dtype="i4")
written[...] = np.arange(1, 31).reshape(5, 6)
again = zarr.open(f"{url}/store/{quote('scratch/a b')}", mode="r")
assert np.array_equal(again[...], np.arange(1, 31).reshape(5, 6))
print(f"zarr-python {zarr.__version__} with fsspec {fsspec.__version__} compared {compared + 1} arrays")
