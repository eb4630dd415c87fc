"""Helpers of the writers: generated elements, and notes of the elements that readers must find.

The notes are a directory with one file per array and `manifest.json`, a list of `{name, file, kind, dtype, shape,
data_type, region, source, lossy}`. `kind` is the encoding of the elements:

- `fixed`: a `.npy`, little-endian and in C order, as read back by the writer;
- `bfloat16`: likewise, with the bits as `uint16`;
- `string`, `bytes`, `arrays`, `objects`: variable length, as JSON (bytes as base64; inner arrays as `[dtype,
  base64]`).

`region` is the part to compare, if the writer leaves the rest undefined. `data_type` is the name that the server must
return, if known. If codecs are lossy, `lossy` is true. If they lose information again on rewriting, `source` is the
file with the elements written last: a copy of the array must write these elements to get the same chunks.
"""

import base64
import json
import pathlib
import re
import zlib

import numpy as np

# Shapes and chunk shapes by name.
LAYOUTS = {
    "scalar": ((), ()),
    "zero": ((0,), (3,)),
    "zero_rows": ((0, 5), (2, 2)),
    "zero_columns": ((5, 0), (2, 2)),
    "one": ((1,), (1,)),
    "line": ((17,), (5,)),
    "exact": ((6, 8), (3, 4)),
    "larger_chunk": ((2, 3), (10, 10)),
    "single_elements": ((3, 4), (1, 1)),
    "cube": ((5, 6, 7), (2, 4, 3)),
    "five": ((3, 4, 2, 5, 3), (2, 3, 2, 2, 1)),
}


class Notes:
    """The notes of one writer, which writes one in `one_in` of its arrays: always the same ones."""

    def __init__(self, directory, writer, one_in=1):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.writer = writer
        self.one_in = int(one_in)
        self.entries = []
        self.rejections = []

    def note(self, name, found, kind=None, region=None, source=None, lossy=False):
        """Notes a written array with the elements that the writer reads back; `source` are the written elements, if
        different, and `lossy` is true if earlier ones differed.
        """
        found = np.asarray(found)
        if found.dtype.kind == "T":
            found, kind = found.astype(object), "string"
        entry = {"name": name, "kind": kind or "fixed", "shape": list(found.shape), "region": region, "source": None, "lossy": lossy}
        stem = f"{len(self.entries):05}"
        data_type = None
        if not found.dtype.hasobject:
            found = normal(found)
            data_type = kind if kind == "bfloat16" else data_type_name(found.dtype)
        entry |= {"file": self.save(stem, found, kind), "dtype": str(found.dtype), "data_type": data_type}
        if source is not None:
            entry["source"] = self.save(f"{stem}-source", np.asarray(source), kind)
        self.entries.append(entry)

    def save(self, stem, found, kind):
        """Saves elements in a file; returns its name."""
        if found.dtype.hasobject:
            name = f"{stem}.json"
            (self.directory / name).write_text(json.dumps([to_json(item, kind) for item in found.ravel().tolist()]))
        else:
            name = f"{stem}.npy"
            np.save(self.directory / name, normal(found), allow_pickle=False)
        return name

    def note_all(self, name, write, read, erase, data, where=..., correct=lambda found: found, **more):
        """Writes `data` and notes the elements read back. If codecs are lossy, the elements read back are written
        again to an array that `erase` has emptied, and those read then are noted.
        """
        part = (lambda elements: elements) if where is ... else (lambda elements: elements[where])
        write(where, part(data))
        found = read()
        source = None
        if differs(part(found), part(data)):
            source = found
            erase()
            write(where, part(found))
            found = read()
        changed = source is not None and differs(found, source)
        self.note(name, correct(found), source=source if changed else None, lossy=source is not None, **more)

    def attempt(self, name, write):
        """Runs the writer, if the array is in the sample; rejected arrays are counted."""
        if zlib.crc32(name.encode()) % self.one_in != 0:
            return
        try:
            write()
        except Exception as error:  # Each library rejects in its own way.
            self.rejections.append((name, f"{type(error).__name__}: {error}"[:160]))

    def close(self):
        (self.directory / "manifest.json").write_text(json.dumps(self.entries, indent=1))
        (self.directory / "rejected.json").write_text(json.dumps(self.rejections, indent=1))
        print(f"{self.writer} wrote {len(self.entries)} arrays and rejected {len(self.rejections)} combinations")


