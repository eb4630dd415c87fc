"""zarr-python's suite for `FsspecStore` over `zarrd://`, and the file system by itself."""

from __future__ import annotations

import os
import pickle
from typing import Any

import fsspec
import pytest
from zarr.core.buffer import Buffer, cpu
from zarr.storage import FsspecStore
from zarr.testing.store import StoreTests

import zarrd
from zarrd.fsspec import ZarrdFileSystem, ZarrdsFileSystem


@pytest.fixture
def url(server: zarrd.Server, path: str) -> str:
    return f"{server.url.replace('http', 'zarrd')}/{path}"


class TestFsspecStore(StoreTests[FsspecStore, cpu.Buffer]):
    store_cls = FsspecStore
    buffer_cls = cpu.Buffer

    @pytest.fixture
    def store_kwargs(self, url: str) -> dict[str, Any]:
        fs, path = fsspec.url_to_fs(url, asynchronous=True)
        return {"fs": fs, "path": path}

    async def set(self, store: FsspecStore, key: str, value: Buffer) -> None:
        other = ZarrdFileSystem(store.fs.host)
        other.pipe_file(f"{store.path}/{key}", value.to_bytes())

    async def get(self, store: FsspecStore, key: str) -> Buffer:
        other = ZarrdFileSystem(store.fs.host)
        return self.buffer_cls.from_bytes(other.cat(f"{store.path}/{key}"))

    def test_store_repr(self, store: FsspecStore) -> None:
        assert str(store) == f"<FsspecStore(ZarrdFileSystem, {store.path})>"

    def test_store_supports_writes(self, store: FsspecStore) -> None:
        assert store.supports_writes

    def test_store_supports_listing(self, store: FsspecStore) -> None:
        assert store.supports_listing


def test_files_and_directories(url: str, tmp_path: Any) -> None:
    fs, root = fsspec.url_to_fs(url)
    assert not fs.exists(root) and fs.find(root) == []
    with pytest.raises(FileNotFoundError):
        fs.ls(root)
    fs.pipe({f"{root}/a/{i}": bytes([i] * i) for i in range(4)} | {f"{root}/b x%.txt": b"forty-two"})
    assert fs.ls(root, detail=False) == [f"{root}/a", f"{root}/b x%.txt"]
    sizes = {each["name"].rpartition("/")[2]: (each["type"], each["size"]) for each in fs.ls(f"{root}/a")}
    assert sizes == {str(i): ("file", i) for i in range(4)}
    assert fs.isdir(f"{root}/a") and fs.isfile(f"{root}/a/0") and not fs.isfile(f"{root}/a")
    assert fs.find(root, withdirs=True) == [root, f"{root}/a", *(f"{root}/a/{i}" for i in range(4)), f"{root}/b x%.txt"]
    assert fs.glob(f"{root}/a/[12]") == [f"{root}/a/1", f"{root}/a/2"]
    assert fs.du(f"{root}/a") == 6
    assert fs.cat_file(f"{root}/b x%.txt", -3) == b"two" and fs.cat_file(f"{root}/b x%.txt", 1, -3) == b"orty-"
    assert fs.unstrip_protocol(f"{root}/a") == f"{url}/a"
    fs.mv(f"{root}/b x%.txt", f"{root}/c")
    assert fs.cat(f"{root}/c") == b"forty-two" and not fs.exists(f"{root}/b x%.txt")
    fs.mv(f"{root}/a", f"{root}/d", recursive=True)
    assert fs.find(root) == [f"{root}/c", *(f"{root}/d/{i}" for i in range(4))]
    fs.get(f"{root}/d", str(tmp_path / "d"), recursive=True)
    assert sorted(os.listdir(tmp_path / "d")) == list("0123")
    fs.put(str(tmp_path / "d"), f"{root}/e", recursive=True)
    assert fs.cat(f"{root}/e/3") == b"\3\3\3"
    fs.rm(f"{root}/e", recursive=True)
    fs.rm(f"{root}/e", recursive=True)
    assert fs.find(f"{root}/c") == [f"{root}/c"] and fs.find(f"{root}/c/") == []
    fs.rm(f"{root}/d/*")
    assert fs.find(root) == [f"{root}/c"]
    fs.rm(root, recursive=True)
    assert not fs.exists(root)


