"""What goes wrong: addresses, tokens, servers that go away, damaged files. Each message says what to do."""

from __future__ import annotations

import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import xarray as xr

import zarrd
from zarrd._address import parse_address
from zarrd._http import Retries
from zarrd._tokens import find_token

FAST = Retries(deadline=3, connections=3, first=0.01)


class Other(http.server.BaseHTTPRequestHandler):
    """A server whose answers the test chooses."""

    answer: Callable[[Any], None]

    def do_GET(self) -> None:
        type(self).answer(self)

    do_PUT = do_POST = do_DELETE = do_HEAD = do_PATCH = do_GET

    def send(self, status: int, body: bytes = b"", **fields: str) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.rfile.read(length)
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **fields}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def other() -> Iterator[tuple[type[Other], str]]:
    handler = type("Chosen", (Other,), {})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield handler, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_addresses() -> None:
    for url, base, path in [
        ("http://h:8000", "http://h:8000", ""),
        ("http://h:80/store/a/b%20c/", "http://h", "a/b c"),
        ("https://h/array/a", "https://h", "a"),
        ("http://h/lab/node/x", "http://h/lab", "x"),
        ("zarrd://h:8000/a/b", "http://h:8000", "a/b"),
        ("zarrds://h", "https://h", ""),
        ("http://h/s/zarrdlink_1_x/store/a", "http://h/s/zarrdlink_1_x", "a"),
        ("http://[::1]:8000/store/a", "http://[::1]:8000", "a"),
    ]:
        address = parse_address(url)
        assert (address.base, address.path) == (base, path)
    for url in ("ftp://h/x", "h:8000", "/data", "http://", "http://u:p@h/x", "http://h/array/x?select=1"):
        with pytest.raises(ValueError):
            parse_address(url)


def test_address_of_the_page(server: zarrd.Server) -> None:
    with pytest.raises(zarrd.NotZarrdError, match=f"page.*connect to {server.url} and open 'lab/x'"):
        zarrd.connect(f"{server.url}/browse/lab/x#i=3")


def test_another_server(other: tuple[type[Other], str]) -> None:
    handler, url = other
    handler.answer = lambda self: self.send(404, b"<html>", Content_Type="text/html")
    with pytest.raises(zarrd.NotZarrdError, match=r"another server \(BaseHTTP.*zarrd serve"):
        zarrd.connect(url)
    handler.answer = lambda self: self.send(200, b"<html>", Content_Type="text/html")
    with pytest.raises(zarrd.NotZarrdError):
        zarrd.connect(url)
    handler.answer = lambda self: self.send(200, b"<html>", X_Request_Id="a")
    with pytest.raises(zarrd.NotZarrdError, match="not JSON"):
        zarrd.connect(url)
    handler.answer = lambda self: self.send(502, b"bad gateway")
    with pytest.raises(zarrd.UnavailableError, match="proxy"):
        zarrd.connect(url)


def test_older_server(other: tuple[type[Other], str]) -> None:
    handler, url = other
    handler.answer = lambda self: self.send(200, b'{"writable": true}', X_Request_Id="a")
    with pytest.raises(zarrd.ServerTooOldError, match="update it"):
        zarrd.connect(url)

    def old(self: Any) -> None:
        if self.path == "/readyz":
            self.send(200, b'{"writable": true, "guarantees": []}', X_Request_Id="a")
        elif self.command in ("PUT", "POST"):
            body = {"type": "https://zarrd.dev/problems/method-not-allowed", "status": 405, "detail": "no"}
            self.send(405, json.dumps(body).encode(), X_Request_Id="a")

    handler.answer = old
    with pytest.raises(zarrd.ServerTooOldError, match="older than this client.*create_array"):
        zarrd.connect(url).put("a", np.arange(3))


