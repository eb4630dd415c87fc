"""File systems of fsspec: `zarrd://host:port/path` over HTTP and `zarrds://host/path` over HTTPS.

They are found by entry point, so that whatever takes a URL takes these: `xr.Dataset.to_zarr("zarrd://host:8000/lab/x")`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from typing import Any

from fsspec.asyn import AsyncFileSystem
from fsspec.core import has_magic
from fsspec.spec import AbstractBufferedFile

from . import _keys
from ._errors import NotFoundError, damaged
from ._http import Connection
from ._loop import background_loop, run

GAP = 64 * 1024
"""Ranges of one value that are so many bytes apart, at most, are read with one request."""

MERGED = 16 << 20
"""The bytes of a request for several ranges, at most."""


class ZarrdFileSystem(AsyncFileSystem):  # type: ignore[misc]
    """Values of a zarrd server as files. Paths are keys; what has keys below it is a directory.

    `host` is `host:port` of the URL. `token` is by default that of `ZARRD_TOKEN` or `zarrd login`. Listings are not
    cached. The synchronous methods work after a fork, the asynchronous ones in any event loop.
    """

    protocol = "zarrd"
    root_marker = ""
    cachable = True

    def __init__(self, host: str = "127.0.0.1:8000", token: str | None = None, **options: Any) -> None:
        super().__init__(**{**options, "use_listings_cache": False})
        self.host = host
        self.token = token
        self._connection = Connection.to(f"{self.protocol}://{host}", token)

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The loop of the synchronous methods; None of an asynchronous file system."""
        return None if self.asynchronous else background_loop()

    @classmethod
    def _split(cls, url: str) -> tuple[str, str]:
        """Host, with the share link if there is one, and path of a URL."""
        prefix = f"{cls.protocol}://"
        if not url.startswith(prefix):
            return "", url.strip("/")
        host, _, path = url.removeprefix(prefix).partition("/")
        segments = [segment for segment in path.split("/") if segment]
        if len(segments) > 1 and segments[0] == "s" and segments[1].startswith("zarrdlink_"):
            host = "/".join([host, *segments[:2]])
            segments = segments[3:] if segments[2:3] == ["store"] else segments[2:]
        return host, "/".join(segments)

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(each) for each in path]
        return cls._split(os.fspath(path))[1]

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, Any]:
        kind = ZarrdsFileSystem if path.startswith("zarrds://") else ZarrdFileSystem
        host = kind._split(path)[0]
        return {"host": host} if host else {}

    def unstrip_protocol(self, name: str) -> str:
        """The URL of a path."""
        return f"{self.protocol}://{self.host}/{self._strip_protocol(name)}"

    async def _cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        key = self._strip_protocol(path)
        if (start is not None and start < 0 and end is not None) or (end is not None and end < 0):
            size = await _keys.size(self._connection, key)
            start, end, _step = slice(start, end).indices(size or 0)
        value = await _keys.get(self._connection, key, start or 0, end) if key else None
        if value is None:
            raise _keys.missing(key)
        return bytes(value)

    async def _cat_ranges(
        self,
        paths: list[str],
        starts: int | Sequence[int | None] | None,
        ends: int | Sequence[int | None] | None,
        max_gap: int | None = None,
        batch_size: int | None = None,
        on_error: str = "return",
        **_: Any,
    ) -> list[bytes | Exception]:
        if not isinstance(paths, list):
            raise TypeError("paths have to be a list")
        count = len(paths)
        begins = [starts] * count if starts is None or isinstance(starts, int) else list(starts)
        limits = [ends] * count if ends is None or isinstance(ends, int) else list(ends)
        if len(begins) != count or len(limits) != count:
            raise ValueError("there have to be as many starts and ends as paths")
        limit = asyncio.Semaphore(batch_size or self.batch_size or 64)
        found: list[bytes | Exception] = [b""] * count

        async def read(start: int | None, end: int | None, members: list[int]) -> None:
            async with limit:
                try:
                    whole = await self._cat_file(paths[members[0]], start, end)
                except Exception as error:
                    for member in members:
                        found[member] = error
                    return
            for member in members:
                if len(members) == 1:
                    found[member] = whole
                else:
                    offset = begins[member] or 0
                    found[member] = whole[offset - (start or 0) : (limits[member] or 0) - (start or 0)]

        groups = _merged(paths, begins, limits, GAP if max_gap is None else max_gap)
        await asyncio.gather(*(read(*group) for group in groups))
        failure = next((each for each in found if isinstance(each, Exception)), None)
        if failure is not None and on_error != "return":
            raise failure
        return found

    async def _pipe_file(self, path: str, value: Any, mode: str = "overwrite", **_: Any) -> None:
        key = self._strip_protocol(path)
        if not await _keys.put(self._connection, key, bytes(value), create=mode == "create"):
            raise FileExistsError(f"{key} exists already")

    async def _put_file(self, lpath: str, rpath: str, mode: str = "overwrite", **_: Any) -> None:
        if os.path.isdir(lpath):
            return
        content = await asyncio.to_thread(_read_file, lpath)
        await self._pipe_file(rpath, content, mode=mode)

    async def _get_file(self, rpath: str, lpath: Any, **_: Any) -> None:
        if await self._isdir(rpath):
            os.makedirs(lpath, exist_ok=True)
            return
        content = await self._cat_file(rpath)
        await asyncio.to_thread(_write_file, lpath, content)

    async def _cp_file(self, path1: str, path2: str, **_: Any) -> None:
        try:
            content = await self._cat_file(path1)
        except NotFoundError:
            if await self._isdir(path1):
                return
            raise
        await self._pipe_file(path2, content)

    async def _rm_file(self, path: str, **_: Any) -> None:
        key = self._strip_protocol(path)
        url = self._connection.address.url("store", key)
        response = await self._connection.send("DELETE", url, accept=(404, 409))
        if response.status == 409:
            raise IsADirectoryError(f"{key} is a group or an array; erase it with recursive=True")

    async def _rm(self, path: Any, recursive: bool = False, batch_size: int | None = None, **options: Any) -> None:
        names = [path] if isinstance(path, (str, os.PathLike)) else list(path)
        for name in names:
            key = self._strip_protocol(name)
            if options.get("maxdepth") is not None or (has_magic(key) and not await self._exists(key)):
                for each in reversed(await self._expand_path(key, recursive=recursive, **options)):
                    await self._rm_file(each)
            elif not recursive:
                await self._rm_file(key)
            elif not await _keys.delete_prefix(self._connection, key) and key:
                # Nothing is below it: it is a file, or nothing. The latter is no error, as with DELETE: zarr-python's
                # `clear` erases directories, and then what it found in them.
                await self._rm_file(key)

    async def _mv(self, path1: str, path2: str, recursive: bool = False, **options: Any) -> None:
        """Copies through this client and then erases: the server has no renaming of keys."""
        await self._copy(path1, path2, recursive=recursive, on_error="raise", **options)
        await self._rm(path1, recursive=recursive)

    def mv(self, path1: str, path2: str, recursive: bool = False, **options: Any) -> None:
        """Moves a file, or with `recursive` a directory."""
        run(self._mv(path1, path2, recursive, **options))

    move = rename = mv

    async def _info(self, path: str, **_: Any) -> dict[str, Any]:
        key = self._strip_protocol(path)
        if key:
            entry = await _keys.head(self._connection, key)
            if entry is not None:
                return _described(entry)
            async for _each in _keys.keys(self._connection, key, limit=1):
                return {"name": key, "size": 0, "type": "directory"}
            raise _keys.missing(key)
        return {"name": "", "size": 0, "type": "directory"}

    async def _ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        key = self._strip_protocol(path)
        found = [_described(entry) async for entry in _keys.children(self._connection, key)]
        if not found and key:
            entry = await _keys.head(self._connection, key)
            if entry is None:
                raise _keys.missing(key)
            found = [_described(entry)]
        return found if detail else sorted({each["name"] for each in found})

    async def _find(self, path: str, maxdepth: int | None = None, withdirs: bool = False, **options: Any) -> Any:
        if maxdepth is not None:
            return await super()._find(path, maxdepth=maxdepth, withdirs=withdirs, **options)
        key = self._strip_protocol(path)
        files = {entry.key: _described(entry) async for entry in _keys.keys(self._connection, key)}
        found = dict(files)
        if withdirs:
            for name in files:
                while (name := name.rpartition("/")[0]) and len(name) >= len(key) and name not in found:
                    found[name] = {"name": name, "size": 0, "type": "directory"}
        # A path that ends in a slash is that of a directory.
        if (
            not files
            and key
            and not str(path).endswith("/")
            and (entry := await _keys.head(self._connection, key)) is not None
        ):
            found = {key: _described(entry)}
        names = sorted(found)
        return {name: found[name] for name in names} if options.get("detail") else names

    async def _du(self, path: str, total: bool = True, maxdepth: int | None = None, **_: Any) -> Any:
        found = await self._find(path, maxdepth=maxdepth, detail=True)
        for name, each in found.items():
            if each.get("damaged"):
                raise damaged(name)
        sizes = {name: each["size"] for name, each in found.items()}
        return sum(sizes.values()) if total else sizes

    def modified(self, path: str) -> Any:
        """The time at which a value was set."""
        from datetime import datetime

        entry = run(_keys.head(self._connection, self._strip_protocol(path)))
        if entry is None or entry.modified is None:
            raise _keys.missing(path)
        return datetime.fromisoformat(entry.modified.replace("Z", "+00:00"))

    def _open(self, path: str, mode: str = "rb", block_size: Any = "default", **options: Any) -> ZarrdFile:
        return ZarrdFile(self, self._strip_protocol(path), mode, block_size, **options)


