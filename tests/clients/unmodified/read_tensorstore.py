"""Reads values and arrays through tensorstore's HTTP key-value store:

    read_tensorstore.py URL DIR
"""

import pathlib
import sys
from importlib.metadata import version

import numpy as np
import tensorstore as ts
import zarr

url, directory = sys.argv[1], pathlib.Path(sys.argv[2])
kvstore = {"driver": "http", "base_url": f"{url}/store/", "path": "lab/"}
values = ts.KvStore.open(kvstore).result()
files = [path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()]
for name, read in [(name, values.read(name)) for name in files]:
    assert read.result().state == "value" and read.result().value == (directory / name).read_bytes(), name
assert values.read("nothing").result().state == "missing"
stamp = values.read("large.bin").result().stamp
assert values.read("large.bin", if_not_equal=stamp.generation).result().state == "unspecified"
try:
    values.list().result()
except NotImplementedError as error:
    assert "does not support listing" in str(error), error
else:
    raise AssertionError("tensorstore lists; say so in docs/reference/clients.md")

arrays = [(f"v2.zarr/{name}", "zarr") for name in ("image", "deep/counts", "unwritten")]
arrays += [(f"v3.zarr/{name}", "zarr3") for name in ("image", "deep/counts", "unwritten", "sharded")]
arrays += [("odd names/50% a+b ü.zarr/x y&z", "zarr3")]
for path, driver in arrays:
    array = ts.open({"driver": driver, "kvstore": kvstore | {"path": f"lab/{path}/"}}).result()
    wanted = zarr.open_array(directory / path, mode="r")[...]
    assert np.array_equal(array.read().result(), wanted) and np.array_equal(array[1:3, ::2].read().result(), wanted[1:3, ::2]), path
print(f"tensorstore {version('tensorstore')} compared {len(files)} values and {len(arrays)} arrays")
