"""Prints the elements of an array that servers appended to, as zarr-python reads them from the bucket's values.

Usage: appended.py URL
"""

import json
import sys

import zarr
from zarr.storage import FsspecStore

array = zarr.open_array(FsspecStore.from_url(sys.argv[1], read_only=True), mode="r")
print(json.dumps(array[:].tolist()))