METADATA = {"zarr.json", ".zarray", ".zattrs"}


def erase_chunks(directory):
    """Removes the chunks of an array in a directory."""
    for path in pathlib.Path(directory).rglob("*"):
        if path.is_file() and path.name not in METADATA:
            path.unlink()


def differs(found, original):
    """True if the elements differ from the originals."""
    found, original = np.asarray(found), np.asarray(original)
    if found.dtype.hasobject or original.dtype.hasobject:
        exact = lambda item: item.tobytes() if isinstance(item, np.ndarray) else repr(item)
        return list(map(exact, found.ravel().tolist())) != list(map(exact, original.ravel().tolist()))
    return normal(found).tobytes() != normal(original).tobytes()


def load(directory, entry, what="file"):
    """The elements of an entry of the notes, as an object array if they have variable length."""
    path = pathlib.Path(directory) / (entry[what] or entry["file"])
    if path.suffix == ".npy":
        return np.load(path, allow_pickle=False)
    items = json.loads(path.read_text())
    found = np.empty(len(items), object)
    for index, item in enumerate(items):
        found[index] = from_json(item, entry["kind"])
    return found.reshape(entry["shape"])


def to_json(item, kind):
    match kind:
        case "bytes":
            return base64.b64encode(item or b"").decode()
        case "arrays":
            item = np.asarray(item)
            return [item.dtype.str, base64.b64encode(item.tobytes()).decode()]
        case "string":
            return item or ""
        case _:
            return item


def from_json(item, kind):
    match kind:
        case "bytes":
            return base64.b64decode(item)
        case "arrays":
            return np.frombuffer(base64.b64decode(item[1]), item[0])
        case _:
            return item


def normal(array):
    """The same elements in C order, little-endian, without padding between struct fields."""
    return np.ascontiguousarray(array, packed(array.dtype)).reshape(array.shape)


def packed(dtype):
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return np.dtype((packed(base), shape))
    if dtype.names is None:
        return dtype.newbyteorder("<")
    return np.dtype([(name, packed(dtype.fields[name][0])) for name in dtype.names])


def data_type_name(dtype):
    """The v3 name, for types with an unambiguous one."""
    if dtype.kind in "biufc":
        return dtype.name
    if dtype.kind in "mM" and "[" in dtype.name:
        unit = re.search(r"\[.*\]", dtype.name).group()
        return {"M": "numpy.datetime64", "m": "numpy.timedelta64"}[dtype.kind] + unit
    return None


def elements(dtype, shape, seed=0):
    """Random elements of a data type, including special values: minimum, maximum, NaN with payloads …"""
    dtype = np.dtype(dtype)
    generator = np.random.default_rng([zlib.crc32(repr(dtype.descr).encode()), *shape, seed])
    flat = of_type(dtype, int(np.prod(shape)), generator)
    return flat[generator.permutation(len(flat))].reshape(shape)


