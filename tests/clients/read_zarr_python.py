"""Reads the data of write_zarr_python.py with zarr-python:

    read_zarr_python.py URL DIR
"""

import json
import pathlib
import sys

import numpy as np
import zarr

url, directory = sys.argv[1], pathlib.Path(sys.argv[2])
manifest = json.loads((directory / "manifest.json").read_text())


def expected(entry):
    dtype = np.dtype(entry["dtype"]).newbyteorder("<")
    return np.frombuffer((directory / entry["file"]).read_bytes(), dtype).reshape(entry["shape"])


def same(found, wanted):
    found = np.asarray(found)
    return found.shape == wanted.shape and found.astype(wanted.dtype).tobytes() == np.ascontiguousarray(wanted).tobytes()


compared = selections = 0
for entry in manifest:
    wanted = expected(entry)
    array = zarr.open(entry["url"], mode="r")
    assert array.metadata.zarr_format == entry["format"] and array.dtype.name == entry["dtype"], entry
    assert same(array[...], wanted), entry
    compared += 1
    if wanted.ndim:
        for region in (
            tuple(slice(extent // 4, extent // 4 + 3) for extent in wanted.shape),
            (slice(None, None, 5),),
            (-1,),
        ):
            assert same(array[region], wanted[region]), (entry, region)
            selections += 1

for format in (2, 3):
    root = f"{url}/v{format}.zarr"
    arrays = {entry["url"].removeprefix(f"{root}/") for entry in manifest if entry["format"] == format}
    plain = zarr.open_group(root, mode="r", use_consolidated=False)
    consolidated = zarr.open_consolidated(root, mode="r")
    assert plain.metadata.consolidated_metadata is None
    assert consolidated.metadata.consolidated_metadata is not None
    for group in (plain, consolidated):
        found = {name for name, node in group.members(max_depth=None) if isinstance(node, zarr.Array)}
        assert found == arrays, found ^ arrays
        assert group.attrs["title"] == f"Zarr v{format} über HTTP"
        assert "nothing" not in group
    assert plain.attrs["more"] == [1, 2, {"three": None}]
    name = sorted(arrays)[0]
    entry = next(entry for entry in manifest if entry["url"] == f"{root}/{name}")
    assert same(consolidated[name][...], expected(entry)), name

print(f"zarr-python {zarr.__version__} compared {compared} arrays and {selections} selections")
