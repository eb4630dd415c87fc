"""Data types of Zarr as NumPy's, and elements as the bytes of requests and responses."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ._errors import InvalidRequestError

NDArray = npt.NDArray[Any]

_NAMES = {"bool", *(f"{kind}int{bits}" for kind in ("", "u") for bits in (8, 16, 32, 64))}
_NAMES |= {"float16", "float32", "float64", "complex64", "complex128"}


@dataclass(frozen=True)
class ElementType:
    """The type of an array's elements.

    `dtype` is that of the arrays of NumPy that are returned. `form` is how elements are sent: `npy` for a file of
    NumPy's, `text` and `bytes` for elements of variable length, `bfloat16`, or `json` for any other objects.
    """

    dtype: np.dtype[Any]
    form: str


def element_type(document: Mapping[str, Any]) -> ElementType:
    """The type that a metadata document of an array (v2, v3) names. Raises `InvalidRequestError` for unknown ones."""
    if document.get("zarr_format") == 2:
        return _of_v2(document)
    declared = document["data_type"]
    name, configuration = (declared, {}) if isinstance(declared, str) else (declared["name"], declared)
    if name in ("string", "bytes", "variable_length_bytes"):
        return ElementType(np.dtype(object), "text" if name == "string" else "bytes")
    if name == "bfloat16":
        return ElementType(np.dtype("f4"), "bfloat16")
    return ElementType(_fixed(name, configuration.get("configuration") or {}), "npy")


def _fixed(name: str, configuration: Mapping[str, Any]) -> np.dtype[Any]:
    if name in _NAMES:
        return np.dtype(name)
    if name in ("numpy.datetime64", "numpy.timedelta64"):
        unit, factor = configuration.get("unit", "generic"), configuration.get("scale_factor", 1)
        letter = "M8" if name == "numpy.datetime64" else "m8"
        return np.dtype(
            letter if unit == "generic" else f"{letter}[{factor}{unit}]" if factor != 1 else f"{letter}[{unit}]"
        )
    if name == "fixed_length_utf32":
        return np.dtype(f"U{configuration['length_bytes'] // 4}")
    if name == "null_terminated_bytes":
        return np.dtype(f"S{configuration['length_bytes']}")
    if name == "raw_bytes":
        return np.dtype(f"V{configuration['length_bytes']}")
    if name.startswith("r") and name[1:].isdigit():
        return np.dtype(f"V{int(name[1:]) // 8}")
    if name in ("struct", "structured"):
        fields = []
        for each in configuration["fields"]:
            field, declared = (each["name"], each["data_type"]) if isinstance(each, Mapping) else each
            inner, options = (declared, {}) if isinstance(declared, str) else (declared["name"], declared)
            fields.append((field, _fixed(inner, options.get("configuration") or {})))
        return np.dtype(fields)
    raise InvalidRequestError(f"NumPy has no type for {name!r}; read it in another format, such as JSON")


def _of_v2(document: Mapping[str, Any]) -> ElementType:
    declared = document["dtype"]
    if isinstance(declared, str) and declared.lstrip("|<>=") == "O":
        names = [each.get("id") for each in document.get("filters") or ()]
        form = "text" if "vlen-utf8" in names else "bytes" if "vlen-bytes" in names else "json"
        return ElementType(np.dtype(object), form)
    return ElementType(np.dtype(_fields(declared)), "npy")


def _fields(declared: Any) -> Any:
    if isinstance(declared, str):
        return declared
    return [(each[0], _fields(each[1]), *map(tuple, each[2:])) for each in declared]


def decode(body: bytes | bytearray, form: str, shape: tuple[int, ...] | None = None) -> NDArray:
    """The elements in a response, as an array that can be changed. `shape` is needed for all forms except `npy`."""
    if form == "npy":
        return decode_npy(body)
    assert shape is not None
    if form == "bfloat16":
        widened = np.frombuffer(body, "<u2").astype("<u4") << 16
        return widened.view("<f4").reshape(shape)
    if form == "json":
        found = np.empty(shape, object)
        _fill(found, json.loads(body))
        return found
    (count,) = struct.unpack_from("<I", body)
    elements = np.empty(count, object)
    position = 4
    for index in range(count):
        (length,) = struct.unpack_from("<I", body, position)
        position += 4
        raw = body[position : position + length]
        elements[index] = raw.decode() if form == "text" else bytes(raw)
        position += length
    return elements.reshape(shape)


def decode_npy(body: bytes | bytearray) -> NDArray:
    """The array of a `.npy` file without pickles."""
    file = io.BytesIO(body)
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    else:
        shape, fortran, dtype = np.lib.format.read_array_header_2_0(file)
    if dtype.hasobject or fortran:
        file.seek(0)
        return np.asarray(np.load(file, allow_pickle=False))
    elements = np.frombuffer(body, dtype, offset=file.tell())
    # A copy, unless nobody else has the bytes and they can be changed.
    return elements.reshape(shape) if isinstance(body, bytearray) else elements.reshape(shape).copy()


def _fill(found: NDArray, value: Any) -> None:
    if found.ndim == 0:
        found[()] = value
        return
    for index, each in enumerate(value):
        if found.ndim == 1:
            found[index] = each
        else:
            _fill(found[index], each)


def encode(elements: NDArray, form: str) -> tuple[bytes, str]:
    """The body of a request with elements in C order, and its media type."""
    if form == "npy":
        file = io.BytesIO()
        np.save(file, np.ascontiguousarray(elements).reshape(elements.shape), allow_pickle=False)
        return file.getvalue(), "application/x-npy"
    if form == "bfloat16":
        bits = np.ascontiguousarray(elements, "<f4").view("<u4")
        # Rounded to nearest, ties to even.
        rounded = np.where(np.isnan(elements), (bits >> 16) | 0x40, (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)
        return rounded.astype("<u2").tobytes(), "application/octet-stream"
    if form == "json":
        return json.dumps(elements.tolist()).encode(), "application/json"
    parts = [struct.pack("<I", elements.size)]
    for index, each in np.ndenumerate(elements):
        raw = _text_bytes(each, form, index)
        parts += [struct.pack("<I", len(raw)), raw]
    return b"".join(parts), "application/octet-stream"


def _text_bytes(element: Any, form: str, index: tuple[int, ...]) -> bytes:
    if form == "text" and isinstance(element, str):
        return element.encode()
    if form == "bytes" and isinstance(element, (bytes, bytearray)):
        return bytes(element)
    wanted = "str" if form == "text" else "bytes"
    raise TypeError(f"element {index} is {element!r}, of type {type(element).__name__}; the array holds {wanted}")


def cast(value: Any, kind: ElementType) -> NDArray:
    """Elements in an array's type.

    Numbers may be rounded to a shorter float, but not changed otherwise: the error names the first element that the
    type does not have, and its index.
    """
    if kind.form in ("text", "bytes", "json"):
        return np.asarray(value, object) if not isinstance(value, np.ndarray) else value.astype(object)
    given = np.asarray(value)
    dtype = kind.dtype
    if given.dtype == dtype:
        return given
    if given.dtype.kind not in "biufc" or dtype.kind not in "biufc":
        if np.can_cast(given.dtype, dtype, "same_kind") or (given.dtype.kind, dtype.kind) in {
            ("U", "M"),
            ("O", "U"),
            ("T", "U"),
        }:
            converted = given.astype(dtype)
            if dtype.kind in "SU":
                _check(given.astype(given.dtype if given.dtype.kind != "O" else "U"), converted, dtype)
            return converted
        raise TypeError(f"elements of type {given.dtype} cannot be written to an array of {dtype}")
    if given.dtype.kind == "c" and dtype.kind != "c":
        raise TypeError(f"complex elements cannot be written to an array of {dtype}")
    with np.errstate(all="ignore"):
        converted = given.astype(dtype)
        if np.can_cast(given.dtype, dtype, "safe") or (
            (given.dtype.kind in "fiub" and dtype.kind in "fc") or given.dtype.kind == dtype.kind == "c"
        ):
            if dtype.kind in "fc" and given.dtype.kind in "fc":
                _check_finite(given, converted, dtype)
            return converted
        _check(given, converted, dtype)
    return converted


def _check(given: NDArray, converted: NDArray, dtype: np.dtype[Any]) -> None:
    if dtype.kind in "iu" and given.dtype.kind in "iu":
        limits = np.iinfo(dtype)
        wrong = (given < limits.min) | (given > limits.max)
    else:
        wrong = np.asarray(converted.astype(given.dtype) != given)
        if dtype.kind in "iu" and given.dtype.kind == "f":
            # The least float above the largest integer is converted to something that is converted back to it.
            wrong |= ~np.isfinite(given) | (given >= 2.0 ** (np.iinfo(dtype).bits - (dtype.kind == "i")))
    if np.any(wrong):
        index = tuple(int(each) for each in np.argwhere(wrong)[0])
        raise ValueError(f"element {index} is {given[index]!s}, which {dtype} does not have")


def _check_finite(given: NDArray, converted: NDArray, dtype: np.dtype[Any]) -> None:
    wrong = np.isfinite(given) & ~np.isfinite(converted)
    if np.any(wrong):
        index = tuple(int(each) for each in np.argwhere(wrong)[0])
        raise ValueError(f"element {index} is {given[index]!s}, which {dtype} does not have")
