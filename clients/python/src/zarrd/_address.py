"""URLs: the server that they name, and the path of a node or prefix."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from ._errors import NotZarrdError

SCHEMES = {"http": "http", "https": "https", "zarrd": "http", "zarrds": "https"}
_SURFACES = ("store", "array", "node")

# What may stand in a path without an escape, as RFC 3986 has it.
_SAFE = "/!$&'()*+,;=:@-._~"


@dataclass(frozen=True)
class Address:
    """A server, and a path on it. `base` ends before `/store`, without a slash: `http://host:8000/s/link`."""

    base: str
    path: str

    def url(self, surface: str, path: str, *, prefix: bool = False) -> str:
        """The percent-encoded URL of a path below `/store`, `/array` or `/node`; a prefix ends in a slash."""
        encoded = quote(path.strip("/"), safe=_SAFE)
        if prefix and encoded:
            encoded += "/"
        return f"{self.base}/{surface}/{encoded}"

    def child(self, name: str) -> Address:
        """The address of a path below this one."""
        return Address(self.base, join_path(self.path, name))

    @property
    def origin(self) -> str:
        """Scheme, host and port, as `zarrd login` stores them."""
        parts = urlsplit(self.base)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def is_shared(self) -> bool:
        """True behind a share link, which needs no token."""
        return "/s/zarrdlink_" in self.base

    def __str__(self) -> str:
        return f"{self.base}/store/{self.path}" if self.path else self.base


def join_path(*parts: str) -> str:
    """Joins paths of nodes without empty segments."""
    return "/".join(segment for part in parts for segment in part.split("/") if segment)


def parse_address(url: str) -> Address:
    """The server and path that a URL names.

    Accepted are the server's own address, one of `/store/…`, `/array/…` or `/node/…`, share links, and
    `zarrd://host:port/path` (HTTP) and `zarrds://host/path` (HTTPS), whose path begins at the root of the store.

    Raises `ValueError` for other schemes, and `NotZarrdError` for the address of the page, whose path it names.
    """
    parts = urlsplit(url)
    scheme = SCHEMES.get(parts.scheme)
    if scheme is None or not parts.hostname:
        known = ", ".join(f"{name}://" for name in SCHEMES)
        raise ValueError(f"{url!r} is not the URL of a zarrd server; it has to begin with one of {known} and a host")
    if parts.username is not None or parts.password is not None:
        raise ValueError("a URL with a user name or password is not accepted; pass token=… instead")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    origin = f"{scheme}://{host}"
    default = 443 if scheme == "https" else 80
    if parts.port is not None and parts.port != default:
        origin += f":{parts.port}"
    segments = [segment for segment in parts.path.split("/") if segment]
    if parts.query or (parts.fragment and "browse" not in segments):
        raise ValueError(f"{url!r} has a query; give the URL of the node alone, and what is selected as an index")
    link: list[str] = []
    if (
        "s" in segments
        and (at := segments.index("s")) + 1 < len(segments)
        and segments[at + 1].startswith("zarrdlink_")
    ):
        link, segments = segments[: at + 2], segments[at + 2 :]
    native = parts.scheme in ("zarrd", "zarrds")
    if "browse" in segments and not native:
        at = segments.index("browse")
        base = "/".join([origin, *link, *segments[:at]])
        path = "/".join(map(unquote, segments[at + 1 :]))
        raise NotZarrdError(f"{url} is the address of the page for browsers; connect to {base} and open {path!r}")
    if native:
        if segments and segments[0] == "store" and link:
            segments = segments[1:]
        return Address("/".join([origin, *link]), "/".join(map(unquote, segments)))
    for at, segment in enumerate(segments):
        if segment in _SURFACES:
            base = "/".join([origin, *link, *segments[:at]])
            return Address(base, "/".join(map(unquote, segments[at + 1 :])))
    return Address("/".join([origin, *link, *segments]), "")
