"""Requests to one server: retries with deadlines, and exceptions in place of problem documents."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
from yarl import URL

from . import _loop
from ._address import Address, parse_address
from ._errors import (
    ConnectionFailed,
    NotZarrdError,
    UnavailableError,
    ZarrdError,
    error_from_problem,
)
from ._tokens import find_token
from ._version import __version__
from ._wire import UnusualResponse

JSON = "application/json"

_PIECE = 1 << 20

_FIELDS = {"User-Agent": f"zarrd-python/{__version__}", "Accept-Encoding": "identity"}


@dataclass(frozen=True)
class Retries:
    """How long a request is tried.

    A server that is busy (429, 503) is asked again until `deadline` seconds have passed, after the time that it names
    or after one that doubles from `first` to `longest`. A connection that fails is tried `connections` times, unless
    the request was an append or conditional change that may have been made.
    """

    deadline: float = 60.0
    connections: int = 5
    first: float = 0.1
    longest: float = 5.0


@dataclass
class Response:
    """A response with its body."""

    status: int
    headers: Mapping[str, str]
    body: bytes | bytearray

    def json(self) -> Any:
        """The body as JSON. NumPy's and Python's `NaN` and `Infinity` are accepted."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Connection:
    """What is needed to reach one server. It has no open sockets, so it can be pickled and used after a fork."""

    address: Address
    token: str | None = field(default=None, repr=False)
    retries: Retries = Retries()

    @classmethod
    def to(cls, url: str | Address, token: str | None = None, retries: Retries | None = None) -> Connection:
        """The connection for a URL; the token is looked up if none is given."""
        address = parse_address(url) if isinstance(url, str) else url
        return cls(address, find_token(address, token), retries or Retries())

    async def send(
        self,
        method: str,
        url: str,
        *,
        query: str = "",
        headers: Mapping[str, str] | None = None,
        body: bytes | bytearray | memoryview | None = None,
        repeatable: bool = True,
        accept: tuple[int, ...] = (),
    ) -> Response:
        """Sends a request; returns the response if its status is below 400 or in `accept`.

        Raises a `ZarrdError` for all others. With `repeatable=False` the request is not sent a second time once a
        connection was lost that it may have passed.
        """
        fields = dict(headers or {})
        if self.token is not None:
            fields["Authorization"] = f"Bearer {self.token}"
        target = f"{url}?{query}" if query else url
        ends = time.monotonic() + self.retries.deadline
        pause, connections = self.retries.first, 0
        while True:
            try:
                if body is None and method in ("GET", "HEAD"):
                    response = await self._ask(method, url, query, fields)
                else:
                    response = await self._once(method, URL(target, encoded=True), fields, body)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                connections += 1
                never_sent = isinstance(error, (aiohttp.ClientConnectorError, ConnectionRefusedError, socket.gaierror))
                untrusted = isinstance(error, (ssl.SSLCertVerificationError, aiohttp.ClientConnectorCertificateError))
                never_sent = never_sent or untrusted
                again = (repeatable or never_sent) and not untrusted
                if not again or connections >= self.retries.connections or time.monotonic() + pause > ends:
                    raise self._unreachable(error, never_sent, repeatable) from error
                await asyncio.sleep(pause * random.uniform(0.8, 1.2))
                pause = min(pause * 2, self.retries.longest)
                continue
            if response.status in accept:
                if "X-Request-Id" not in response.headers:
                    raise self._foreign(response)
                return response
            if response.status in (429, 503):
                wait = _retry_after(response.headers.get("Retry-After"))
                wait = pause * random.uniform(0.8, 1.2) if wait is None else wait
                pause = min(pause * 2, self.retries.longest)
                # A store that became read-only stays so until the server is restarted.
                if b"read-only-store" not in response.body and time.monotonic() + wait <= ends:
                    await asyncio.sleep(wait)
                    continue
            if "X-Request-Id" not in response.headers:
                raise self._foreign(response)
            if response.status < 400:
                return response
            raise self._failure(response)

    async def _ask(self, method: str, url: str, query: str, fields: Mapping[str, str]) -> Response:
        pool = await _loop.pool()
        try:
            return Response(*await pool.ask(method, url, query, {**_FIELDS, **fields}))
        except UnusualResponse:
            target = URL(f"{url}?{query}" if query else url, encoded=True)
            return await self._once(method, target, fields, None)

    async def _once(
        self, method: str, url: URL, headers: Mapping[str, str], body: bytes | bytearray | memoryview | None
    ) -> Response:
        data: Any = body
        if body is not None and len(body) > _PIECE:
            # In pieces, so that a large body does not block other requests of the loop.
            headers = {**headers, "Content-Length": str(len(body))}
            data = _pieces(memoryview(body))
        opened = await _loop.session()
        async with opened.request(method, url, headers=headers, data=data, allow_redirects=False) as response:
            return Response(response.status, response.headers, await response.read())

    def _failure(self, response: Response) -> ZarrdError:
        try:
            problem = response.json() if response.body else {}
        except ValueError:
            problem = {}
        if not isinstance(problem, dict):
            problem = {}
        return error_from_problem(problem, response.status, had_token=self.token is not None)

    def _foreign(self, response: Response) -> ZarrdError:
        if response.status in (429, 502, 503, 504):
            return UnavailableError(
                f"a proxy before {self.address.base} answered {response.status}: the server behind it is not running "
                "or busy",
                status=response.status,
            )
        name = response.headers.get("Server")
        who = f"another server ({name})" if name else "another server"
        return NotZarrdError(
            f"{self.address.base} is {who} and not zarrd: it answered {response.status} without an X-Request-Id; "
            "give the address that `zarrd serve` printed",
            status=response.status,
        )

    def _unreachable(self, error: BaseException, never_sent: bool, repeatable: bool) -> ZarrdError:
        reason = str(error) or type(error).__name__
        if never_sent:
            return ConnectionFailed(
                f"cannot reach {self.address.base}: {reason}; is `zarrd serve` running there? Nothing was changed"
            )
        if isinstance(error, aiohttp.ClientResponseError):
            return NotZarrdError(f"{self.address.base} does not speak HTTP as expected: {reason}")
        after = "" if repeatable else "; read what is stored before you repeat a change, which may have been made"
        return ConnectionFailed(f"{self.address.base} closed the connection or stopped answering: {reason}{after}")


async def _pieces(body: memoryview) -> AsyncIterator[bytes]:
    for start in range(0, len(body), _PIECE):
        yield bytes(body[start : start + _PIECE])


def _retry_after(text: str | None) -> float | None:
    """The seconds that a `Retry-After` asks for, between 0 and an hour; None without a valid one."""
    if text is None:
        return None
    try:
        seconds = float(text) if text.strip().isdigit() else parsedate_to_datetime(text).timestamp() - time.time()
    except (ValueError, TypeError):
        return None
    return min(max(seconds, 0.0), 3600.0)