def test_server_that_is_busy(other: tuple[type[Other], str]) -> None:
    handler, url = other
    asked: list[float] = []

    def busy(self: Any) -> None:
        asked.append(time.monotonic())
        if len(asked) < 3:
            self.send(503 if len(asked) == 1 else 429, b"{}", X_Request_Id="a", Retry_After="1")
        else:
            self.send(200, b'{"writable": true, "guarantees": []}', X_Request_Id="a")

    handler.answer = busy
    zarrd.connect(url)
    assert len(asked) == 3 and asked[2] - asked[1] > 0.9
    problem = {"type": "https://zarrd.dev/problems/busy", "status": 503, "detail": "no memory is free", "limit": 7}
    handler.answer = lambda self: self.send(503, json.dumps(problem).encode(), X_Request_Id="a", Retry_After="1")
    begun = time.monotonic()
    with pytest.raises(zarrd.UnavailableError, match="no memory is free") as caught:
        zarrd.connect(url, retries=FAST)["a"]
    assert time.monotonic() - begun < 4
    assert (caught.value.type, caught.value.limit, caught.value.status) == ("busy", 7, 503)
    with pytest.raises(AttributeError):
        _ = caught.value.extent


def test_server_that_is_not_there() -> None:
    with pytest.raises(zarrd.ConnectionFailed, match="cannot reach.*zarrd serve.*Nothing was changed"):
        zarrd.connect("http://127.0.0.1:9", retries=FAST)


def test_append_is_not_repeated(other: tuple[type[Other], str]) -> None:
    handler, url = other
    asked: list[str] = []
    document = {"zarr_format": 3, "node_type": "array", "shape": [0], "data_type": "int8"}

    def gone(self: Any) -> None:
        asked.append(self.command)
        if self.command == "GET":
            body = {"writable": True, "guarantees": []} if self.path == "/readyz" else document
            self.send(200, json.dumps(body).encode(), X_Request_Id="a", Content_Type="application/json")
        else:
            self.connection.close()

    handler.answer = gone
    array = zarrd.connect(url, retries=FAST)["a"]
    with pytest.raises(zarrd.ConnectionFailed, match="may have been made"):
        array.append([1])
    assert asked.count("POST") == 1

    with pytest.raises(zarrd.ConnectionFailed):
        array._elements_written(None, np.zeros(0, "i1"))
    # aiohttp itself repeats it once over a connection that was used before.
    assert 3 <= asked.count("PUT") <= 6


def test_server_that_goes_away(tmp_path: Any) -> None:
    server = zarrd.Server(tmp_path / "store")
    array = zarrd.connect(server.url, retries=FAST).create_array("a", data=np.arange(10))
    os.kill(server.pid, 9)
    with pytest.raises(zarrd.ConnectionFailed, match="zarrd serve"):
        array[...]
    with pytest.raises(zarrd.ConnectionFailed):
        array[...] = 0
    server.close()
    with zarrd.Server(tmp_path / "store") as again:
        assert zarrd.connect(again.url)["a"][...].tolist() == list(range(10))


@pytest.mark.filterwarnings("ignore")
def test_https(tmp_path: Any) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl")
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    files = ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names, *files]
    subprocess.run(command, check=True, capture_output=True)
    (tmp_path / "key.pem").chmod(0o600)
    options = ["--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem")]
    with zarrd.Server("memory:", *options) as server:
        assert server.url.startswith("https://")
        with pytest.raises(zarrd.ConnectionFailed, match="certificate"):
            zarrd.connect(server.url, retries=FAST)
        code = f"""
import numpy as np, xarray as xr, zarr, zarrd, zarrd.fsspec
url = {server.url!r}
data = np.arange(1_000_000.0).reshape(1000, 1000)
assert np.array_equal(zarrd.connect(url).create_array("a/x", data=data, dims=["y", "x"])[...], data)
native = url.replace("https", "zarrds")
assert np.array_equal(zarr.open_array(native + "/a/x", mode="r")[500], data[500])
assert float(xr.open_dataset(native + "/a").x.zarrd.mean()) == data.mean()
"""
        trusted = {**os.environ, "SSL_CERT_FILE": str(tmp_path / "cert.pem")}
        subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, env=trusted)


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    store = tmp_path_factory.mktemp("closed") / "store"
    with zarrd.Server(store, "--anonymous", "none") as server:
        token = (store / "access" / "admin-token").read_text().strip()
        yield server.url, token


