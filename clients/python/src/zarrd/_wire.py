"""Requests without a body over HTTP/1.1, with a fraction of the time that a general client takes for each.

zarr-python reads an array with a request for each chunk, so that the time per request counts. `aiohttp` sends all
others, and whatever a response here has that is not expected.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

CONNECTIONS = 64
"""The connections to one server that a loop has at most."""

IDLE = 20.0
"""The seconds for which a connection that is not used stays open."""

SILENCE = 300.0
"""The seconds that a response may take."""

_HEAD = 64 * 1024
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)[ \t]*\r\n", re.IGNORECASE)
_UNUSUAL = re.compile(rb"\r\n(?:transfer-encoding|content-encoding):", re.IGNORECASE)
_CLOSES = re.compile(rb"\r\nconnection:[^\r\n]*close", re.IGNORECASE)


class UnusualResponse(Exception):
    """A response of another form than zarrd's, which a general client may understand."""


class Fields(Mapping[str, str]):
    """The header of a response, which is parsed when it is first read."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._parsed: dict[str, str] | None = None

    def _fields(self) -> dict[str, str]:
        if self._parsed is None:
            pairs = (line.partition(":") for line in self._raw.decode("latin-1").split("\r\n")[1:] if line)
            self._parsed = {name.strip().lower(): value.strip() for name, _, value in pairs}
        return self._parsed

    def __getitem__(self, name: str) -> str:
        return self._fields()[name.lower()]

    def __contains__(self, name: object) -> bool:
        # Without parsing, since this is asked of every response.
        return f"\r\n{name}:".lower().encode() in self._raw.lower()

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields())

    def __len__(self) -> int:
        return len(self._fields())


Answer = tuple[int, Fields, bytes | bytearray]


class _Stream(asyncio.BufferedProtocol):
    """One connection, with at most one request in progress."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._scratch = bytearray(_HEAD)
        self._view = memoryview(self._scratch)
        self._used = 0
        self._body: bytearray | None = None
        self._body_view = memoryview(b"")
        self._position = 0
        self._waiting: asyncio.Future[Answer] | None = None
        self._head_only = False
        self._status = 0
        self._fields = Fields(b"")
        self.transport: asyncio.Transport | None = None
        self.used_before = False
        self.reusable = True
        self.idle_since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        self.reusable = False
        self._fail(error or ConnectionResetError("the server closed the connection"))

    def eof_received(self) -> bool:
        self.reusable = False
        return False

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._body is not None:
            return self._body_view[self._position :]
        return self._view[self._used :]

    def buffer_updated(self, count: int) -> None:
        body = self._body
        if body is not None:
            self._position += count
            if self._position == len(body):
                self._finish(body)
            return
        self._used += count
        end = self._scratch.find(b"\r\n\r\n", 0, self._used)
        if end < 0:
            if self._used == _HEAD:
                self._reject("a header of more than 64 KiB")
            return
        self._parse(bytes(self._view[: end + 2]), end + 4)

    def _parse(self, head: bytes, begin: int) -> None:
        if self._waiting is None:
            # An unasked answer, such as 408 before the connection is closed.
            self.close()
            return
        length = _LENGTH.search(head)
        if not head.startswith(b"HTTP/1.") or _UNUSUAL.search(head) or not head[9:12].isdigit():
            return self._reject("an encoding")
        self._status = int(head[9:12])
        bodiless = self._head_only or self._status in (204, 304)
        if self._status < 200 or (length is None and not bodiless):
            return self._reject("no length")
        if _CLOSES.search(head):
            self.reusable = False
        self._fields = Fields(head)
        size = 0 if bodiless or length is None else int(length[1])
        rest = self._used - begin
        if rest > size:
            return self._reject("more bytes than announced")
        if rest == size:
            return self._finish(bytes(self._view[begin : begin + size]))
        body = bytearray(size)
        body[:rest] = self._view[begin : self._used]
        self._body, self._body_view, self._position = body, memoryview(body), rest

    def _finish(self, body: bytes | bytearray) -> None:
        self._body, self._used = None, 0
        self._body_view = memoryview(b"")
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result((self._status, self._fields, body))

    def _reject(self, what: str) -> None:
        self._fail(UnusualResponse(what))
        self.close()

    def _fail(self, error: BaseException) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_exception(error)

    async def ask(self, request: bytes, head_only: bool) -> Answer:
        """Sends a request, and returns status, header and body of its response."""
        assert self.transport is not None
        self._head_only = head_only
        waiting: asyncio.Future[Answer] = self._loop.create_future()
        self._waiting = waiting
        timer = self._loop.call_later(SILENCE, self._expire)
        self.transport.write(request)
        try:
            return await waiting
        except asyncio.CancelledError:
            self.close()
            raise
        finally:
            timer.cancel()
            self.used_before = True

    def _expire(self) -> None:
        self._fail(TimeoutError(f"no answer within {SILENCE:.0f} s"))
        self.close()

    def close(self) -> None:
        self.reusable = False
        if self.transport is not None:
            self.transport.close()


