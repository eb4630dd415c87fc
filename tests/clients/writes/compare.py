"""Reads the arrays of mirror.py with other libraries, and compares each element with the notes of the original
writer:

    compare.py LIBRARY PLACE NOTES [draft]

LIBRARY is `zarr` (either version) or `tensorstore`; PLACE is the server's /store or an exported directory. With
`draft` the arrays are read as the draft of v3, which zarr-python 2 supports. Every array that a library rejects, and
every NaN that it changes, must be explained by a rule of rules.py. The last line contains the numbers of compared
arrays, and of the others by reason, as JSON.
"""

import itertools
import json
import os
import pathlib
import sys
import warnings
from collections import Counter

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "slices"))

import expectation
import rules

os.environ["ZARR_V3_EXPERIMENTAL_API"] = "1"
library, place, notes, draft = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), "draft" in sys.argv[4:]
warnings.simplefilter("ignore")


class Reader:
    def document(self, entry):
        """The document that the library reads."""
        return entry["document"]

    def misreading(self, entry):
        """The reason why the library changes some NaN."""
        return iter(())


class Zarr3(Reader):
    def __init__(self):
        import zarr

        self.zarr = zarr
        self.name = f"zarr-python {zarr.__version__}"
        zarr.config.set({"array.rectilinear_chunks": True})

    def read(self, entry):
        array = self.zarr.open_array(f"{place}/{entry['name']}", mode="r", zarr_format=entry["format"])
        return np.asarray(array[...], None if array.dtype.kind in "OT" else array.dtype)

    def misreading(self, entry):
        return rules.changed_nan(entry["document"])


class Zarr2(Reader):
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
            self.fill_missing(array, found)
        return found

    def document(self, entry):
        return json.loads(self.store[f"meta/root/{entry['name']}.array.json"]) if draft else entry["document"]

    def fill_missing(self, array, found):
        """Fills missing chunks with the fill value. It computes complex ones from their parts, which transfers NaN
        and the sign of zero between the parts.
        """
        key = f"meta/root/{array.path}.array.json" if draft else f"{array.path}/.zarray"
        fill = json.loads(self.store[key])["fill_value"]
        parts = np.array([float(part) for part in fill or [0, 0]], f"<f{found.dtype.itemsize // 2}")
        for position in itertools.product(*map(range, array.cdata_shape)):
            if array._chunk_key(position) not in array.chunk_store:
                region = tuple(slice(at * length, (at + 1) * length) for at, length in zip(position, array.chunks))
                found[region] = parts.view(f"<c{found.dtype.itemsize}").astype(found.dtype)[0]


class Tensorstore(Reader):
    def __init__(self):
        import importlib.metadata

        import tensorstore

        self.ts = tensorstore
        self.name = f"tensorstore {importlib.metadata.version('tensorstore')}"

    def read(self, entry):
        kvstore = {"driver": "file", "path": f"{place}/{entry['name']}/"}
        if place.startswith("http"):
            kvstore = {"driver": "http", "base_url": f"{place}/", "path": f"{entry['name']}/"}
        driver = {2: "zarr", 3: "zarr3"}[entry["format"]]
        found = self.ts.open({"driver": driver, "kvstore": kvstore}, read=True, open=True).result().read().result()
        if found.dtype.itemsize == 0:
            raise TypeError("its bytes and characters come out of it as elements without any bytes")
        return found


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
        # The draft's document represents raw bits like a struct of one unnamed field.
        return np.ascontiguousarray(found).view(wanted.dtype)
    return expectation.normal(found)


def without_payloads(elements):
    return np.where(np.isnan(elements), elements.dtype.type(np.nan), elements)


def part(elements, entry):
    """The part to compare, if not everything is defined."""
    if not entry["region"]:
        return elements
    return np.ascontiguousarray(elements[tuple(slice(*bounds) for bounds in entry["region"])])


if library == "tensorstore":
    reader, rejects = Tensorstore(), rules.tensorstore
else:
    import zarr

    reader, rejects = (Zarr2(), rules.zarr_python_2) if zarr.__version__.startswith("2") else (Zarr3(), rules.zarr_python_3)
compared = 0
unread, misread, different = Counter(), Counter(), []
for entry in json.loads((notes / "mirrored.json").read_text()):
    wanted = part(expectation.load(notes, entry), entry)
    found = error = None
    try:
        found = part(reader.read(entry), entry)
    except Exception as rejection:  # Each library rejects in its own way.
        error = f"{type(rejection).__name__}: {rejection}"
    try:
        why = rules.reason(rejects, reader.document(entry), error)
    except rules.Wrong as wrong:
        different.append((entry["name"], str(wrong)))
        continue
    if why is not None:
        unread[why] += 1
    elif not same(found, wanted, entry["kind"]):
        if (why := next(reader.misreading(entry), None)) and same(*map(without_payloads, (found, wanted)), entry["kind"]):
            misread[why[0]] += 1
            continue
        different.append((entry["name"], f"{found.ravel()[:3]!r:.200} instead of {wanted.ravel()[:3]!r:.200}"))
    else:
        compared += 1

for name, wrong in different[:10]:
    print(f"different: {name} {wrong:.300}")
print(f"{reader.name} compared {compared} arrays; {len(different)} differ")
print(json.dumps({"compared": compared, "misread": dict(sorted(misread.items())), "unread": dict(sorted(unread.items()))}, ensure_ascii=False))
sys.exit(1 if different else 0)
