"""Reads what mirror.py wrote with other libraries, and compares each element:

    compare.py LIBRARY PLACE NOTES [draft]

LIBRARY is `zarr` (of either version) or `tensorstore`; PLACE the server's /store or an exported directory. With `draft` they are read
as the draft of v3, which zarr-python 2 knows.
"""

import itertools
import json
import os
import pathlib
import sys
import warnings

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "slices"))

import expectation

os.environ["ZARR_V3_EXPERIMENTAL_API"] = "1"
library, place, notes, draft = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), "draft" in sys.argv[4:]
warnings.simplefilter("ignore")


class Zarr3:
    def __init__(self):
        import zarr

        self.zarr = zarr
        self.name = f"zarr-python {zarr.__version__}"
        zarr.config.set({"array.rectilinear_chunks": True})

    def read(self, entry):
        array = self.zarr.open_array(f"{place}/{entry['name']}", mode="r", zarr_format=entry["format"])
        return np.asarray(array[...], None if array.dtype.kind in "OT" else array.dtype)

    def recoded(self, entry, wanted):
        """What the library itself reads where it has written the elements with the same document: codecs may lose something."""
        from zarr.core.buffer import default_buffer_prototype
        from zarr.core.sync import sync

        source = self.zarr.open_array(f"{place}/{entry['name']}", mode="r", zarr_format=entry["format"]).store
        target = self.zarr.storage.MemoryStore()
        keys = ["zarr.json"] if entry["format"] == 3 else [".zarray"]
        for key in keys:
            value = sync(source.get(key, default_buffer_prototype()))
            sync(target.set(key, value))
        array = self.zarr.open_array(target, mode="r+", zarr_format=entry["format"])
        array[...] = wanted
        return np.asarray(array[...], None if array.dtype.kind in "OT" else array.dtype)


class Zarr2:
    def __init__(self):
        import zarr

        self.zarr = zarr
        self.name = f"zarr-python {zarr.__version__}" + (" (draft)" if draft else "")
        self.store = zarr.storage.DirectoryStore(place) if not draft else zarr._storage.v3.DirectoryStoreV3(place)

    def read(self, entry):
        options = {"zarr_version": 3} if draft else {}
        array = self.zarr.open_array(self.store, path=entry["name"], mode="r", **options)
        found = np.asarray(array[...])
        if found.dtype.kind == "c":
            self.tell_missing(array, found)
        return found

    def tell_missing(self, array, found):
        """Puts the fill value into missing chunks. It calculates complex ones of their parts, by which NaN and the sign of zero go from one part to the other."""
        key = f"meta/root/{array.path}.array.json" if draft else f"{array.path}/.zarray"
        fill = json.loads(self.store[key])["fill_value"]
        parts = np.array([float(part) for part in fill or [0, 0]], f"<f{found.dtype.itemsize // 2}")
        for position in itertools.product(*map(range, array.cdata_shape)):
            if array._chunk_key(position) not in array.chunk_store:
                region = tuple(slice(at * length, (at + 1) * length) for at, length in zip(position, array.chunks))
                found[region] = parts.view(f"<c{found.dtype.itemsize}").astype(found.dtype)[0]

    def recoded(self, entry, wanted):
        options = {"zarr_version": 3} if draft else {}
        target = self.zarr._storage.v3.MemoryStoreV3() if draft else self.zarr.storage.MemoryStore()
        if draft:
            keys = ["zarr.json", f"meta/root/{entry['name']}.array.json"]
        else:
            keys = [f"{entry['name']}/.zarray"]
        for key in keys:
            target[key] = self.store[key]
        array = self.zarr.open_array(target, path=entry["name"], mode="r+", **options)
        array[...] = wanted
        return np.asarray(array[...])


class Tensorstore:
    def __init__(self):
        import importlib.metadata

        import tensorstore

        self.ts = tensorstore
        self.name = f"tensorstore {importlib.metadata.version('tensorstore')}"

    def read(self, entry):
        kvstore = {"driver": "http", "base_url": f"{place}/", "path": f"{entry['name']}/"}
        driver = {2: "zarr", 3: "zarr3"}[entry["format"]]
        found = self.ts.open({"driver": driver, "kvstore": kvstore}, read=True, open=True).result().read().result()
        if found.dtype.itemsize == 0:
            raise TypeError("its bytes and characters come out of it as elements without any bytes")
        return found

    def recoded(self, entry, wanted):
        raise NotImplementedError("it has no codecs that lose something")


def same(found, wanted, kind):
    if found.shape != wanted.shape:
        return False
    match kind:
        case "fixed":
            return not found.dtype.hasobject and like(found, wanted).tobytes() == wanted.tobytes()
        case "bfloat16":
            return np.ascontiguousarray(found).view("u2").tobytes() == wanted.tobytes()
        case "arrays":
            pairs = zip(found.ravel().tolist(), wanted.ravel().tolist())
            return all(expectation.normal(np.asarray(one)).tobytes() == expectation.normal(other).tobytes() for one, other in pairs)
        case "bytes":
            return [bytes(item) for item in found.ravel().tolist()] == wanted.ravel().tolist()
        case _:
            return found.ravel().tolist() == wanted.ravel().tolist()


def like(found, wanted):
    """The elements in the noted form, whose type may have another name."""
    if found.dtype.kind == "V" and found.dtype.names is not None and wanted.dtype.names is None:
        # The draft's document has raw bits like a struct of one field without a name.
        return np.ascontiguousarray(found).view(wanted.dtype)
    return expectation.normal(found)


def part(elements, entry):
    """What is to be compared, where not everything is defined."""
    if not entry["region"]:
        return elements
    return np.ascontiguousarray(elements[tuple(slice(*bounds) for bounds in entry["region"])])


if library == "tensorstore":
    reader = Tensorstore()
else:
    import zarr

    reader = Zarr2() if zarr.__version__.startswith("2") else Zarr3()
compared = recoded = 0
unread, different = [], []
for entry in json.loads((notes / "mirrored.json").read_text()):
    wanted = part(expectation.load(notes, entry), entry)
    try:
        found = part(reader.read(entry), entry)
    except Exception as error:  # Each library has its own ways of refusing.
        unread.append((entry["name"], f"{type(error).__name__}: {error}"[:300]))
        continue
    if not same(found, wanted, entry["kind"]):
        try:
            again = part(reader.recoded(entry, expectation.load(notes, entry)), entry)
            again = expectation.normal(again) if entry["kind"] == "fixed" else again
            reason = None if same(found, again, entry["kind"]) else "differs"
        except Exception as error:
            reason = f"differs, and is not written by the library itself: {type(error).__name__}: {error}"[:300]
        if reason:
            different.append((entry["name"], f"{reason}: {found.ravel()[:3]!r:.200} instead of {wanted.ravel()[:3]!r:.200}"))
            continue
        recoded += 1
    compared += 1

limit = int(os.environ.get("SHOWN", "10"))
for what, those in (("not read", unread), ("different", different)):
    for name, reason in those[:limit]:
        print(f"{what}: {name} {reason}")
print(
    f"{reader.name} compared {compared} arrays, {recoded} of them with what it makes of lossy codecs itself; "
    f"{len(unread)} not read, {len(different)} differ"
)
sys.exit(1 if different else 0)
