"""`ZarrStore`, the store of zarr-python over a zarrd server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable
from typing import Any, Self, TypeVar

from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype

from . import _keys
from ._address import join_path
from ._errors import damaged
from ._http import Connection
from ._loop import run

A = TypeVar("A")
R = TypeVar("R")

CONCURRENCY = 64
"""The requests that `_get_many` and `_set_many` have in progress."""


class ZarrStore(Store):
    """A store of zarr-python below a URL: `zarr.open_group(zarrd.ZarrStore("http://host:8000/store/lab"))`.

    `url` is `http://host:8000/store/lab`, `zarrd://host:8000/lab` or a share link. `token` is by default that of
    `ZARRD_TOKEN` or `zarrd login`. A store can be pickled, used in forked processes, and used in several event loops.

    A prefix is erased by one request, in one commit. Errors of the server are `zarrd.ZarrdError`.
    """

    supports_writes: bool = True
    supports_deletes: bool = True
    supports_listing: bool = True

    def __init__(self, url: str | Connection, *, token: str | None = None, read_only: bool = False) -> None:
        super().__init__(read_only=read_only)
        self._connection = url if isinstance(url, Connection) else Connection.to(url, token)
        self._path = self._connection.address.path
        self._prefix = f"{self._path}/" if self._path else ""

    @property
    def url(self) -> str:
        """The URL of the store's root."""
        return self._connection.address.url("store", self._path)

    def with_read_only(self, read_only: bool = False) -> Self:
        """The same store, with or without the right to write."""
        return type(self)(self._connection, read_only=read_only)

    def __eq__(self, value: object) -> bool:
        return (
            isinstance(value, ZarrStore)
            and self._connection == value._connection
            and self._read_only == value._read_only
        )

    def __hash__(self) -> int:
        return hash((self._connection.address, self._read_only))

    def __repr__(self) -> str:
        return f"ZarrStore({self.url!r})"

    __str__ = __repr__

    def _key(self, key: str) -> str:
        return self._prefix + key

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """The value of a key, or a range of it; None if it has none. A range beyond the end is empty."""
        start, end = _bounds(byte_range)
        value = await _keys.get(self._connection, self._key(key), start, end)
        if value is None:
            return None
        return (prototype or default_buffer_prototype()).buffer.from_bytes(value)

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """The values of several keys and ranges, in their order."""
        return await _gather(lambda pair: self.get(pair[0], prototype, pair[1]), key_ranges)

    async def _get_many(
        self, requests: Iterable[tuple[str, BufferPrototype, ByteRequest | None]]
    ) -> AsyncGenerator[tuple[str, Buffer | None], None]:
        limit = asyncio.Semaphore(CONCURRENCY)

        async def one(request: tuple[str, BufferPrototype, ByteRequest | None]) -> tuple[str, Buffer | None]:
            async with limit:
                return request[0], await self.get(*request)

        tasks = [asyncio.ensure_future(one(request)) for request in requests]
        try:
            for task in asyncio.as_completed(tasks):
                yield await task
        finally:
            for pending in tasks:
                pending.cancel()

    async def exists(self, key: str) -> bool:
        """True if the key has a value."""
        return await _keys.size(self._connection, self._key(key)) is not None

    async def getsize(self, key: str) -> int:
        """The length of a value in bytes; raises `FileNotFoundError` if there is none. Reads no value."""
        size = await _keys.size(self._connection, self._key(key))
        if size is None:
            raise _keys.missing(key)
        return size

    async def getsize_prefix(self, prefix: str) -> int:
        """The bytes of all values below a prefix, from its listing. Raises `DamagedError` if one of them is damaged."""
        full = join_path(self._path, prefix)
        total = 0
        async for entry in _keys.keys(self._connection, full):
            if entry.damaged:
                raise damaged(entry.key)
            total += entry.size or 0
        return total

    async def is_empty(self, prefix: str) -> bool:
        """True if there is no key below the prefix."""
        full = join_path(self._path, prefix)
        async for _ in _keys.keys(self._connection, full, limit=1):
            return False
        return True

    async def set(self, key: str, value: Buffer) -> None:
        """Sets a value. It is durable when this returns."""
        self._check_writable()
        await _keys.put(self._connection, self._key(key), _bytes(key, value))

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        """Sets a value unless there is one, which the server decides: of several writers one succeeds."""
        self._check_writable()
        await _keys.put(self._connection, self._key(key), _bytes(key, value), create=True)

    async def _set_many(self, values: Iterable[tuple[str, Buffer]]) -> None:
        """Sets several values at once: chunks before metadata documents, so that no array lacks its chunks."""
        self._check_writable()
        chunks: list[tuple[str, Buffer]] = []
        documents: list[tuple[str, Buffer]] = []
        for key, value in values:
            (documents if key.rpartition("/")[2] in _DOCUMENTS else chunks).append((key, value))
        await _gather(lambda pair: self.set(*pair), chunks)
        await _gather(lambda pair: self.set(*pair), documents)

    async def delete(self, key: str) -> None:
        """Erases a value, if there is one."""
        self._check_writable()
        await _keys.delete(self._connection, self._key(key))

    async def delete_dir(self, prefix: str) -> None:
        """Erases all keys below a prefix with one request, in one commit."""
        self._check_writable()
        await _keys.delete_prefix(self._connection, join_path(self._path, prefix))

    async def clear(self) -> None:
        """Erases all keys of the store in one commit."""
        await self.delete_dir("")

    async def list(self) -> AsyncIterator[str]:
        """All keys of the store."""
        async for key in self.list_prefix(""):
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """All keys that begin with a prefix, relative to the root of the store."""
        directory = prefix.rpartition("/")[0]
        cut, begin = len(self._prefix), self._prefix + prefix
        async for entry in _keys.keys(self._connection, join_path(self._path, directory)):
            if entry.key.startswith(begin):
                yield entry.key[cut:]

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """The names of the keys and prefixes directly below a prefix."""
        full = join_path(self._path, prefix)
        cut = len(full) + 1 if full else 0
        seen: str | None = None
        async for entry in _keys.children(self._connection, full):
            name = entry.key[cut:].rstrip("/")
            # A key and a prefix can have one name.
            if name != seen:
                yield name
            seen = name

    def get_sync(
        self, key: str, *, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """`get` for programs without an event loop."""
        return run(self.get(key, prototype, byte_range))

    def set_sync(self, key: str, value: Buffer) -> None:
        """`set` for programs without an event loop."""
        run(self.set(key, value))

    def delete_sync(self, key: str) -> None:
        """`delete` for programs without an event loop."""
        run(self.delete(key))


_DOCUMENTS = frozenset({"zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"})


def _bounds(byte_range: ByteRequest | None) -> tuple[int, int | None]:
    match byte_range:
        case None:
            return 0, None
        case RangeByteRequest(start, end):
            return start, end
        case OffsetByteRequest(offset):
            return offset, None
        case SuffixByteRequest(suffix):
            return (-suffix, None) if suffix > 0 else (0, 0)
    raise ValueError(f"Unexpected byte_range, got {byte_range}.")


def _bytes(key: str, value: Buffer) -> Any:
    if not isinstance(value, Buffer):
        raise TypeError(f"the value of {key!r} has to be a Buffer, not {type(value).__name__}")
    return value.to_bytes()


async def _gather(work: Callable[[A], Coroutine[Any, Any, R]], items: Iterable[A]) -> list[R]:
    limit = asyncio.Semaphore(CONCURRENCY)

    async def one(item: A) -> R:
        async with limit:
            return await work(item)

    return list(await asyncio.gather(*(one(item) for item in items)))
