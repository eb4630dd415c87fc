"""Reads and writes with a token, in every way in which a library sends one:

    use_token.py URL DIR TOKEN
"""

import pathlib
import sys
import warnings
from base64 import b64encode

import fsspec
import httpx
import numpy as np
import rasterio
import requests
import tensorstore as ts
import xarray as xr
import zarr
from obstore.store import HTTPStore
from rasterio.errors import NotGeoreferencedWarning
from zarr.storage import FsspecStore, ObjectStore

url, directory, token = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
bearer = {"Authorization": f"Bearer {token}"}
basic = {"Authorization": "Basic " + b64encode(f"any:{token}".encode()).decode()}
wanted = zarr.open_array(directory / "v3.zarr/image", mode="r")[...]
place = f"{url}/store/lab/v3.zarr/image"
ways = 0


def same(elements):
    global ways
    assert np.array_equal(np.asarray(elements), wanted)
    ways += 1


assert requests.get(f"{place}/zarr.json").status_code == 401
assert requests.get(f"{place}/zarr.json", headers={"Authorization": "Bearer zarrd_1_x_y"}).status_code == 401
same(zarr.open_array(FsspecStore.from_url(place, storage_options={"headers": bearer}), mode="r")[...])
same(zarr.open_array(ObjectStore(HTTPStore(place, client_options={"default_headers": basic, "allow_http": True}), read_only=True))[...])
spec = {"driver": "zarr3", "kvstore": {"driver": "http", "base_url": f"{url}/store/", "path": "lab/v3.zarr/image/", "headers": [f"Authorization: Bearer {token}"]}}
same(ts.open(spec).result().read().result())
same(np.frombuffer(requests.get(f"{url}/array/lab/v3.zarr/image?format=raw", auth=("any", token)).content, wanted.dtype).reshape(wanted.shape))
same(np.frombuffer(httpx.get(f"{url}/array/lab/v3.zarr/image?format=raw", headers=bearer).content, wanted.dtype).reshape(wanted.shape))
with fsspec.open(f"{place}/zarr.json", headers=bearer) as file:
    assert file.read() == (directory / "v3.zarr/image/zarr.json").read_bytes()
ways += 1

# GDAL takes a chunk for missing if it is refused, or if it asks twice and so is first refused: all elements are the fill value.
warnings.simplefilter("ignore", NotGeoreferencedWarning)
raster = f'ZARR:"/vsicurl/{place}"'
with rasterio.Env(GDAL_HTTP_AUTH="ANY", GDAL_HTTP_USERPWD=f"any:{token}"), rasterio.open(raster) as image:
    assert wanted.any() and not image.read(1).any(), "GDAL reads with ANY; say so in docs/reference/clients.md"
reader = requests.post(f"{url}/token", json={"name": "reader", "allow": ["read:lab/"]}, headers=bearer).json()
raster = raster.replace("v3.zarr", "v2.zarr")
with rasterio.Env(GDAL_HTTP_USERPWD=f"any:{reader['token']}"), rasterio.open(raster) as image:
    assert requests.delete(f"{url}/token/{reader['id']}", headers=bearer).status_code == 204
    assert not image.read(1).any(), "GDAL reports refused chunks; say so in docs/reference/clients.md"

# Written with a token, and read back by xarray with the other scheme.
document = {"zarr_format": 3, "node_type": "group", "attributes": {}, "members": {"x": {
    "zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "int32", "fill_value": 0, "attributes": {},
    "dimension_names": ["i"], "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
}}}
assert requests.put(f"{url}/node/made", json=document).status_code == 401
assert requests.put(f"{url}/node/made", json=document, headers=bearer).status_code == 201
assert requests.put(f"{url}/array/made/x", json=[1, 2, 3, 4], auth=("any", token)).status_code == 200
dataset = xr.open_zarr(f"{url}/store/made", storage_options={"headers": basic}, consolidated=False)
assert dataset.x.values.tolist() == [1, 2, 3, 4]
ways += 1
print(f"{ways} ways to send a token")
