"""Elements of arrays and documents of nodes, as coroutines: what `/array` and `/node` offer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np

from ._errors import (
    NotFoundError,
    NotZarrdError,
    ServerTooOldError,
    ZarrdError,
)
from ._http import JSON, Connection, Response
from ._types import ElementType, NDArray, decode, decode_npy, encode

LONG = 6000
"""The length of a query beyond which a selection is sent in a body."""

POINTS = 250_000
"""The points of one request that reads."""

WRITTEN_POINTS = 1 << 20
"""The points of one request that writes, at most."""


def query(parameters: Mapping[str, Any]) -> str:
    """Parameters as a query. None and False are left out, True has no value, and lists are joined with commas."""
    parts = []
    for name, value in parameters.items():
        if value is None or value is False:
            continue
        encoded = quote(name, safe=".-_~:,()[]*")
        if value is True:
            parts.append(encoded)
        else:
            text = ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
            parts.append(f"{encoded}={quote(text, safe=':,()[]~*.-_')}")
    return "&".join(parts)


def result_shape(response: Response) -> tuple[int, ...]:
    """The shape of the elements in a response."""
    text = response.headers.get("Zarr-Shape", "")
    return tuple(int(each) for each in text.split(",") if each)


async def read(connection: Connection, path: str, parameters: Mapping[str, Any], form: str = "npy") -> NDArray:
    """The elements that the parameters select, in C order.

    `form` is that of the array's elements; what is decoded or computed has the form of its result.
    """
    computed = "reduce" in parameters or parameters.get("decode") == "cf" or "labels" in parameters
    asked = dict(parameters)
    if form == "json":
        asked["format"] = "json"
    elif form == "npy":
        asked["format"] = "npy"
    else:
        asked["format"] = "npy" if computed and form == "bfloat16" else "raw"
    try:
        response = await _ask(connection, path, asked)
    except ZarrdError as error:
        if error.type != "unsuitable-format":
            raise
        # Times of calendars that NumPy does not have are texts.
        asked["format"], form = "raw", "text"
        response = await _ask(connection, path, asked)
    kind = response.headers.get("Content-Type", "")
    if kind.startswith("application/x-npy"):
        return decode_npy(response.body)
    shape = result_shape(response)
    if kind.startswith(JSON):
        return decode(response.body, "json", shape)
    name = response.headers.get("Zarr-Data-Type", "")
    form = {"string": "text", "bytes": "bytes", "variable_length_bytes": "bytes", "bfloat16": "bfloat16"}.get(
        name, form
    )
    if form in ("text", "bytes", "bfloat16"):
        return decode(response.body, form, shape)
    return np.frombuffer(response.body, np.dtype(name).newbyteorder("<")).reshape(shape).copy()


async def _ask(connection: Connection, path: str, parameters: Mapping[str, Any]) -> Response:
    url = connection.address.url("array", path)
    text = query(parameters)
    if len(text) <= LONG:
        return await connection.send("GET", url, query=text)
    # A long selection is sent in a body, which has the same parameters by other names.
    body: dict[str, Any] = {}
    rest: dict[str, Any] = {"read": True}
    for name, value in parameters.items():
        kind, _, dimension = name.partition(".")
        if kind in ("sel", "isel") and dimension:
            body.setdefault(kind, {})[dimension] = value
        elif name == "select":
            body["select"] = value
        else:
            rest[name] = value
    if "sel" in body:
        body["sel"] = {name: _label_list(value) for name, value in body["sel"].items()}
    return await connection.send(
        "POST", url, query=query(rest), headers={"Content-Type": JSON}, body=json.dumps(body).encode()
    )


def _label_list(text: str) -> Any:
    # The elements of a list in parentheses, which in a body is an array of texts.
    if not (text.startswith("(") and text.endswith(")")) or '"' in text:
        return text
    return text[1:-1].split(",")


async def points(connection: Connection, path: str, coordinates: NDArray, kind: ElementType, **more: Any) -> NDArray:
    """Single elements: `coordinates` has a row of indices for each. They are read in requests of 250,000."""
    computed = more.get("decode") == "cf"
    form = "npy" if kind.form == "npy" or (computed and kind.form == "bfloat16") else kind.form
    format_ = {"npy": "npy", "json": "json"}.get(form, "raw")
    url = connection.address.url("array", path)
    text = query({"read": True, "format": format_, **more})

    async def part(rows: NDArray) -> NDArray:
        body = json.dumps({"points": rows.tolist()}, separators=(",", ":")).encode()
        response = await connection.send("POST", url, query=text, headers={"Content-Type": JSON}, body=body)
        return decode(response.body, form, result_shape(response))

    starts = range(0, max(len(coordinates), 1), POINTS)
    parts = await asyncio.gather(*(part(coordinates[start : start + POINTS]) for start in starts))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


async def stack(connection: Connection, path: str, selections: Sequence[str], **more: Any) -> NDArray:
    """Selections of equal shape, stacked along a new first dimension, of one state of the array."""
    url = connection.address.url("array", path)
    body = json.dumps({"stack": list(selections)}).encode()
    text = query({"read": True, "format": "npy", **more})
    response = await connection.send("POST", url, query=text, headers={"Content-Type": JSON}, body=body)
    return decode_npy(response.body)


async def statistics(connection: Connection, path: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Statistics as the server has them; texts for numbers that JSON lacks become floats."""
    response = await connection.send(
        "GET", connection.address.url("array", path), query=query({"stats": True, **parameters})
    )
    found: dict[str, Any] = _numbers(response.json())
    return found


def _numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _numbers(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_numbers(each) for each in value]
    return float(value) if isinstance(value, str) else value


