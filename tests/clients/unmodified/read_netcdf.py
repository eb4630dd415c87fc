"""Reads a netCDF-4 file by byte ranges, and tries the same with Zarr:

    read_netcdf.py URL DIR
"""

import pathlib
import sys

import netCDF4
import numpy as np
import xarray as xr

url, directory = sys.argv[1], pathlib.Path(sys.argv[2])
compared = 0
with netCDF4.Dataset(f"{url}/store/lab/weather.nc#mode=bytes") as remote, netCDF4.Dataset(directory / "weather.nc") as local:
    assert remote.data_model == "NETCDF4" and remote.title == "Wetter"
    assert list(remote.variables) == ["rain", "count", "time", "y", "x"], remote.variables
    for name, variable in remote.variables.items():
        assert variable.dtype == local[name].dtype and variable.ncattrs() == local[name].ncattrs(), name
        assert np.array_equal(variable[...].filled(), local[name][...].filled()), name
        compared += 1
    assert np.array_equal(remote["rain"][1:3, ::2, -1], local["rain"][1:3, ::2, -1])
with xr.open_dataset(f"{url}/store/lab/weather.nc#mode=bytes", engine="netcdf4") as remote:
    xr.testing.assert_identical(remote.load(), xr.open_dataset(directory / "weather.nc", engine="netcdf4").load())

# libnetcdf reads Zarr from directories, and over the network only from S3, for which the wheels have no support.
rejected = 0
for mode in ("zarr", "zarr,consolidated", "nczarr,zarr"):
    try:
        netCDF4.Dataset(f"{url}/store/lab/weather-v2-consolidated.zarr#mode={mode}")
    except OSError as error:
        assert error.errno == -74 and "Malformed URL" in error.strerror, error
        rejected += 1
for mode in ("zarr,s3",):
    try:
        netCDF4.Dataset(f"{url}/store/lab/weather-v2-consolidated.zarr#mode={mode}")
    except OSError as error:
        assert error.errno == -128 and "not turned on" in error.strerror, error
        rejected += 1
with netCDF4.Dataset(f"file://{directory}/weather-v2-plain.zarr#mode=zarr,file") as copied:
    assert copied["rain"].shape == (6, 8, 10)
print(f"netCDF4 {netCDF4.__version__} with libnetcdf {netCDF4.__netcdf4libversion__} compared {compared} variables, {rejected} modes rejected")
