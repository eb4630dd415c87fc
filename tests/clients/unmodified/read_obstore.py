"""Reads values with obstore, and hierarchies through zarr-python's ObjectStore:

    read_obstore.py URL DIR
"""

import pathlib
import sys
from urllib.parse import quote

import numpy as np
import obstore
import zarr
from obstore.exceptions import GenericError
from obstore.store import HTTPStore
from zarr.storage import ObjectStore

url, directory = sys.argv[1], pathlib.Path(sys.argv[2])


def store(path):
    return HTTPStore.from_url(f"{url}/store/{path}", client_options={"allow_http": True})


lab = store("lab")
files = [path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()]
for name in files:
    wanted = (directory / name).read_bytes()
    got = lab.get(name)
    assert bytes(got.bytes()) == wanted and got.meta["size"] == lab.head(name)["size"] == len(wanted), name
    if len(wanted) > 9:
        assert bytes(lab.get_range(name, start=2, end=9)) == wanted[2:9], name
        parts = lab.get_ranges(name, starts=[0, 5], ends=[3, 9])
        assert [bytes(part) for part in parts] == [wanted[:3], wanted[5:9]], name
        assert bytes(lab.get(name, options={"range": {"suffix": 4}}).bytes()) == wanted[-4:], name
for missing in (lab.get, lab.head):
    try:
        missing("nothing")
    except FileNotFoundError:
        continue
    raise AssertionError("it is not there")
etag = lab.head("large.bin")["e_tag"]
try:
    lab.get("large.bin", options={"if_none_match": etag})
except obstore.exceptions.NotModifiedError:
    pass
else:
    raise AssertionError("it is not modified")

scratch = store("scratch")
assert scratch.put("a b/ü+%", b"one", mode="overwrite")["e_tag"] and bytes(scratch.get("a b/ü+%").bytes()) == b"one"
scratch.delete("a b/ü+%")

arrays = 0
for format in (2, 3):
    for path in ("image", "deep/relief", "deep/counts", "unwritten") + (("sharded",) if format == 3 else ()):
        wanted = zarr.open_array(directory / f"v{format}.zarr" / path, mode="r")[...]
        group = zarr.open_group(ObjectStore(store(f"lab/v{format}.zarr"), read_only=True), mode="r")
        assert group.attrs["title"] == f"Über v{format}"
        array = group[path]
        assert np.array_equal(array[...], wanted) and np.array_equal(array[2:5, ::3], wanted[2:5, ::3]), path
        arrays += 1
odd = zarr.open_array(ObjectStore(store("lab/" + quote("odd names/50% a+b ü.zarr")), read_only=True), path="x y&z", mode="r")
assert np.array_equal(odd[...], np.arange(30, dtype="f8").reshape(5, 6))
written = zarr.create_array(ObjectStore(store("scratch/new.zarr")), data=np.arange(30).reshape(5, 6), chunks=(2, 2))
written[1:3] = 7
again = zarr.open_array(f"{url}/store/scratch/new.zarr", mode="r")[...]
assert (again[1:3] == 7).all() and np.array_equal(again[3:], np.arange(18, 30).reshape(2, 6)), again
arrays += 2

# Of a listing it takes the whole path for the key, which is right at a root only.
for listing in (lab.list().collect, lab.list_with_delimiter):
    try:
        listing()
    except GenericError as error:
        assert "PROPFIND" in str(error) and "405" in str(error) and "--dav-listen" in str(error), error
        continue
    raise AssertionError("obstore lists below a path; say so in docs/reference/clients.md")
print(f"obstore {obstore.__version__} compared {len(files)} values and {arrays} arrays")