def test_listings_are_not_cached(url: str) -> None:
    fs, root = fsspec.url_to_fs(url)
    other = pickle.loads(pickle.dumps(fs))
    for i in range(3):
        other.pipe_file(f"{root}/{i}", b"")
        assert len(fs.ls(root)) == i + 1
    other.rm_file(f"{root}/0")
    assert fs.ls(root, detail=False) == [f"{root}/1", f"{root}/2"]


def test_file_is_created_once(url: str) -> None:
    fs, root = fsspec.url_to_fs(url)
    fs.pipe_file(f"{root}/once", b"one", mode="create")
    with pytest.raises(FileExistsError):
        fs.pipe_file(f"{root}/once", b"two", mode="create")
    assert fs.cat(f"{root}/once") == b"one"


def test_group_is_no_file(url: str) -> None:
    fs, root = fsspec.url_to_fs(url)
    fs.pipe_file(f"{root}/g/zarr.json", b'{"zarr_format": 3, "node_type": "group"}')
    with pytest.raises(IsADirectoryError):
        fs.rm(f"{root}/g")
    assert fs.exists(f"{root}/g/zarr.json")


def test_open_files(url: str) -> None:
    fs, root = fsspec.url_to_fs(url)
    content = os.urandom(12_000_000)
    with fs.open(f"{root}/v", "wb") as file:
        for start in range(0, len(content), 1_000_000):
            file.write(content[start : start + 1_000_000])
    with fs.open(f"{root}/v") as file:
        assert file.seek(5_000_000) and file.read(10) == content[5_000_000:5_000_010]
        file.seek(0)
        assert file.read() == content
    with fs.open(f"{root}/t", "w") as file:
        file.write("zwei\nvierzig")
    with fs.open(f"{root}/t", "r") as file:
        assert file.read().split() == ["zwei", "vierzig"]


def test_ranges_are_merged(url: str) -> None:
    fs, root = fsspec.url_to_fs(url)
    content = bytes(range(256)) * 2000
    fs.pipe_file(f"{root}/v", content)
    starts = [5, 100, 400_000, 7, None, -3, 511_999, 600_000, 30]
    ends = [9, 200, 400_100, 250, 3, None, 600_000, 700_000, 30]
    found = fs.cat_ranges([f"{root}/v"] * len(starts), starts, ends)
    assert found == [content[start:end] for start, end in zip(starts, ends, strict=True)]
    missing = fs.cat_ranges([f"{root}/v", f"{root}/none"], 0, 2)
    assert missing[0] == content[:2] and isinstance(missing[1], FileNotFoundError)


def test_urls() -> None:
    assert fsspec.get_filesystem_class("zarrds") is ZarrdsFileSystem
    fs, path = fsspec.url_to_fs("zarrds://example.org/lab/x")
    assert (type(fs), fs.host, path) == (ZarrdsFileSystem, "example.org", "lab/x")
    assert fs._connection.address.url("store", path) == "https://example.org/store/lab/x"
    fs, path = fsspec.url_to_fs("zarrd://h:8000/s/zarrdlink_1_ab/store/lab/x")
    assert path == "lab/x" and fs._connection.address.url("store", path) == "http://h:8000/s/zarrdlink_1_ab/store/lab/x"


def test_methods_work_after_a_fork(url: str) -> None:
    import warnings

    fs, root = fsspec.url_to_fs(url)
    fs.pipe_file(f"{root}/v", b"v")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        os._exit(0 if fs.cat_file(f"{root}/v") == b"v" else 1)
    assert os.waitpid(child, 0)[1] == 0
