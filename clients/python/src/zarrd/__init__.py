"""Client of zarrd, a server for Zarr data.

>>> import zarrd
>>> lab = zarrd.connect("http://127.0.0.1:8000")["lab"]
>>> lab["sea/sst"].sel(time="2020-02", lat=55).mean("time")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._array import Array, Selection
from ._errors import (
    ConflictError,
    ConnectionFailed,
    DamagedError,
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
    NotLazyError,
    NotZarrdError,
    PreconditionFailedError,
    ServerTooOldError,
    TooLargeError,
    UnauthorizedError,
    UnavailableError,
    ZarrdError,
)
from ._group import Group, connect
from ._http import Retries
from ._importer import import_file
from ._server import Server
from ._version import __version__

if TYPE_CHECKING:
    from ._store import ZarrStore

__all__ = [
    "Array",
    "ConflictError",
    "ConnectionFailed",
    "DamagedError",
    "ForbiddenError",
    "Group",
    "InvalidRequestError",
    "NotFoundError",
    "NotLazyError",
    "NotZarrdError",
    "PreconditionFailedError",
    "Retries",
    "Selection",
    "Server",
    "ServerTooOldError",
    "TooLargeError",
    "UnauthorizedError",
    "UnavailableError",
    "ZarrStore",
    "ZarrdError",
    "__version__",
    "connect",
    "import_file",
]


def __getattr__(name: str) -> Any:
    # zarr and xarray are optional, and importing them takes a second.
    if name == "ZarrStore":
        try:
            from ._store import ZarrStore
        except ModuleNotFoundError as error:
            raise ImportError(f"zarrd.ZarrStore needs the package {error.name}: pip install 'zarrd[zarr]'") from error
        return ZarrStore
    raise AttributeError(f"module 'zarrd' has no attribute {name!r}")
