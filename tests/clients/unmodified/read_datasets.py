"""Reads datasets with xarray and dask, with and without consolidated metadata:

    read_datasets.py URL DIR
"""

import pathlib
import sys
import warnings

import dask
import dask.array as da
import numpy as np
import xarray as xr
import zarr
from obstore.store import HTTPStore
from zarr.storage import ObjectStore

url, directory = sys.argv[1], pathlib.Path(sys.argv[2])
warnings.filterwarnings("ignore", message="Failed to open Zarr store with consolidated metadata")
compared = unlisted = 0


def object_store(name):
    return ObjectStore(HTTPStore.from_url(f"{url}/store/lab/{name}", client_options={"allow_http": True}), read_only=True)


def compare(opened, wanted):
    global compared
    with opened as dataset:
        xr.testing.assert_identical(dataset.load(), wanted)
    compared += 1


for format in (2, 3):
    for kind in ("consolidated", "plain"):
        name = f"weather-v{format}-{kind}.zarr"
        wanted = xr.open_zarr(directory / name, chunks=None).load()
        assert set(wanted.variables) == {"rain", "count", "time", "y", "x"} and wanted.attrs == {"title": "Wetter"}
        for consolidated in (None, True, False):
            if consolidated and kind == "plain":
                for store in (f"{url}/store/lab/{name}", object_store(name)):
                    try:
                        xr.open_zarr(store, consolidated=True)
                    except ValueError:
                        continue
                    raise AssertionError(f"{name} has consolidated metadata")
                continue
            compare(xr.open_zarr(f"{url}/store/lab/{name}", consolidated=consolidated), wanted)
            if consolidated is False or kind == "plain":
                # Of a listing it takes the whole path for the key, which is right at a root only.
                try:
                    xr.open_zarr(object_store(name), consolidated=consolidated)
                except Exception as error:
                    assert "PROPFIND" in str(error) and "405" in str(error) and "--dav-listen" in str(error), error
                    unlisted += 1
                    continue
                raise AssertionError("obstore lists below a path; say so in docs/reference/clients.md")
            compare(xr.open_zarr(object_store(name), consolidated=consolidated), wanted)
        # Only the chunks of a selection are read.
        lazy = xr.open_zarr(f"{url}/store/lab/{name}", chunks={})
        assert lazy.rain.chunks == ((2, 2, 2), (4, 4), (5, 5)), lazy.rain.chunks
        part = {"time": slice("2026-01-02", "2026-01-04"), "x": slice(5.2, 5.7)}
        xr.testing.assert_identical(lazy.rain.sel(part).compute(), wanted.rain.sel(part))
        compared += 1

    for path in ("image", "deep/relief", "deep/counts", "unwritten") + (("sharded",) if format == 3 else ()):
        wanted = zarr.open_array(directory / f"v{format}.zarr" / path, mode="r")[...]
        for lazy in (
            da.from_zarr(f"{url}/store/lab/v{format}.zarr/{path}"),
            da.from_zarr(f"{url}/store/lab/v{format}.zarr", component=path),
            da.from_zarr(zarr.open_array(object_store(f"v{format}.zarr/{path}"), mode="r")),
        ):
            assert lazy.npartitions > 1 and np.array_equal(lazy.compute(), wanted), path
            np.testing.assert_allclose(lazy.sum(dtype="f8").compute(), wanted.sum(dtype="f8"))
            compared += 1
print(f"xarray {xr.__version__} and dask {dask.__version__} compared {compared} datasets and arrays, {unlisted} not listed")