class ZarrdsFileSystem(ZarrdFileSystem):
    """The same over HTTPS."""

    protocol = "zarrds"


class ZarrdFile(AbstractBufferedFile):  # type: ignore[misc]
    """An open value. What is written is set as a whole when the file is closed."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        found: bytes = run(self.fs._cat_file(self.path, start, end))
        return found

    def _initiate_upload(self) -> None:
        self._written: list[bytes] = []

    def _upload_chunk(self, final: bool = False) -> bool:
        self._written.append(self.buffer.getvalue())
        if final and self.autocommit:
            self.commit()
        return True

    def commit(self) -> None:
        """Sets the value."""
        mode = "create" if "x" in self.mode else "overwrite"
        run(self.fs._pipe_file(self.path, b"".join(self._written), mode=mode))

    def discard(self) -> None:
        """Drops what was written."""
        self._written = []


def _described(entry: _keys.Entry) -> dict[str, Any]:
    if entry.size is None:
        return {"name": entry.key.rstrip("/"), "size": 0, "type": "directory"}
    if entry.damaged:
        return {"name": entry.key, "size": None, "type": "file", "damaged": True}
    described = {"name": entry.key, "size": entry.size, "type": "file", "ETag": entry.etag}
    return {**described, "mtime": entry.modified} if entry.modified else described


def _merged(
    paths: Sequence[str], starts: Sequence[int | None], ends: Sequence[int | None], gap: int
) -> Iterable[tuple[int | None, int | None, list[int]]]:
    """The requests for ranges: those of one value that are close to each other are one."""
    plain: list[int] = []
    for index, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if end is None or (start or 0) < 0 or end <= (start or 0):
            yield start, end, [index]
        else:
            plain.append(index)
    plain.sort(key=lambda index: (paths[index], starts[index] or 0))
    members: list[int] = []
    begin = stop = 0
    for index in plain:
        start, end = starts[index] or 0, ends[index] or 0
        near = members and paths[members[0]] == paths[index] and start <= stop + gap and end - begin <= MERGED
        if near:
            members.append(index)
            stop = max(stop, end)
        else:
            if members:
                yield begin, stop, members
            members, begin, stop = [index], start, end
    if members:
        yield begin, stop, members


def _read_file(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _write_file(path: Any, content: bytes) -> None:
    if hasattr(path, "write"):
        path.write(content)
        return
    with open(path, "wb") as file:
        file.write(content)
