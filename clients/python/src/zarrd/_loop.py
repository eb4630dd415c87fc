"""The event loop of the sync functions, in a thread of its own, and one HTTP session for each loop of the process."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import AsyncGenerator, Coroutine
from typing import Any, TypeAlias, TypeVar

import aiohttp

from ._version import __version__
from ._wire import CONNECTIONS, Pool

T = TypeVar("T")

_Entry: TypeAlias = tuple[asyncio.AbstractEventLoop, aiohttp.ClientSession, AsyncGenerator[None, None], Pool]

_lock = threading.Lock()
_background: asyncio.AbstractEventLoop | None = None
_sessions: dict[int, _Entry] = {}


def background_loop() -> asyncio.AbstractEventLoop:
    """The loop of the sync functions, which is started at the first use, and again in a forked process."""
    global _background
    with _lock:
        if _background is None:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="zarrd", daemon=True).start()
            _background = loop
        return _background


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine on the background loop and returns its result. Ctrl-C cancels it."""
    loop = background_loop()
    try:
        running: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
    except RuntimeError:
        running = None
    if running is loop:
        work.close()
        raise RuntimeError("a sync function of zarrd was called by its own event loop, which it would block for ever")
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


async def pool() -> Pool:
    """The connections of the running loop for requests without a body."""
    entry = _sessions.get(id(loop := asyncio.get_running_loop()))
    if entry is None or entry[0] is not loop or entry[1].closed:
        entry = await _open(loop)
    return entry[3]


async def session() -> aiohttp.ClientSession:
    """The session of the running loop for all other requests."""
    entry = _sessions.get(id(loop := asyncio.get_running_loop()))
    if entry is None or entry[0] is not loop or entry[1].closed:
        entry = await _open(loop)
    return entry[1]


async def _open(loop: asyncio.AbstractEventLoop) -> _Entry:
    """The session and connections of a loop, which are closed with it. Those of closed loops are dropped."""
    for key, (other, old, _, connections) in list(_sessions.items()):
        if other.is_closed() or other is loop:
            _sessions.pop(key, None)
            _abandon(old, connections)
    connector = aiohttp.TCPConnector(limit=0, limit_per_host=CONNECTIONS, keepalive_timeout=20)
    new = aiohttp.ClientSession(
        connector=connector,
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": f"zarrd-python/{__version__}", "Accept-Encoding": "identity"},
        skip_auto_headers=("Accept", "Content-Type"),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=300),
        read_bufsize=1 << 20,
    )
    connections = Pool()
    closer = _closed_with_loop(new, connections)
    entry = loop, new, closer, connections
    _sessions[id(loop)] = entry
    await anext(closer)
    return entry


async def _closed_with_loop(opened: aiohttp.ClientSession, connections: Pool) -> AsyncGenerator[None, None]:
    # `asyncio.run` closes the generators of its loop at the end, while the loop still runs.
    try:
        yield
    finally:
        connections.close()
        await opened.close()


def _abandon(old: aiohttp.ClientSession, connections: Pool) -> None:
    """Closes the sockets of a session whose loop no longer runs, so that nothing can be awaited."""
    connections.abandon()
    connector = old.connector
    old.detach()
    if connector is None or connector.closed:
        return
    for held in connector._conns.values():
        for protocol, _ in held:
            transport = protocol.transport
            raw = getattr(transport, "_sock", None)
            if raw is not None:
                raw.close()
                transport._sock = None  # type: ignore[union-attr]
    connector._conns.clear()
    connector._closed = True


@atexit.register
def _close_all() -> None:
    entries = list(_sessions.values())
    _sessions.clear()
    for owner, old, closer, connections in entries:
        if owner.is_running():
            try:
                asyncio.run_coroutine_threadsafe(_finish(closer), owner).result(timeout=1)
                continue
            except (TimeoutError, RuntimeError):
                pass
        _abandon(old, connections)


async def _finish(closer: AsyncGenerator[None, None]) -> None:
    await closer.aclose()


def _after_fork() -> None:
    # The thread of the loop is the parent's, and so are the connections: they must not be used or closed here.
    global _background, _lock
    _lock = threading.Lock()
    _background = None
    _parents.extend(_sessions.values())
    _sessions.clear()


_parents: list[_Entry] = []
os.register_at_fork(after_in_child=_after_fork)
