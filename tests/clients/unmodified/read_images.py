"""Reads multiscale images with ome-zarr-py:

    read_images.py URL DIR
"""

import pathlib
import sys
from importlib.metadata import version

import numpy as np
import zarr
from ome_zarr.format import FormatV04, FormatV05
from ome_zarr.io import parse_url
from ome_zarr.reader import Multiscales, Reader

url, directory = sys.argv[1], pathlib.Path(sys.argv[2])
compared = 0
for format, ngff in ((2, FormatV04), (3, FormatV05)):
    name = f"cells-v{format}.ome.zarr"
    location = parse_url(f"{url}/store/lab/{name}", mode="r", fmt=ngff())
    assert location is not None and isinstance(location.fmt, ngff), location
    (node,) = Reader(location)()
    (multiscales,) = (spec for spec in node.specs if isinstance(spec, Multiscales))
    assert multiscales.datasets == ["s0", "s1", "s2"], multiscales.datasets
    assert [axis["name"] for axis in node.metadata["axes"]] == ["c", "y", "x"]
    assert [level.shape for level in node.data] == [(2, 128, 96), (2, 64, 48), (2, 32, 24)]
    for dataset, level in zip(multiscales.datasets, node.data):
        wanted = zarr.open_array(directory / name / dataset, mode="r")[...]
        assert level.dtype == wanted.dtype and np.array_equal(level.compute(), wanted), (name, dataset)
        compared += 1
    assert parse_url(f"{url}/store/lab/nothing.ome.zarr", mode="r", fmt=ngff()) is None
print(f"ome-zarr {version('ome-zarr')} compared {compared} levels")
