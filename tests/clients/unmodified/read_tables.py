"""Reads slices as tables with pandas, by their URLs alone: read_tables.py URL DIR"""

import pathlib
import sys

import numpy as np
import pandas as pd
import zarr

url, directory = sys.argv[1], pathlib.Path(sys.argv[2])
compared = 0


def same(found, wanted, **options):
    global compared
    np.testing.assert_array_equal(found, wanted, **options)
    compared += 1


for path in ("v2.zarr/image", "v3.zarr/image", "v3.zarr/deep/relief", "v3.zarr/unwritten"):
    array, wanted = f"{url}/array/lab/{path}", zarr.open_array(directory / path, mode="r")[...]
    for query, part in (("", wanted), ("&select=3:9,::2", wanted[3:9, ::2]), ("&select=1:4,0:1", wanted[1:4, 0:1])):
        same(pd.read_csv(f"{array}?format=csv{query}", header=None).to_numpy(wanted.dtype), part)
        same(pd.read_json(f"{array}?format=json{query}", orient="values").to_numpy(wanted.dtype), part)
    same(pd.read_csv(f"{array}?format=csv&select=0:3", header=None, compression=None, dtype=str).shape, (3, wanted.shape[1]))

# One dimension is a column.
times = zarr.open_array(directory / "weather-v3-plain.zarr/count", mode="r")[...]
column = pd.read_csv(f"{url}/array/lab/weather-v3-plain.zarr/count?format=csv", header=None)
same(column.to_numpy().ravel(), times)
series = pd.read_json(f"{url}/array/lab/weather-v3-plain.zarr/count", typ="series")
same(series, times)
print(f"pandas {pd.__version__} compared {compared} tables")