async def write(
    connection: Connection, path: str, parameters: Mapping[str, Any], elements: NDArray, kind: ElementType
) -> dict[str, Any]:
    """Writes elements to what the parameters select, in one commit. Returns the server's report."""
    body, media = encode(elements, kind.form)
    url = connection.address.url("array", path)
    response = await connection.send("PUT", url, query=query(parameters), headers={"Content-Type": media}, body=body)
    report: dict[str, Any] = response.json()
    return report


async def write_points(
    connection: Connection, path: str, coordinates: NDArray, elements: NDArray, kind: ElementType
) -> None:
    """Writes single elements in one commit: `coordinates` has a row of indices for each."""
    places, _ = encode(coordinates, "npy")
    body, media = encode(elements, kind.form)
    url = connection.address.url("array", path)
    try:
        await connection.send("PUT", url, query="points", headers={"Content-Type": media}, body=places + body)
    except ZarrdError as error:
        raise too_old(error, "points", "writes at points", "write regions") from error


async def append(connection: Connection, path: str, axis: int, elements: NDArray, kind: ElementType) -> dict[str, Any]:
    """Appends elements along a dimension in one commit. It is not repeated if it may have been made."""
    body, media = encode(elements, kind.form)
    url = connection.address.url("array", path)
    response = await connection.send(
        "POST", url, query=f"append={axis}", headers={"Content-Type": media}, body=body, repeatable=False
    )
    report: dict[str, Any] = response.json()
    return report


async def create_from(connection: Connection, path: str, elements: NDArray, parameters: Mapping[str, Any]) -> None:
    """Creates an array of elements, whose chunks and codecs the server chooses, in one commit."""
    body, media = encode(elements, "npy")
    url = connection.address.url("array", path)
    text = query({"create": True, **parameters})
    try:
        await connection.send("PUT", url, query=text, headers={"Content-Type": media}, body=body)
    except ZarrdError as error:
        raise too_old(error, "create", "arrays from elements", "use create_array(…, data=…)") from error


async def append_dataset(connection: Connection, path: str, dimension: str, body: bytes, **more: Any) -> dict[str, Any]:
    """Appends an `.npz` file, with a member for each variable over a dimension, to a group in one commit."""
    url = connection.address.url("node", path)
    text = query({"append": dimension, **more})
    try:
        response = await connection.send(
            "POST", url, query=text, headers={"Content-Type": "application/x-npz"}, body=body, repeatable=False
        )
    except ZarrdError as error:
        raise too_old(error, "append", "appends to datasets", "append to each array, in several commits") from error
    report: dict[str, Any] = response.json()
    return report


def too_old(error: ZarrdError, parameter: str, what: str, instead: str) -> ZarrdError:
    """The error of a server that does not know a request; any other error as it is."""
    unknown = error.type == "unknown-parameter" and error.problem.get("parameter") == parameter
    if unknown or error.status == 405 or error.type in ("not-found", "method-not-allowed"):
        message = f"the server is older than this client and has no {what}; update it, or {instead}"
        return ServerTooOldError(message, status=error.status, problem=error.problem)
    return error


async def node(connection: Connection, path: str, **parameters: Any) -> tuple[dict[str, Any], str | None]:
    """The document of a node with its members, and its entity tag. Raises `NotFoundError`."""
    url = connection.address.url("node", path)
    response = await connection.send("GET", url, query=query(parameters))
    if not response.headers.get("Content-Type", "").startswith(JSON):
        raise NotZarrdError(f"{connection.address.base} does not answer as zarrd does: {url} is not JSON")
    document: dict[str, Any] = response.json()
    return document, response.headers.get("ETag")


async def declare(connection: Connection, path: str, document: Mapping[str, Any], **parameters: Any) -> dict[str, Any]:
    """Creates a hierarchy in one commit; returns its documents. Raises `ConflictError` if another one exists."""
    url = connection.address.url("node", path)
    response = await connection.send(
        "PUT", url, query=query(parameters), headers={"Content-Type": JSON}, body=json.dumps(document).encode()
    )
    created: dict[str, Any] = response.json()
    return created


async def patch(connection: Connection, path: str, change: Mapping[str, Any], **parameters: Any) -> dict[str, Any]:
    """Changes attributes, shape or dimension names in one commit; returns the new document."""
    url = connection.address.url("node", path)
    headers = {"Content-Type": "application/merge-patch+json"}
    body = json.dumps(change).encode()
    response = await connection.send("PATCH", url, query=query(parameters), headers=headers, body=body)
    changed: dict[str, Any] = response.json()
    return changed


async def erase(connection: Connection, path: str) -> int:
    """Erases a node with everything below it; returns the number of keys."""
    url = connection.address.url("node", path)
    response = await connection.send("DELETE", url, query="" if path else "confirm=all")
    return int(response.json()["erased"])


async def ready(connection: Connection) -> dict[str, Any]:
    """What the server promises. Raises `NotZarrdError` if it is something else, or a zarrd without `guarantees`."""
    base = connection.address.base
    url = f"{base}/readyz"
    try:
        response = await connection.send("GET", url, accept=(404, 503))
        if response.status == 503 and b'"guarantees"' not in response.body:
            # Not a store that is not ready, but a server that is busy.
            response = await connection.send("GET", url, accept=(404,))
        found = response.json()
    except (ValueError, NotFoundError):
        raise NotZarrdError(f"{base} is not a zarrd server: {url} is not JSON") from None
    if not isinstance(found, dict) or ("writable" not in found and "guarantees" not in found):
        raise NotZarrdError(
            f"{base} is not a zarrd server, or another path of one; give the address that `zarrd serve` printed"
        )
    if "guarantees" not in found:
        raise ServerTooOldError(f"{base} is a zarrd from before 0.1, which this client does not know; update it")
    return found