def of_type(dtype, count, generator):
    if dtype.names is not None:
        found = np.zeros(count, dtype)
        for name in dtype.names:
            field, shape = dtype.fields[name][0].subdtype or (dtype.fields[name][0], ())
            inner = of_type(field, count * int(np.prod(shape)), generator)
            found[name] = inner[generator.permutation(len(inner))].reshape((count, *shape))
        return found
    match dtype.kind:
        case "b":
            return generator.integers(0, 2, count).astype(bool)
        case "i" | "u":
            limits = np.iinfo(dtype)
            found = generator.integers(limits.min, limits.max, count, dtype.newbyteorder("="), endpoint=True)
            return with_peculiar(found, [limits.min, limits.max, 0]).astype(dtype)
        case "f":
            return floats(dtype.newbyteorder("="), count, generator).astype(dtype)
        case "c":
            parts = floats(np.dtype(f"f{dtype.itemsize // 2}"), 2 * count, generator)
            return generator.permutation(parts).view(f"c{dtype.itemsize}").astype(dtype)
        case "S" | "V":
            raw = generator.integers(0, 256, (count, dtype.itemsize), "u1")
            # Some are shorter, some contain a NUL.
            raw[::3, dtype.itemsize // 2 :] = 0
            return np.frombuffer(raw.tobytes(), dtype) if dtype.itemsize else np.zeros(count, dtype)
        case "U":
            return np.array([text(generator, dtype.itemsize // 4) for _ in range(count)], dtype).reshape(count)
        case "M" | "m":
            return times(dtype, count, generator)
    raise NotImplementedError(dtype)


def with_peculiar(found, peculiar):
    values = np.array(peculiar, found.dtype)
    found[: len(values)] = values[: len(found)]
    return found


def floats(dtype, count, generator):
    """Random bits, including NaN with many payloads, and special values."""
    bits = np.dtype(f"u{dtype.itemsize}")
    found = generator.integers(0, np.iinfo(bits).max, count, bits, endpoint=True).view(dtype)
    found[::3] = generator.normal(0, 100, len(found[::3])).astype(dtype)
    info = np.finfo(dtype)
    peculiar = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, info.max, info.min, info.smallest_subnormal, 0.1, 1], dtype)
    payload = (np.array([np.nan, -np.nan], dtype).view(bits) | bits.type(0x123)).view(dtype)
    return with_peculiar(found, np.concatenate([payload, peculiar]))


ALPHABET = "aZ09 \"\\/\n\t<&é€中\u2028😀𝄞\U0010ffff"


def text(generator, longest):
    return "".join(generator.choice(list(ALPHABET), generator.integers(0, longest + 1)))


def times(dtype, count, generator):
    unit, step = np.datetime_data(dtype)
    if dtype.kind == "m" or unit == "generic":
        found = generator.integers(-(2**63) + 1, 2**63 - 1, count, endpoint=True)
        found = with_peculiar(found, [np.iinfo("i8").min, np.iinfo("i8").max, 0, -1])
        return found.view(dtype.newbyteorder("=")).astype(dtype)
    # Nearly all are in the years that ISO 8601 writes with four digits.
    least, most = (np.datetime64(year, unit).view("i8") for year in ("1678-01-01", "2262-01-01"))
    if unit in ("Y", "M", "W", "D", "h", "m", "s", "ms", "us"):
        least, most = (np.datetime64(year, unit).view("i8") for year in ("0001-01-01", "9999-01-01"))
    if unit in ("ps", "fs", "as"):
        least, most = -(2**63) + 1, 2**63 - 1
    found = generator.integers(least, most, count, endpoint=True)
    found[1:] //= step
    found = with_peculiar(found, [np.iinfo("i8").min, 0, -1])
    return found.view(dtype.newbyteorder("=")).astype(dtype)


def strings(shape, seed=0):
    """Texts of various lengths, including the empty one."""
    generator = np.random.default_rng([7, *shape, seed])
    return objects([text(generator, 12) for _ in range(int(np.prod(shape)))], shape)


def byte_strings(shape, seed=0):
    generator = np.random.default_rng([8, *shape, seed])
    return objects([generator.bytes(generator.integers(0, 12)) for _ in range(int(np.prod(shape)))], shape)


def inner_arrays(dtype, shape, seed=0):
    generator = np.random.default_rng([9, *shape, seed])
    lengths = generator.integers(0, 6, int(np.prod(shape)))
    return objects([elements(dtype, (length,), index) for index, length in enumerate(lengths)], shape)


def objects(items, shape):
    found = np.empty(len(items), object)
    for index, item in enumerate(items):
        found[index] = item
    return found.reshape(shape)
