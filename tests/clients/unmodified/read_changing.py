"""Reads an array during continuous writes, with all libraries that read chunks:

    read_changing.py URL

Each write fills the whole array with one number, so every chunk contains one number at any time.
"""

import sys
import warnings

import dask.array as da
import numpy as np
import rasterio
import tensorstore
import xarray as xr
import zarr
from obstore.store import HTTPStore
from zarr.storage import ObjectStore

url, path = sys.argv[1], "busy/array"
warnings.simplefilter("ignore")
place = f"{url}/store/{path}"


def with_tensorstore():
    kvstore = {"driver": "http", "base_url": f"{url}/store/", "path": f"{path}/"}
    return tensorstore.open({"driver": "zarr3", "kvstore": kvstore}).result().read().result()


def with_gdal():
    with rasterio.open(f'ZARR:"/vsicurl/{place}"') as raster:
        return raster.read(1)


LIBRARIES = {
    "zarr-python": lambda: zarr.open_array(place, mode="r")[...],
    "obstore": lambda: zarr.open_array(ObjectStore(HTTPStore.from_url(place, client_options={"allow_http": True})), mode="r")[...],
    "dask": lambda: da.from_zarr(place).compute(),
    "tensorstore": with_tensorstore,
    "GDAL": with_gdal,
}
observed = set()
for name, read in LIBRARIES.items():
    for _ in range(5):
        elements = read()
        assert elements.shape == (500, 500), name
        for y in range(0, 500, 100):
            for x in range(0, 500, 100):
                (number,) = np.unique(elements[y : y + 100, x : x + 100])
                observed.add(number)
assert len(observed) > 5, "no concurrent write occurred"
print(f"{len(LIBRARIES)} libraries read whole chunks")