def make_token(url: str, token: str, **body: Any) -> str:
    from zarrd._http import Connection
    from zarrd._loop import run

    data = json.dumps(body).encode()
    response = run(
        Connection.to(url, token).send("POST", f"{url}/token", body=data, headers={"Content-Type": "application/json"})
    )
    made: str = response.json()["token"]
    return made


def test_tokens(closed: tuple[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    url, token = closed
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    root = zarrd.connect(url)
    with pytest.raises(zarrd.UnauthorizedError, match="zarrd login"):
        root["lab"]
    with pytest.raises(zarrd.UnauthorizedError, match="expired or been revoked"):
        zarrd.connect(url, token="zarrd_1_nonsense")["lab"]
    admin = zarrd.connect(url, token=token)
    admin.create_array("lab/a", data=np.arange(3))
    assert "token" not in repr(admin._connection) and token not in repr(admin._connection)
    monkeypatch.setenv("ZARRD_TOKEN", token)
    assert zarrd.connect(url)["lab/a"][1] == 1
    monkeypatch.delenv("ZARRD_TOKEN")
    file = tmp_path / "zarrd/tokens.json"
    file.parent.mkdir()
    file.write_text(json.dumps({url: token}))
    file.chmod(0o600)
    assert zarrd.connect(url)["lab/a"][1] == 1
    file.chmod(0o644)
    with pytest.raises(zarrd.ZarrdError, match="chmod 600"):
        find_token(parse_address(url), None)
    file.chmod(0o600)
    file.write_text("{")
    with pytest.raises(zarrd.ZarrdError, match="damaged"):
        find_token(parse_address(url), None)


def test_token_that_ends_in_the_middle(closed: tuple[str, str]) -> None:
    url, token = closed
    admin = zarrd.connect(url, token=token)
    admin.create_array("mid/a", data=np.arange(3))
    expires = int(time.time()) + 2
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(expires))
    short = make_token(url, token, name=f"short{expires}", allow=["write:mid/"], expires=stamp)
    array = zarrd.connect(url, token=short)["mid/a"]
    array[0] = 7
    deadline = time.monotonic() + 15
    with pytest.raises(zarrd.UnauthorizedError, match="expired or been revoked, so log in"):
        while time.monotonic() < deadline:
            array[0] = 8
            time.sleep(0.2)
    with pytest.raises(zarrd.UnauthorizedError):
        array.append([1])
    assert admin["mid/a"].shape == (3,)
    reader = make_token(url, token, name=f"reader{expires}", allow=["read:mid/"])
    with pytest.raises(zarrd.ForbiddenError, match="right to write mid/a.*administrator"):
        zarrd.connect(url, token=reader)["mid/a"][0] = 1


def test_npy_of_others(server: zarrd.Server, path: str) -> None:
    from zarrd._types import decode_npy

    root = zarrd.connect(server.url)
    array = root.create_array(path, data=np.zeros((2, 3), "i4"))
    array[...] = np.asfortranarray(np.arange(6).reshape(2, 3))
    assert array[...].tolist() == [[0, 1, 2], [3, 4, 5]]
    array[...] = np.arange(6, dtype=">i2").reshape(2, 3)[:, ::-1]
    assert array[...].tolist() == [[2, 1, 0], [5, 4, 3]]
    with pytest.raises(TypeError):
        array[...] = np.array([[{}, 1, 2], [3, 4, 5]], object)
    import io

    file = io.BytesIO()
    np.save(file, np.array([{}], object), allow_pickle=True)
    with pytest.raises(ValueError, match="allow_pickle"):
        decode_npy(file.getvalue())
    file = io.BytesIO()
    np.save(file, np.asfortranarray(np.arange(6).reshape(2, 3)))
    assert decode_npy(file.getvalue()).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_key_that_cannot_be(server: zarrd.Server) -> None:
    root = zarrd.connect(server.url)
    for name in ("a/../b", "a\nb", "x" * 1100):
        with pytest.raises(zarrd.InvalidRequestError):
            root.create_group(name)
    with pytest.raises(ValueError, match="empty path"):
        root.delete("")


def test_group_is_not_an_array(server: zarrd.Server, path: str) -> None:
    root = zarrd.connect(server.url)
    root.create_array(f"{path}/a", data=np.arange(3))
    with pytest.raises(zarrd.NotFoundError):
        root[f"{path}/b"]
    with pytest.raises(zarrd.InvalidRequestError, match="open the group"):
        xr.open_dataset(f"{server.url}/store/{path}/a", engine="zarrd")
    with pytest.raises(zarrd.NotFoundError):
        xr.open_dataset(f"{server.url}/store/{path}/b", engine="zarrd")


VERSION = '"00000000000000070000000000000001"'
DOCUMENT = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [4],
    "data_type": "uint8",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
    "chunk_key_encoding": {"name": "default"},
    "fill_value": 9,
    "codecs": [{"name": "bytes"}],
    "attributes": {},
}


