"""Prints the bytes that the server sends for a labelled slice through `engine="zarrd"`, and those of its elements.

wire.py URL
"""

from __future__ import annotations

import sys
import urllib.request

import numpy as np
import xarray as xr
import zarrd

url = sys.argv[1]


def sent() -> int:
    text = urllib.request.urlopen(f"{url}/metrics").read().decode()
    return int(next(line for line in text.splitlines() if line.startswith("zarrd_http_sent_bytes_total ")).split()[1])


time = np.datetime64("2020-01-01", "ns") + np.arange(400) * np.timedelta64(6, "h")
data = np.random.default_rng(1).integers(0, 1000, (400, 90, 180)) / 10
ds = xr.Dataset(
    {"sst": (("time", "lat", "lon"), data)},
    {"time": time, "lat": np.linspace(89, -89, 90), "lon": np.linspace(0, 358, 180)},
)
ds.sst.encoding = {"dtype": "i2", "scale_factor": 0.1, "_FillValue": -1, "chunks": (50, 30, 60)}
ds.to_zarr(zarrd.ZarrStore(f"{url}/store/wire"), mode="w")
opened = xr.open_dataset(f"{url}/store/wire", engine="zarrd")
# The request for the first figure is not among its own bytes, but among those of the second.
overhead = -sent() + sent()
before = sent()
found = opened.sst.sel(time="2020-02", lat=slice(60, 20), lon=slice(10, 60)).load()
after = sent()
print(after - before - overhead, found.size * 2)