class Pool:
    """The connections of one event loop, by server."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._idle: dict[str, list[_Stream]] = {}
        self._limits: dict[str, asyncio.Semaphore] = {}
        self._context: ssl.SSLContext | None = None

    async def ask(self, method: str, url: str, query: str, fields: Mapping[str, str]) -> Answer:
        """The response to a request without a body.

        A connection that the server closed while it was not used is replaced. Raises `OSError`, and
        `UnusualResponse` for what has to be asked for in another way.
        """
        scheme, _, rest = url.partition("://")
        host, slash, path = rest.partition("/")
        origin = f"{scheme}://{host}"
        target = f"{slash or '/'}{path}?{query}" if query else f"{slash or '/'}{path}"
        lines = [
            f"{method} {target} HTTP/1.1",
            f"Host: {host}",
            *(f"{name}: {value}" for name, value in fields.items()),
        ]
        request = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        limit = self._limits.get(origin)
        if limit is None:
            limit = self._limits[origin] = asyncio.Semaphore(CONNECTIONS)
        async with limit:
            while True:
                stream = self._take(origin) or await self._connect(origin)
                fresh = not stream.used_before
                try:
                    answer = await stream.ask(request, method == "HEAD")
                except OSError:
                    stream.close()
                    if fresh:
                        raise
                    continue
                if stream.reusable:
                    stream.idle_since = self._loop.time()
                    self._idle.setdefault(origin, []).append(stream)
                else:
                    stream.close()
                return answer

    def _take(self, origin: str) -> _Stream | None:
        idle = self._idle.get(origin)
        oldest = self._loop.time() - IDLE
        while idle:
            stream = idle.pop()
            if stream.reusable and stream.idle_since >= oldest:
                return stream
            stream.close()
        return None

    async def _connect(self, origin: str) -> _Stream:
        parts = urlsplit(origin)
        secure = parts.scheme == "https"
        if secure and self._context is None:
            # Once, since it reads the certificates of the system.
            self._context = ssl.create_default_context()
        context = self._context if secure else None
        port = parts.port or (443 if secure else 80)
        connecting = self._loop.create_connection(lambda: _Stream(self._loop), str(parts.hostname), port, ssl=context)
        async with asyncio.timeout(10):
            _, stream = await connecting
        return stream

    def close(self) -> None:
        """Closes all connections that are not in use."""
        for idle in self._idle.values():
            for stream in idle:
                stream.close()
        self._idle.clear()

    def abandon(self) -> None:
        """Closes the sockets after the loop was closed, which can run nothing any more."""
        for idle in self._idle.values():
            for stream in idle:
                raw = getattr(stream.transport, "_sock", None)
                if raw is not None:
                    raw.close()
                    stream.transport._sock = None  # type: ignore[union-attr]
        self._idle.clear()
