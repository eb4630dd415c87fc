"""Writes the files that unmodified clients read from a server:

    write_sample.py DIR

DIR/lab contains hierarchies of both formats, datasets with and without consolidated metadata, a multiscale image, a
netCDF-4 file, and files whose names need escaping; DIR/expected contains elements as raw bytes, and some as .npy.
"""

import pathlib
import sys
import warnings

import numpy as np
import xarray as xr
import zarr
from ome_zarr.writer import write_image

warnings.simplefilter("ignore")
directory = pathlib.Path(sys.argv[1])
lab, expected = directory / "lab", directory / "expected"
random = np.random.default_rng(20261122)

ODD_NAMES = ["a b.txt", "a+b.txt", "50%.txt", "%41.txt", "ü/日本.txt", "what?x=1&y=2", "half;half", "a#b", "'quoted' \"twice\"", "back\\slash", "[x]{y}~^`|"]
ODD_NAMES += ["<b>bold</b>", "a:b", "$HOME*", "&amp;", "@,=!()"]


def write(group, name, data, chunks, **options):
    group.create_array(name, shape=data.shape, chunks=chunks, dtype=data.dtype, **options)[...] = data


def hierarchy(format):
    root = zarr.open_group(lab / f"v{format}.zarr", mode="w", zarr_format=format, attributes={"title": f"Über v{format}"})
    root.create_group("empty")
    write(root, "image", random.integers(1, 256, (60, 80)).astype("u1"), (16, 32))
    write(root, "deep/relief", random.normal(1, 100, (60, 80)).astype("f4"), (16, 32))
    write(root, "deep/counts", random.integers(1, 2**40, (7, 8, 9)).astype("i8"), (3, 3, 3))
    root.create_array("unwritten", shape=(10, 20), chunks=(5, 5), dtype="i2", fill_value=-3)
    if format == 3:
        write(root, "sharded", np.arange(4096, dtype="i4").reshape(64, 64), (8, 8), shards=(32, 32))
    return root


def weather():
    coordinates = {
        "time": np.arange("2026-01-01", "2026-01-07", dtype="M8[D]").astype("M8[ns]"),
        "y": np.linspace(50, 51, 8),
        "x": np.linspace(5, 6, 10),
    }
    rain = ("time", "y", "x"), random.normal(10, 3, (6, 8, 10)).astype("f4"), {"units": "mm"}
    count = "time", random.integers(1, 100, 6), {"long_name": "zählt"}
    return xr.Dataset({"rain": rain, "count": count}, coords=coordinates, attrs={"title": "Wetter"})


for format in (2, 3):
    hierarchy(format)
    for consolidated in (True, False):
        name = f"weather-v{format}-{'consolidated' if consolidated else 'plain'}.zarr"
        weather().to_zarr(lab / name, zarr_format=format, consolidated=consolidated, encoding={"rain": {"chunks": (2, 4, 5)}})
    pixels = random.integers(0, 4096, (2, 128, 96)).astype("u2")
    group = zarr.open_group(lab / f"cells-v{format}.ome.zarr", mode="w", zarr_format=format)
    write_image(pixels, group, axes="cyx", scale_factors=[2, 4], storage_options={"chunks": (1, 32, 32)})
weather().to_netcdf(lab / "weather.nc", engine="netcdf4")

for format in (2, 3):
    for path, array in zarr.open_group(lab / f"v{format}.zarr", mode="r").members(max_depth=None):
        if isinstance(array, zarr.Array):
            file = expected / f"v{format}.zarr" / f"{path}.raw"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(array[...].tobytes())

large = random.integers(0, 2**32, (1024, 1024), dtype="u4")
write(zarr.open_group(lab / "large.zarr", mode="w"), "numbers", large, (256, 256))
np.save(expected / "numbers.npy", large)
(expected / "numbers.raw").write_bytes(large.astype("<u4").tobytes())
(lab / "large.bin").write_bytes(random.bytes(4 << 20))

for number, name in enumerate(ODD_NAMES):
    path = lab / "odd names" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(f"{number}: {name}".encode() * 3)
write(zarr.open_group(lab / "odd names/50% a+b ü.zarr", mode="w"), "x y&z", np.arange(30, dtype="f8").reshape(5, 6), (2, 3))

print(sum(path.is_file() for path in lab.rglob("*")), "files")
