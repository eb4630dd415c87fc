"""Reads arrays with the GDAL of rasterio's wheels through /vsicurl/:

    read_rasters.py URL DIR [OPTION=VALUE...]

The options are GDAL's.
"""

import os
import pathlib
import sys
import warnings
from urllib.parse import quote

import numpy as np
import rasterio
import zarr
from rasterio.errors import NotGeoreferencedWarning, RasterioIOError
from rasterio.windows import Window

url, directory = sys.argv[1], pathlib.Path(sys.argv[2])
os.environ.update(option.split("=", 1) for option in sys.argv[3:])
warnings.simplefilter("ignore", NotGeoreferencedWarning)
compared = 0


def name(path, rest=""):
    return f'ZARR:"/vsicurl/{url}/store/lab/{path}"{rest}'


def compare(path, rest, wanted):
    global compared
    with rasterio.open(name(path, rest)) as raster:
        assert raster.shape == wanted.shape[-2:] and raster.dtypes[0] == wanted.dtype, (path, raster.shape, raster.dtypes)
        found = raster.read() if wanted.ndim == 3 else raster.read(1)
        assert np.array_equal(found, wanted), path
        window = raster.read(1, window=Window(3, 1, 5, 4))
        assert np.array_equal(window, (wanted[0] if wanted.ndim == 3 else wanted)[1:5, 3:8]), path
    compared += 1


for format in (2, 3):
    group = directory / f"v{format}.zarr"
    # It discovers arrays by the links of listings.
    with rasterio.open(name(f"v{format}.zarr")) as dataset:
        found = {subdataset.rsplit(":", 1)[1] for subdataset in dataset.subdatasets if "counts" not in subdataset}
    assert found >= {"/image", "/deep/relief", "/unwritten"}, found
    for path in ("image", "deep/relief", "unwritten"):
        wanted = zarr.open_array(group / path, mode="r")[...]
        compare(f"v{format}.zarr/{path}", "", wanted)
        compare(f"v{format}.zarr", f":/{path}", wanted)
    for kind in ("consolidated", "plain"):
        weather = f"weather-v{format}-{kind}.zarr"
        wanted = zarr.open_array(directory / weather / "rain", mode="r")[...]
        compare(weather, ":/rain", wanted)
        compare(weather, ":/rain:2", wanted[2])
        with rasterio.open(name(weather, ":/rain:2")) as raster:
            assert np.allclose(raster.transform * (0.5, 0.5), (5, 50)), raster.transform
compare(quote("odd names/50% a+b ü.zarr/x y&z"), "", np.arange(30, dtype="f8").reshape(5, 6))
# A slice as an image whose gray values are the numbers.
with rasterio.open(f"/vsicurl/{url}/array/lab/v3.zarr/image?select=10:50&format=png&min=0&max=255") as picture:
    assert np.array_equal(picture.read(1), zarr.open_array(directory / "v3.zarr/image", mode="r")[10:50])
    compared += 1
for missing, reason in (("v3.zarr/nothing", "No such file"), ("v3.zarr/sharded", "Unsupported codec: sharding_indexed")):
    try:
        rasterio.open(name(missing)).close()
    except RasterioIOError as error:
        assert reason in str(error), error
        continue
    raise AssertionError(f"{missing} is read; say so in docs/reference/clients.md")
print(f"GDAL {rasterio.__gdal_version__} compared {compared} rasters")