def answer_damaged(request: Any) -> None:
    """A server that has an array with one chunk, and another chunk that is damaged."""
    fields = {"X_Request_Id": "1", "ETag": VERSION}
    path, _, query = request.path.partition("?")
    value = {"size": 2, "etag": VERSION, "modified": "2026-11-21T06:28:08.123Z"}
    damaged = {"size": 0, "etag": VERSION, "modified": "1970-01-01T00:00:00.000Z", "damaged": True}
    problem = {"type": "https://zarrd.dev/problems/corrupt-value", "status": 500, "title": "Stored value is damaged"}
    if path == "/readyz":
        request.send(200, b'{"writable": true, "problem": null, "guarantees": []}', **fields)
    elif "list=" in query:
        listing = {"prefix": "a/c/", "keys": ["a/c/0", "a/c/1"], "values": [value, damaged], "prefixes": [], "cursor": None}
        request.send(200, json.dumps(listing).encode(), Content_Type="application/json", **fields)
    elif path == "/store/a/zarr.json":
        request.send(200, json.dumps(DOCUMENT).encode(), **fields)
    elif path == "/store/a/c/0":
        request.send(200, b"\x01\x02", **fields)
    elif path in ("/store/a/c/1", "/node/a"):
        body = json.dumps({**problem, "detail": "the stored value is damaged", "key": "a/c/1"}).encode()
        request.send(500, body, Content_Type="application/problem+json", X_Request_Id="1")
    else:
        request.send(404, b"{}", **fields)


def test_damaged_values_are_named_and_never_taken_for_missing(other: tuple[type[Other], str]) -> None:
    import fsspec
    import zarr

    handler, url = other
    handler.answer = answer_damaged
    place = f"{url}/store/a"
    array = zarr.open_array(zarrd.ZarrStore(place, read_only=True), mode="r")
    assert array[:2].tolist() == [1, 2]
    with pytest.raises(zarrd.DamagedError, match="a/c/1") as raised:
        array[:]
    assert (raised.value.key, raised.value.status, raised.value.type) == ("a/c/1", 500, "corrupt-value")
    # Programs take these for a missing value, and return the fill value.
    assert not isinstance(raised.value, (OSError, KeyError))
    store = zarrd.ZarrStore(place)
    for action in (store.getsize("c/1"), store.exists("c/1"), store.getsize_prefix("c")):
        with pytest.raises(zarrd.DamagedError, match="a/c/1"):
            zarrd._loop.run(action)
    with pytest.raises(zarrd.DamagedError, match="a/c/1"):
        zarrd.connect(url)["a"]
    files = fsspec.filesystem("zarrd", host=url.removeprefix("http://"))
    listed = files.ls("a/c", detail=True)
    assert [(each["name"], each.get("damaged", False)) for each in listed] == [("a/c/0", False), ("a/c/1", True)]
    assert (listed[1]["size"], listed[1]["type"]) == (None, "file")
    for read in (lambda: files.cat_file("a/c/1"), lambda: files.info("a/c/1"), lambda: files.du("a/c")):
        with pytest.raises(zarrd.DamagedError, match="a/c/1"):
            read()
