"""Values by key: what `/store` offers, as coroutines."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from ._errors import NotFoundError, ZarrdError
from ._http import JSON, Connection, Response

PAGE = 10_000
"""The keys of a listing that one request returns."""


@dataclass(frozen=True)
class Entry:
    """A key of a listing, relative to the root of the server, with its size in bytes; None for a prefix.

    If what is stored at the key is `damaged`, nothing else is known of it, and the size is 0.
    """

    key: str
    size: int | None
    etag: str | None = None
    modified: str | None = None
    damaged: bool = False


def byte_range(start: int, end: int | None) -> str:
    """The `Range` for bytes from `start` to `end`, which is excluded and may be None; a negative start is a suffix."""
    if start < 0:
        return f"bytes={start}"
    return f"bytes={start}-" if end is None else f"bytes={start}-{end - 1}"


async def get(connection: Connection, key: str, start: int = 0, end: int | None = None) -> bytes | bytearray | None:
    """The bytes of a value, or a range of them; None if the key has no value.

    As with a slice, a range that ends after the value is cut, and one that begins after it is empty.
    """
    headers: dict[str, str] = {}
    if start != 0 or end is not None:
        if end is not None and end <= start >= 0:
            return b"" if await size(connection, key) is not None else None
        headers["Range"] = byte_range(start, end)
    url = connection.address.url("store", key)
    response = await connection.send("GET", url, headers=headers, accept=(301, 404, 416))
    if response.status in (301, 404):
        # Errors of other kinds than a missing value, such as a bad key, have other statuses.
        return None
    return b"" if response.status == 416 else response.body


async def size(connection: Connection, key: str) -> int | None:
    """The length of a value in bytes; None if the key has no value."""
    response = await _head(connection, key)
    return int(response.headers["Content-Length"]) if response.status == 200 else None


async def _head(connection: Connection, key: str) -> Response:
    url = connection.address.url("store", key)
    try:
        return await connection.send("HEAD", url, accept=(301, 404))
    except ZarrdError as error:
        if error.status == 500 and not error.problem:
            # Answers to HEAD have no body, so the answer to GET says what is wrong.
            await connection.send("GET", url, headers={"Range": byte_range(0, 1)}, accept=(301, 404, 416))
        raise


async def head(connection: Connection, key: str) -> Entry | None:
    """The size, version and time of a value; None if the key has none."""
    response = await _head(connection, key)
    if response.status != 200:
        return None
    fields = response.headers
    return Entry(key, int(fields["Content-Length"]), fields.get("ETag"), fields.get("Zarr-Modified"))


async def put(connection: Connection, key: str, value: Any, *, create: bool = False) -> bool:
    """Sets a value. With `create` only if the key has none: returns False if it has one, which stays."""
    headers = {"Content-Type": "application/octet-stream"}
    if create:
        headers["If-None-Match"] = "*"
    url = connection.address.url("store", key)
    response = await connection.send("PUT", url, headers=headers, body=value, accept=(412,) if create else ())
    return response.status != 412


async def delete(connection: Connection, key: str) -> None:
    """Erases a value. It is no error if there is none."""
    await connection.send("DELETE", connection.address.url("store", key), accept=(404, 409))


async def delete_prefix(connection: Connection, prefix: str) -> int:
    """Erases all keys below a prefix in one commit; the empty prefix is the whole store. Returns their number."""
    prefix = prefix.strip("/")
    url = connection.address.url("store", prefix, prefix=True)
    response = await connection.send("DELETE", url, query="" if prefix else "confirm=all")
    return int(response.json()["erased"])


async def children(connection: Connection, prefix: str) -> AsyncIterator[Entry]:
    """The keys and prefixes directly below a prefix; prefixes end in a slash."""
    async for page in _pages(connection, prefix, "dir", PAGE):
        for name in page["prefixes"]:
            yield Entry(name, None)
        for entry in _entries(page):
            yield entry


async def keys(connection: Connection, prefix: str, *, limit: int | None = None) -> AsyncIterator[Entry]:
    """All keys below a prefix at any depth, sorted by their bytes."""
    count = 0
    async for page in _pages(connection, prefix, "keys", PAGE if limit is None else limit):
        for entry in _entries(page):
            yield entry
            count += 1
            if count == limit:
                return


def _entries(page: dict[str, Any]) -> list[Entry]:
    values = page["values"]
    pairs = zip(page["keys"], values, strict=True)
    return [
        Entry(key, 0, damaged=True)
        if value.get("damaged")
        else Entry(key, value["size"], value["etag"], value["modified"])
        for key, value in pairs
    ]


async def _pages(connection: Connection, prefix: str, kind: str, limit: int) -> AsyncIterator[dict[str, Any]]:
    url = connection.address.url("store", prefix, prefix=True)
    query = f"list={kind}&limit={limit}"
    cursor: str | None = None
    while True:
        asked = query if cursor is None else f"{query}&cursor={quote(cursor, safe='')}"
        response = await connection.send("GET", url, query=asked, headers={"Accept": JSON}, accept=(404,))
        if response.status == 404:
            # A directory of another program that does not exist; zarrd's own stores have empty listings instead.
            return
        page = response.json()
        yield page
        cursor = page["cursor"]
        if cursor is None:
            return


def missing(key: str) -> NotFoundError:
    """The error for a key without a value."""
    return NotFoundError(f"there is no value at {key!r}", status=404)
