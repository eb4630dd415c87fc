"""Metadata documents for new arrays."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from math import ceil, prod
from typing import Any

import numpy as np

from ._types import NDArray

CHUNK_BYTES = 1 << 20
"""The bytes of a chunk, before compression, that `chunks="auto"` aims at."""


def auto_chunks(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Chunks of about 1 MiB: the longest extent is halved until one fits. An extent of 0 will grow by appends."""
    chunks = [extent or 1 for extent in shape]
    if shape and 0 in shape:
        at = list(shape).index(0)
        rest = prod(each for place, each in enumerate(chunks) if place != at) * itemsize
        chunks[at] = max(1, CHUNK_BYTES // max(rest, 1))
    while prod(chunks) * itemsize > CHUNK_BYTES and max(chunks) > 1:
        at = chunks.index(max(chunks))
        chunks[at] = ceil(chunks[at] / 2)
    return tuple(chunks)


def array_document(
    shape: Sequence[int],
    dtype: Any,
    *,
    chunks: Sequence[int] | str = "auto",
    shards: Sequence[int] | None = None,
    dims: Sequence[str | None] | None = None,
    attrs: Mapping[str, Any] | None = None,
    fill_value: Any = None,
    compressor: str | None = "zstd",
) -> dict[str, Any]:
    """The `zarr.json` of a new array of Zarr v3."""
    kind = np.dtype(dtype)
    name = _type_name(kind, dtype)
    extents = tuple(int(each) for each in shape)
    inner = auto_chunks(extents, kind.itemsize or 8) if isinstance(chunks, str) else tuple(int(each) for each in chunks)
    if len(inner) != len(extents) or (dims is not None and len(dims) != len(extents)):
        raise ValueError(f"chunks and dims need one entry for each of the {len(extents)} dimensions")
    serializer: dict[str, Any]
    if name in ("string", "bytes"):
        serializer = {"name": "vlen-utf8" if name == "string" else "vlen-bytes"}
    else:
        serializer = {"name": "bytes", "configuration": {"endian": "little"}}
    codecs = [serializer]
    if compressor == "zstd":
        codecs.append({"name": "zstd", "configuration": {"level": 3, "checksum": False}})
    elif compressor == "gzip":
        codecs.append({"name": "gzip", "configuration": {"level": 5}})
    elif compressor is not None:
        raise ValueError(
            f"compressor has to be 'zstd', 'gzip' or None, not {compressor!r}; others can be declared with put"
        )
    outer = inner
    if shards is not None:
        outer = tuple(int(each) for each in shards)
        index = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]
        configuration = {"chunk_shape": list(inner), "codecs": codecs, "index_codecs": index, "index_location": "end"}
        codecs = [{"name": "sharding_indexed", "configuration": configuration}]
    document: dict[str, Any] = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(extents),
        "data_type": name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(outer)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": _fill(fill_value, kind, name),
        "codecs": codecs,
        "attributes": dict(attrs or {}),
    }
    if dims is not None:
        document["dimension_names"] = list(dims)
    return document


def _type_name(kind: np.dtype[Any], given: Any) -> Any:
    if kind.kind in "biufc":
        return kind.name
    if kind.kind in "mM":
        unit, factor = np.datetime_data(kind)
        name = "numpy.datetime64" if kind.kind == "M" else "numpy.timedelta64"
        return {"name": name, "configuration": {"unit": unit, "scale_factor": factor}}
    if kind.kind == "U" and kind.itemsize:
        return {"name": "fixed_length_utf32", "configuration": {"length_bytes": kind.itemsize}}
    if kind.kind == "S" and kind.itemsize:
        return {"name": "null_terminated_bytes", "configuration": {"length_bytes": kind.itemsize}}
    if kind.kind in "OUT":
        return "string"
    if kind.kind == "S":
        return "bytes"
    raise ValueError(f"arrays of {given!r} cannot be created here; write them through ZarrStore")


def _fill(value: Any, kind: np.dtype[Any], name: Any) -> Any:
    if name == "string":
        return "" if value is None else str(value)
    if name == "bytes" or kind.kind == "S":
        return base64.b64encode(value or b"").decode()
    if kind.kind == "U":
        return "" if value is None else str(value)
    if kind.kind in "mM":
        return (
            "NaT" if value is None or np.isnat(np.asarray(value, kind)) else int(np.asarray(value, kind).astype("i8"))
        )
    scalar = np.zeros((), kind) if value is None else np.asarray(value, kind)
    if kind.kind == "c":
        return [_float(scalar.real), _float(scalar.imag)]
    return _float(scalar) if kind.kind == "f" else scalar.item()


def _float(value: NDArray) -> Any:
    number = float(value)
    if number != number:
        return "NaN"
    return ("Infinity" if number > 0 else "-Infinity") if number in (float("inf"), -float("inf")) else number
