"""Elements as request bodies, and arrays written with many requests."""

import base64
import io
import json
import math
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "slices"))

import forms
import selections

RAW, NPY, JSON = "application/octet-stream", "application/x-npy", "application/json"


def body(elements, kind, form, generator):
    """The elements in one of the accepted formats: media type and bytes."""
    if form == "raw":
        return RAW, forms.raw(np.ascontiguousarray(elements).reshape(elements.shape), kind)
    if form == "json":
        return JSON, json.dumps(tree(elements, kind), allow_nan=False).encode()
    stream = io.BytesIO()
    if kind == "string":
        elements = elements.astype("U")
    elif elements.dtype.kind in "biufcmM" and generator.random() < 0.3:
        elements = elements.astype(elements.dtype.newbyteorder(">"))
    if elements.ndim and generator.random() < 0.3:
        elements = np.asfortranarray(elements)
    np.save(stream, elements, allow_pickle=False)
    return NPY, stream.getvalue()


def forms_of(elements, kind):
    """The formats that can represent these elements."""
    if kind == "string" and any(text.endswith("\0") for text in elements.ravel().tolist()):
        return ["raw", "json"]
    return forms.forms(kind)


def tree(elements, kind):
    """Nested lists, as accepted and returned by the server."""
    if elements.ndim:
        return [tree(elements[index, ...], kind) for index in range(elements.shape[0])]
    item = elements[()]
    match kind:
        case "fixed":
            return scalar(item, elements.dtype)
        case "bfloat16":
            return number(np.array(int(item) << 16, "u4").view("f4")[()], f"0x{int(item):04x}")
        case "bytes":
            return base64.b64encode(item).decode()
        case "arrays":
            return tree(np.asarray(item), "fixed")
        case _:
            return item


def scalar(item, dtype):
    if dtype.subdtype is not None:
        return tree(np.asarray(item), "fixed")
    if dtype.names is not None:
        return [scalar(item[name], dtype[name]) for name in dtype.names]
    match dtype.kind:
        case "b":
            return bool(item)
        case "i" | "u":
            return int(item)
        case "f":
            size = dtype.itemsize
            return number(item, f"0x{int(np.asarray(item).view(f'u{size}')):0{2 * size}x}")
        case "c":
            size = dtype.itemsize // 2
            return [scalar(part, part.dtype) for part in np.asarray(item).reshape(1).view(f"f{size}")]
        case "S":
            return base64.b64encode(bytes(item)).decode()
        case "U":
            return str(item)
        case "V":
            return list(bytes(item))
        case "m":
            return "NaT" if np.isnat(item) else int(item.view("i8"))
        case "M":
            generic = np.datetime_data(dtype)[0] == "generic"
            return "NaT" if np.isnat(item) else int(item.view("i8")) if generic else str(item)
    raise NotImplementedError(dtype)


def number(item, bits):
    value = float(item)
    if math.isnan(value):
        return bits
    return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"


def is_lossy(document):
    """True if elements change each time that a chunk is decoded and encoded again, as in a partial write."""
    text = json.dumps([document.get("codecs"), document.get("filters")])
    return any(f"{name}\"" in text for name in ("delta", "astype", "quantize", "fixedscaleoffset", "bitround", "scale_offset"))


def is_regular(document):
    """True if all chunks have one shape."""
    grid = document.get("chunk_grid", {})
    return isinstance(grid, dict) and grid.get("name", "regular") == "regular"


def partition(extent, generator):
    """The indices of a dimension in one to three parts, each as an item of a selection."""
    if extent < 2:
        return [slice(None)]
    match int(generator.integers(0, 5)):
        case 0:
            return [slice(None)]
        case 1:
            # From the end, and in the other direction.
            return [slice(None, None, -1)]
        case 2:
            step = int(generator.integers(2, 4))
            return [slice(start, None, step) for start in range(min(step, extent))]
        case 3:
            mixed = generator.permutation(extent).tolist()
            at = int(generator.integers(1, extent))
            return [mixed[:at], [index - extent for index in mixed[at:]]]
        case _:
            at = int(generator.integers(1, extent))
            return [slice(0, at) if at > 1 else 0, slice(at - extent, None)]


def pieces(shape, generator):
    """Selections that contain each element of an array once, in any order."""
    parts = [[slice(None)]] * len(shape)
    for axis in generator.permutation(len(shape))[:2]:
        parts[axis] = partition(shape[axis], generator)
    found = [()]
    for options in parts:
        found = [before + (option,) for before in found for option in options]
    return [list(found[index]) for index in generator.permutation(len(found))]


class Writer:
    """Writes arrays through /array, and counts the requests."""

    def __init__(self, api, generator):
        self.api, self.generator = api, generator
        self.done = {"regions": 0, "appends": 0, "scalars": 0, "raw": 0, "npy": 0, "json": 0}

    def body(self, elements, kind):
        form = self.generator.choice(forms_of(elements, kind))
        self.done[form] += 1
        return body(elements, kind, form, self.generator)

    def region(self, path, elements, kind, items, **query):
        """Writes the part of `elements` that the items select."""
        part = selections.select(elements, items)
        if 0 in part.shape:
            return
        self.api.write(path, *self.body(part, kind), select=selections.selection_text(items, self.generator), **query)
        self.done["regions"] += 1

    def whole(self, path, elements, kind, **query):
        """Writes all elements of an array with the same shape, by regions."""
        if self.generator.random() < 0.3 and elements.size:
            first = elements.reshape(-1)[:1].reshape(())
            self.api.write(path, *body(first, kind, "json", self.generator), **query)
            self.done["scalars"] += 1
        for items in pieces(elements.shape, self.generator):
            self.region(path, elements, kind, items, **query)

    def bounds(self, path, elements, kind, bounds, **query):
        """Writes the part of an array within bounds."""
        items = [slice(start, stop) for start, stop, *_ in bounds]
        self.region(path, elements, kind, items, **query)

    def grown(self, path, elements, kind, axis, start, **query):
        """Writes an array whose dimension `axis` has the extent `start`: the existing part by regions, the rest by
        appending.
        """
        there = [slice(None)] * elements.ndim
        there[axis] = slice(0, start)
        if start:
            self.whole(path, selections.select(elements, there), kind, **query)
        at = start
        while at < elements.shape[axis]:
            step = int(self.generator.integers(1, elements.shape[axis] - at + 1))
            items = [slice(None)] * elements.ndim
            items[axis] = slice(at, at + step)
            part = selections.select(elements, items)
            dimension = axis if self.generator.random() < 0.5 else axis - elements.ndim
            report = self.api.append(path, dimension, *self.body(part, kind), **query)
            at += step
            assert report["shape"][axis] == at, (path, report)
            self.done["appends"] += 1
