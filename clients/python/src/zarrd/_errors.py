"""Exceptions, each with the members of the server's problem document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = [
    "ConflictError",
    "ConnectionFailed",
    "DamagedError",
    "ForbiddenError",
    "InvalidRequestError",
    "NotFoundError",
    "NotLazyError",
    "NotZarrdError",
    "PreconditionFailedError",
    "ServerTooOldError",
    "TooLargeError",
    "UnauthorizedError",
    "UnavailableError",
    "ZarrdError",
    "error_from_problem",
]

PROBLEM_PREFIX = "https://zarrd.dev/problems/"
DAMAGED = "corrupt-value"
"""The type of the problem of a value that is damaged."""


class ZarrdError(Exception):
    """A request that failed.

    `status` is the HTTP status, or None if there was no response. `type` is the short name of the problem, such as
    `"no-such-node"`, and `problem` the whole document (RFC 9457). Its other members are attributes too:
    `error.nearest`, `error.smaller`.
    """

    def __init__(self, message: str, *, status: int | None = None, problem: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.problem: dict[str, Any] = dict(problem or {})

    @property
    def type(self) -> str:
        """The short name of the problem's type; empty if there was no problem document."""
        return str(self.problem.get("type", "")).removeprefix(PROBLEM_PREFIX)

    def __getattr__(self, name: str) -> Any:
        problem = self.__dict__.get("problem", {})
        if name in problem:
            return problem[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.status, self.problem)


def _rebuild(kind: type[ZarrdError], message: str, status: int | None, problem: dict[str, Any]) -> ZarrdError:
    return kind(message, status=status, problem=problem)


class InvalidRequestError(ZarrdError, ValueError):
    """The server rejected the selection, label, type, shape or element of a request (400, 406, 415, 422)."""


class UnauthorizedError(ZarrdError, PermissionError):
    """A token is needed, or the one that was sent is not accepted (401)."""


class ForbiddenError(ZarrdError, PermissionError):
    """The token does not have the right, or the server is read-only (403)."""


class NotFoundError(ZarrdError, FileNotFoundError, KeyError):
    """There is no such key or node (404)."""


class ConflictError(ZarrdError):
    """The request contradicts what is stored (409)."""


class PreconditionFailedError(ZarrdError):
    """What was to be changed has changed meanwhile, or exists already (412)."""


class TooLargeError(ZarrdError, ValueError):
    """A limit of the server is exceeded (413); `smaller` is a selection that fits, if there is one."""


class UnavailableError(ZarrdError):
    """The server is busy, full or shutting down (429, 503, 504, 507), and stayed so until the deadline."""


class DamagedError(ZarrdError):
    """What is stored at a key is damaged, so the server does not serve it (500); `key` is the key.

    It is no `OSError`, which programs take for a missing value, in whose place they would return the fill value.
    """


class ConnectionFailed(ZarrdError, ConnectionError):
    """The server did not answer. Whether a change was made is unknown if the request had been sent."""


class NotZarrdError(ZarrdError):
    """What answered is not a zarrd server, or the URL is not that of one of its nodes."""


class ServerTooOldError(ZarrdError, NotImplementedError):
    """The server does not know this request; a newer zarrd does."""


class NotLazyError(TypeError):
    """A variable is no longer what the server has stored, so the server cannot compute with it."""


_BY_STATUS: dict[int, type[ZarrdError]] = {
    400: InvalidRequestError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    406: InvalidRequestError,
    409: ConflictError,
    412: PreconditionFailedError,
    413: TooLargeError,
    415: InvalidRequestError,
    416: InvalidRequestError,
    422: InvalidRequestError,
    429: UnavailableError,
    503: UnavailableError,
    504: UnavailableError,
    507: UnavailableError,
}

_HINTS = {
    "unauthorized": "pass token=…, set ZARRD_TOKEN, or run `zarrd login URL`",
    "forbidden": "ask an administrator of the server for a token with this right",
}


def damaged(key: str) -> DamagedError:
    """The error for a key whose record is damaged, as listings mark it."""
    problem = {"type": PROBLEM_PREFIX + DAMAGED, "title": "Stored value is damaged", "status": 500, "key": key}
    return DamagedError(f"what is stored at {key!r} is damaged", status=500, problem=problem)


def error_from_problem(problem: Mapping[str, Any], status: int, *, had_token: bool = False) -> ZarrdError:
    """The exception for a problem document. Its text is the document's `detail`, and what can be done about it."""
    detail = str(problem.get("detail") or problem.get("title") or f"the server answered {status}")
    name = str(problem.get("type", "")).removeprefix(PROBLEM_PREFIX)
    if name == "unauthorized" and had_token:
        detail += "; the token was not accepted: it may have expired or been revoked, so log in with a new one"
    elif name in _HINTS:
        detail += "; " + _HINTS[name]
    for place in problem.get("differences", ())[:3]:
        detail += f"; {place.get('pointer')}: expected {place.get('expected')!r}, is {place.get('actual')!r}"
    if "smaller" in problem and "smaller" not in detail:
        detail += f"; this selection fits: {problem['smaller']}"
    if "nearest" in problem and "nearest" not in detail:
        detail += f"; the nearest label is {problem['nearest']}"
    if name == DAMAGED:
        key = problem.get("key")
        if key is not None and str(key) not in detail:
            detail += f"; the key is {key}"
        return DamagedError(detail, status=status, problem=problem)
    kind = _BY_STATUS.get(status, ZarrdError)
    return kind(detail, status=status, problem=problem)
