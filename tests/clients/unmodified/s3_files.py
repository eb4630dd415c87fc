"""Reads and writes rasters by GDAL's `/vsis3/`, and Zarr by netCDF-C where it has S3:

    s3_files.py URL ACCESS_KEY SECRET_KEY [read]

With `read` it only reads what it wrote before: GDAL caches which files are missing while it writes.
"""

import os
import subprocess
import sys

import netCDF4
import numpy as np
import rasterio
import zarr

url, access, secret, *only_read = sys.argv[1:]
keys = {"AWS_ACCESS_KEY_ID": access, "AWS_SECRET_ACCESS_KEY": secret, "AWS_REGION": "us-east-1"}
os.environ.update(keys)
done = 0


def same(found, wanted):
    global done
    assert np.array_equal(found, wanted) if isinstance(wanted, np.ndarray) else found == wanted, (found, wanted)
    done += 1


def refused(action):
    global done
    try:
        action()
    except rasterio.errors.RasterioIOError:
        done += 1
    else:
        raise AssertionError("what is missing is opened")


# GDAL: TIFF in one request and in parts, copies, lists, erasing, and its driver for Zarr.
values = np.arange(3 * 400 * 500, dtype="float32").reshape(3, 400, 500)
large = np.random.default_rng(7).integers(0, 255, (1, 3000, 6000), dtype="uint8")
options = {
    "AWS_S3_ENDPOINT": url.split("://")[1],
    "AWS_HTTPS": "NO",
    "AWS_VIRTUAL_HOSTING": "FALSE",
    "CPL_VSIL_USE_TEMP_FILE_FOR_RANDOM_WRITE": "YES",
    "VSIS3_CHUNK_SIZE": "5",
    "VSI_CACHE": "FALSE",
    "CPL_VSIL_CURL_NON_CACHED": "/vsis3/",
}
ZARR = {"V2": "V2.zarr/V2", "V3": "V3.zarr/V3"}
if only_read:
    with rasterio.Env(**options):
        for version in ZARR:
            with rasterio.open(f"/vsis3/lab/gdal/{version}.zarr") as source:
                same(source.read(1), values[0])
    sys.exit()
storage = {"key": access, "secret": secret, "endpoint_url": url}
with rasterio.Env(**options):
    for name, data in (("small", values), ("large", large)):
        count, height, width = data.shape
        profile = {"driver": "GTiff", "count": count, "height": height, "width": width, "dtype": data.dtype, "tiled": True}
        with rasterio.open(f"/vsis3/lab/gdal/{name}.tif", "w", **profile) as target:
            target.write(data)
        with rasterio.open(f"/vsis3/lab/gdal/{name}.tif") as source:
            same(source.read(), data)
            same(source.read(1, window=((100, 200), (50, 90))), data[0, 100:200, 50:90])
    refused(lambda: rasterio.open("/vsis3/lab/gdal/missing.tif"))
    for version, name in ZARR.items():
        profile = {"driver": "Zarr", "count": 1, "height": 400, "width": 500, "dtype": "float32", "format": f"ZARR_{version}"}
        with rasterio.open(f"/vsis3/lab/gdal/{version}.zarr", "w", **profile) as target:
            target.write(values[0], 1)
        same(zarr.open_array(f"s3://lab/gdal/{name}", mode="r", storage_options=storage)[:], values[0])
    subprocess.run([sys.executable, __file__, *sys.argv[1:], "read"], check=True)
    # What zarr-python writes is read by it.
    array = zarr.create_array("s3://lab/gdal/python.zarr", shape=values[0].shape, chunks=(100, 100), dtype="float32", storage_options=storage)
    array[:] = values[0]
    with rasterio.open('ZARR:"/vsis3/lab/gdal/python.zarr"') as source:
        same(source.read(1), values[0])

# netCDF-C of the wheels has no S3: what it says is that, and nothing else.
try:
    with netCDF4.Dataset(f"{url}/lab/netcdf.zarr#mode=zarr,s3", "w") as target:
        target.createDimension("x", 4)
        target.createVariable("a", "f4", ("x",))[:] = [1, 2, 3, 4]
    with netCDF4.Dataset(f"{url}/lab/netcdf.zarr#mode=zarr,s3") as source:
        same(np.asarray(source["a"][:]), np.array([1, 2, 3, 4], "f4"))
    netcdf = "netCDF-C has S3"
except OSError as error:
    assert "not turned on when netCDF was built" in str(error) or "was not built" in str(error), error
    netcdf = f"SKIPPED: netCDF-C {netCDF4.__netcdf4libversion__} of the wheel is built without S3"
print(netcdf)
print(f"{done} results as expected")
