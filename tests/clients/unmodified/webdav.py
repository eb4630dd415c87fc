"""Lists, reads, writes, copies and renames with obstore, and writes hierarchies with zarr-python and xarray, at the root of
`--dav-listen`:

    webdav.py URL
"""

import sys

import numpy as np
import obstore
import xarray as xr
import zarr
from obstore.exceptions import AlreadyExistsError, NotModifiedError, PreconditionError
from obstore.store import HTTPStore
from zarr.abc.store import Store
from zarr.storage import ObjectStore

done = 0


def fails(error, action):
    global done
    try:
        action()
    except error as found:
        done += 1
        return str(found)
    raise AssertionError(f"no {error.__name__}")


def same(found, wanted):
    global done
    assert np.array_equal(found, wanted) if isinstance(wanted, np.ndarray) else found == wanted, (found, wanted)
    done += 1


store = HTTPStore.from_url(sys.argv[1], client_options={"allow_http": True})
names = ["o/a", "o/d/b", "o/d/e/ü 1", "o/+%41&x"]
for name in names:
    obstore.put(store, name, name.encode())
same(sorted(meta["path"] for batch in store.list("o") for meta in batch), sorted(names))
same([meta["size"] for batch in store.list("o/d/e") for meta in batch], [len("o/d/e/ü 1".encode())])
listed = store.list_with_delimiter("o")
same((sorted(listed["common_prefixes"]), sorted(meta["path"] for meta in listed["objects"])), (["o/d"], ["o/+%41&x", "o/a"]))
same(list(store.list("none")), [])
for name in names:
    same(bytes(store.get(name).bytes()), name.encode())
meta = store.head("o/a")
same([found["e_tag"] for batch in store.list("o") for found in batch if found["path"] == "o/a"], [meta["e_tag"]])
same(bytes(store.get("o/a", options={"if_match": meta["e_tag"]}).bytes()), b"o/a")
fails(NotModifiedError, lambda: store.get("o/a", options={"if_none_match": meta["e_tag"]}))
fails(PreconditionError, lambda: store.get("o/a", options={"if_match": '"x"'}))
fails(FileNotFoundError, lambda: store.head("o/none"))
store.copy("o/a", "o/copy")
fails(AlreadyExistsError, lambda: store.copy("o/d/b", "o/copy", overwrite=False))
store.rename("o/copy", "o/d/b")
same(bytes(store.get("o/d/b").bytes()), b"o/a")
fails(FileNotFoundError, lambda: store.get("o/copy"))
store.delete(["o/a", "o/d/b"])
same(sorted(meta["path"] for batch in store.list("o") for meta in batch), sorted(names[2:]))
# What obstore lacks for HTTP.
for mode in ("create", {"e_tag": meta["e_tag"]}):
    assert "PutMode::Overwrite" in fails(NotImplementedError, lambda: store.put("o/new", b"1", mode=mode))
assert "put_multipart_opts" in fails(NotImplementedError, lambda: store.put("o/large", bytes(6 << 20)))

# A group is created with a request that obstore lacks for HTTP, except at the root.
plain = ObjectStore(store)
group = zarr.open_group(plain, mode="w")
same(group.nmembers(), 0)
fails(NotImplementedError, lambda: group.create_group("sub"))


class DavStore(ObjectStore):
    """Sets what does not exist in two requests."""

    set_if_not_exists = Store.set_if_not_exists


dav = DavStore(store)
for format in (2, 3):
    group = zarr.open_group(dav, path=f"lab/v{format}", mode="w", zarr_format=format)
    group.create_array("x", shape=(10, 10), chunks=(5, 5), dtype="f4")[:] = 1.5
    group.create_group("sub").create_array("y", data=np.arange(7))
    group = zarr.open_group(plain, path=f"lab/v{format}", mode="r")
    same(sorted(name for name, _ in group.members(max_depth=None)), ["sub", "sub/y", "x"])
    same(group["x"][2:7, 0], np.full(5, 1.5, "f4"))
    same(group["sub/y"][:], np.arange(7))
    data = xr.Dataset({"t": ("x", np.arange(5.0))}, coords={"x": np.arange(5)})
    place = {"group": f"lab/xr{format}", "zarr_format": format, "consolidated": False}
    for _ in range(2):
        data.to_zarr(dav, mode="w", **place)
    data.assign_coords(x=np.arange(5, 10)).to_zarr(dav, append_dim="x", **place)
    (data * 10).drop_vars("x").to_zarr(dav, region={"x": slice(5, 10)}, **place)
    read = xr.open_zarr(plain, group=f"lab/xr{format}", consolidated=False)
    same(read.t.values, np.concatenate([np.arange(5.0), np.arange(5.0) * 10]))
groups = {format: zarr.open_group(plain, path="lab", mode="r", zarr_format=format).groups() for format in (2, 3)}
for format, found in groups.items():
    same(sorted(group.path for _, group in found), [f"lab/v{format}", f"lab/xr{format}"])
print(f"obstore {obstore.__version__}, zarr {zarr.__version__}, xarray {xr.__version__}: {done} results as expected")
