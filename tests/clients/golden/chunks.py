"""The chunks of crates/codec/tests/chain/rows.rs: written by zarr-python, and the elements that it reads from them.
"""

import json
import re

import numpy as np
import zarr

ROW = re.compile(
    r'        name: "(?P<name>.*)",\n        data_type: r#"(?P<type>.*)"#,\n        shape: &\[(?P<shape>.*)\],\n        codecs: r#"(?P<codecs>.*)"#,\n'
    r'        chunk: "(?P<chunk>[0-9a-f]*)",\n        elements: (?P<kind>Fixed|Variable)\((?P<elements>[^)]*)\),\n        writer: (?P<writer>Exact|Own),\n'
)
OLD = zarr.__version__.startswith("2")
made_by_other = 0


def is_other(codecs):
    """True if only the other version of zarr-python supports a row: version 2 has neither v3 nor its codecs nor
    the package pcodec of today, and version 3 supports only texts and byte strings among the objects of v2.
    """
    names = [codec[1] if isinstance(codec, list) else None for codec in codecs]
    if OLD:
        return None in names or "pcodec" in names
    objects = {"json2", "vlen-array", "categorize"} & set(names)
    return bool(objects) and "bytes" not in names


def document_v2(data_type, shape, triples):
    """The `.zarray` of a row's codec chain."""
    names = [name for _, name, _ in triples]
    filters = [{"id": name, **configuration} for namespace, name, configuration in triples if namespace == "numcodecs"]
    order = "F" if "transpose" in names else "C"
    fill = "" if data_type == "|O" else None
    return {"zarr_format": 2, "shape": shape, "chunks": shape, "dtype": data_type, "compressor": None, "filters": filters or None, "order": order, "fill_value": fill}


def document_v3(data_type, shape, codecs):
    fill = {"string": "", "variable_length_bytes": "", "bool": False}.get(data_type, 0)
    grid = {"name": "regular", "configuration": {"chunk_shape": shape}}
    keys = {"name": "default", "configuration": {"separator": "/"}}
    return {"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type, "chunk_grid": grid, "chunk_key_encoding": keys, "fill_value": fill, "codecs": codecs, "attributes": {}}


class Memory:
    """An in-memory array of one chunk, for any version of zarr-python."""

    def __init__(self, document):
        version = document["zarr_format"]
        self.chunk = "/".join(["c", *"0" * len(document["shape"])]) if version == 3 else ".".join("0" * len(document["shape"]))
        metadata = {"zarr.json" if version == 3 else ".zarray": json.dumps(document).encode()}
        if OLD:
            self.values = zarr.storage.KVStore(metadata)
            self.array = zarr.open_array(self.values, mode="r+", write_empty_chunks=True)
        else:
            from zarr.core.buffer import cpu

            self.buffer = cpu.Buffer.from_bytes
            self.values = {key: self.buffer(value) for key, value in metadata.items()}
            store = zarr.storage.MemoryStore(self.values)
            self.array = zarr.open_array(store, mode="r+", zarr_format=version)

    def decode(self, chunk):
        self.values[self.chunk] = chunk if OLD else self.buffer(chunk)
        return np.asarray(self.array[...], object if self.array.dtype.kind in "OT" else self.array.dtype)

    def encode(self, elements):
        self.array[...] = elements
        value = self.values[self.chunk]
        return bytes(value) if OLD else value.to_bytes()


def row(match):
    global made_by_other
    codecs, shape = json.loads(match["codecs"]), [int(extent) for extent in match["shape"].split(",")]
    is_v2 = isinstance(codecs[0], list)
    if is_other(codecs):
        made_by_other += 1
        return match[0]
    document = (document_v2 if is_v2 else document_v3)(json.loads(match["type"]), shape, codecs)
    found = Memory(document).decode(bytes.fromhex(match["chunk"]))
    elements = hex_elements(found, match, codecs)
    text = match[0].replace(match["elements"], layout(match["elements"], elements))
    if match["writer"] == "Exact":
        encoded = Memory(document).encode(found).hex()
        text = text.replace(f'chunk: "{match["chunk"]}"', f'chunk: "{encoded}"')
    return text


def hex_elements(found, match, codecs):
    """The elements in C order, each word little-endian, as hexadecimal digits."""
    if match["kind"] == "Fixed":
        return [np.ascontiguousarray(found, found.dtype.newbyteorder("<")).tobytes().hex()]
    return [bytes_of(item, codecs).hex() for item in found.ravel().tolist()]


def bytes_of(item, codecs):
    names = [codec[1] if isinstance(codec, list) else codec["name"] for codec in codecs]
    if "json2" in names:
        return json.dumps(item, separators=(",", ":"), ensure_ascii=False).encode()
    if isinstance(item, np.ndarray):
        return item.astype(item.dtype.newbyteorder("<")).tobytes()
    return item.encode() if isinstance(item, str) else bytes(item)


def layout(before, elements):
    """The elements in the table's format."""
    if before.startswith("&["):
        return "&[" + ", ".join(f'"{item}"' for item in elements) + "]"
    return re.sub(r'"[0-9a-f]*"', f'"{elements[0]}"', before)


def regenerated(text):
    """The file with regenerated chunks and elements, and the number of regenerated rows."""
    after, rows = ROW.subn(row, text)
    return after, rows - made_by_other
