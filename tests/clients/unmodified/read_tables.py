"""Reads slices as tables with pandas, by their URLs alone:

    read_tables.py URL DIR
"""

import pathlib
import sys

import numpy as np
import pandas as pd
import zarr

url, directory = sys.argv[1], pathlib.Path(sys.argv[2])
compared = 0


def same(found, wanted):
    global compared
    np.testing.assert_array_equal(found, wanted)
    compared += 1


for path in ("v2.zarr/image", "v3.zarr/image", "v3.zarr/deep/relief", "v3.zarr/unwritten"):
    array, wanted = f"{url}/array/lab/{path}", zarr.open_array(directory / path, mode="r")[...]
    for query, rows, columns in (("", np.s_[:], np.s_[:]), ("&select=3:9,::2", np.s_[3:9], np.s_[::2]), ("&select=1:4,5:6", np.s_[1:4], np.s_[5:6])):
        part = wanted[rows, columns]
        same(pd.read_csv(f"{array}?format=csv{query}", header=None).to_numpy(wanted.dtype), part)
        same(pd.read_json(f"{array}?format=json{query}", orient="values").to_numpy(wanted.dtype), part)
        # The columns are named by their indices.
        table = pd.read_csv(f"{array}?format=csv&header=true{query}")
        same(table.to_numpy(wanted.dtype), part)
        same(table.columns.astype(int), np.arange(wanted.shape[1])[columns])

# Named dimensions produce a header line, which pandas expects.
rain = zarr.open_array(directory / "weather-v3-plain.zarr/rain", mode="r")[...]
table = pd.read_csv(f"{url}/array/lab/weather-v3-plain.zarr/rain?select=2,:,1:4&format=csv")
same(table.to_numpy("f4"), rain[2, :, 1:4])
assert list(table.columns) == ["x_1", "x_2", "x_3"], table.columns
count = zarr.open_array(directory / "weather-v3-plain.zarr/count", mode="r")[...]
array = f"{url}/array/lab/weather-v3-plain.zarr/count"
same(pd.read_csv(f"{array}?format=csv")["count"], count)
same(pd.read_csv(f"{array}?format=csv&header=false", header=None)[0], count)
same(pd.read_json(array, typ="series"), count)
print(f"pandas {pd.__version__} compared {compared} tables")
