"""Erases with zarr-python over fsspec, which needs a few additional lines:

    erase_zarr_python.py URL

fsspec's HTTP file system reads, writes (PUT) and lists, but cannot erase.
"""

import sys

import fsspec
import numpy as np
import zarr
from fsspec.implementations.http import HTTPFileSystem

url = sys.argv[1]


class ErasingHTTPFileSystem(HTTPFileSystem):
    async def _rm_file(self, path, **kwargs):
        session = await self.set_session()
        async with session.delete(self.encode_url(path)) as answer:
            if answer.status != 409:  # a group or an array, whose keys are erased one by one
                answer.raise_for_status()


def use(root, format):
    group = zarr.open_group(f"{root}/v{format}.zarr", mode="a", zarr_format=format)
    array = group.create_array("below/array", shape=(10, 10), chunks=(5, 5), dtype="i4")
    array[...] = np.arange(1, 101).reshape(10, 10)
    return group, array


def rejected(change):
    try:
        change()
    except NotImplementedError:
        return
    raise AssertionError("fsspec's HTTP file system has learnt to erase: docs/start/python.md need not tell how to teach it")


for format in (2, 3):
    group, array = use(f"{url}/plain", format)
    # Chunks that become equal to the fill value are erased, unless they are configured to be written.
    rejected(lambda: array.__setitem__(slice(0, 5), 0))
    rejected(lambda: group.__delitem__("below"))
    with zarr.config.set({"array.write_empty_chunks": True}):
        array = zarr.open_array(f"{url}/plain/v{format}.zarr", path="below/array", mode="r+")
        array[0:5] = 0
    assert array[...].sum() == sum(range(51, 101))

fsspec.register_implementation("http", ErasingHTTPFileSystem, clobber=True)
for format in (2, 3):
    group, array = use(f"{url}/erasing", format)
    array[0:5] = 0
    assert array[...].sum() == sum(range(51, 101))
    assert array.nchunks_initialized == 2
    array.resize((5, 5))
    assert array.nchunks_initialized == 0
    del group["below"]
    assert list(group.keys()) == [] and "below" not in group
    use(f"{url}/erasing", format)
    emptied = zarr.open_group(f"{url}/erasing/v{format}.zarr", mode="w", zarr_format=format)
    assert list(emptied.members(max_depth=None)) == []

print(f"zarr-python {zarr.__version__} over fsspec {fsspec.__version__}: erasing needs ErasingHTTPFileSystem")
