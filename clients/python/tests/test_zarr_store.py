"""zarr-python's own suites of tests, for `ZarrStore`."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.core.buffer import Buffer, cpu, default_buffer_prototype
from zarr.testing.store import StoreTests

import zarrd
from zarrd._http import Connection
from zarrd._loop import run


def raw(method: str, store: zarrd.ZarrStore, key: str, value: bytes | None = None) -> bytes:
    """A request past the store."""
    connection = Connection.to(store.url)
    return run(connection.send(method, f"{store.url}/{key}", body=value)).body


class TestZarrStore(StoreTests[zarrd.ZarrStore, cpu.Buffer]):
    store_cls = zarrd.ZarrStore
    buffer_cls = cpu.Buffer

    @pytest.fixture
    def store_kwargs(self, place: str) -> dict[str, Any]:
        return {"url": place}

    async def set(self, store: zarrd.ZarrStore, key: str, value: Buffer) -> None:
        await asyncio.to_thread(raw, "PUT", store, key, value.to_bytes())

    async def get(self, store: zarrd.ZarrStore, key: str) -> Buffer:
        return self.buffer_cls.from_bytes(await asyncio.to_thread(raw, "GET", store, key))

    def test_store_repr(self, store: zarrd.ZarrStore) -> None:
        assert repr(store) == f"ZarrStore({store.url!r})"

    def test_store_supports_writes(self, store: zarrd.ZarrStore) -> None:
        assert store.supports_writes

    def test_store_supports_listing(self, store: zarrd.ZarrStore) -> None:
        assert store.supports_listing

    async def test_range_beyond_the_end(self, store: zarrd.ZarrStore) -> None:
        from zarr.abc.store import OffsetByteRequest, RangeByteRequest, SuffixByteRequest

        await store.set("a", cpu.Buffer.from_bytes(b"0123"))
        for request, expected in [
            (RangeByteRequest(2, 9), b"23"),
            (RangeByteRequest(9, 12), b""),
            (RangeByteRequest(2, 2), b""),
            (OffsetByteRequest(4), b""),
            (SuffixByteRequest(9), b"0123"),
            (SuffixByteRequest(0), b""),
        ]:
            found = await store.get("a", default_buffer_prototype(), request)
            assert found is not None and found.to_bytes() == expected, request

    async def test_prefix_is_erased_by_one_request(self, store: zarrd.ZarrStore, server: zarrd.Server) -> None:
        await store._set_many([(f"a/{i}", cpu.Buffer.from_bytes(b"x")) for i in range(100)])
        before = deletes(server)
        await store.delete_dir("a")
        assert deletes(server) - before == 1 and await store.is_empty("a")

    async def test_of_many_creators_one_succeeds(self, store: zarrd.ZarrStore) -> None:
        values = [cpu.Buffer.from_bytes(bytes([i])) for i in range(32)]
        await asyncio.gather(*(store.set_if_not_exists("once", value) for value in values))
        first = await store.get("once")
        await store.set_if_not_exists("once", cpu.Buffer.from_bytes(b"later"))
        assert await store.get("once") == first

    @pytest.mark.skipif(not hasattr(zarr.abc.store.Store, "get_ranges"), reason="this zarr has no get_ranges")
    async def test_ranges_are_coalesced(self, store: zarrd.ZarrStore) -> None:
        from zarr.abc.store import RangeByteRequest

        value = bytes(range(256)) * 40
        await store.set("v", cpu.Buffer.from_bytes(value))
        ranges = [RangeByteRequest(i, i + 7) for i in range(0, 10_000, 100)]
        batches = [batch async for batch in store.get_ranges("v", ranges, prototype=default_buffer_prototype())]
        assert len(batches) == 1
        for index, part in batches[0]:
            assert part is not None and part.to_bytes() == value[ranges[index].start : ranges[index].end]


def deletes(server: zarrd.Server) -> int:
    text = run(Connection.to(server.url).send("GET", f"{server.url}/metrics")).body.decode()
    lines = [line for line in text.splitlines() if 'method="DELETE"' in line and "requests_total" in line]
    return sum(int(line.rpartition(" ")[2]) for line in lines)


def test_store_is_used_in_several_loops_and_threads(place: str) -> None:
    store = zarrd.ZarrStore(place)
    for i in range(5):
        asyncio.run(store.set(f"k{i}", cpu.Buffer.from_bytes(b"v")))
    assert asyncio.run(_all(store)) == [f"k{i}" for i in range(5)]
    array = zarr.create_array(store, name="a", shape=(8, 8), chunks=(2, 2), dtype="i4")
    array[...] = np.arange(64).reshape(8, 8)

    async def read() -> np.ndarray[Any, Any]:
        opened = await zarr.api.asynchronous.open_array(store=store, path="a")
        return np.asarray(await opened.getitem(...))

    assert np.array_equal(asyncio.run(read()), array[...])


async def _all(store: zarrd.ZarrStore) -> list[str]:
    return sorted([key async for key in store.list()])


def _read(packed: bytes, results: Any) -> None:
    store = pickle.loads(packed)
    # zarr's own loop does not survive a fork by itself; ours has to.
    value = store.get_sync("a")
    results.put(value.to_bytes())


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_store_is_used_by_other_processes(place: str, method: str) -> None:
    store = zarrd.ZarrStore(place)
    store.set_sync("a", cpu.Buffer.from_bytes(b"forty-two"))
    context = multiprocessing.get_context(method)
    results = context.Queue()
    children = [context.Process(target=_read, args=(pickle.dumps(store), results)) for _ in range(3)]
    for child in children:
        child.start()
    assert [results.get(timeout=30) for _ in children] == [b"forty-two"] * 3
    for child in children:
        child.join(timeout=30)
        assert child.exitcode == 0
    found = store.get_sync("a")
    assert found is not None and found.to_bytes() == b"forty-two"


def test_fork_while_requests_are_in_progress(place: str) -> None:
    store = zarrd.ZarrStore(place)
    store.set_sync("a", cpu.Buffer.from_bytes(b"x" * 4_000_000))
    import threading
    import warnings

    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            assert store.get_sync("a") is not None

    thread = threading.Thread(target=read)
    thread.start()
    try:
        for _ in range(5):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                child = os.fork()
            if child == 0:
                found = store.get_sync("a")
                os._exit(0 if found is not None and len(found) == 4_000_000 else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        thread.join()


def test_sharded_array_through_every_pipeline(place: str) -> None:
    data = np.arange(10_000, dtype="f4").reshape(100, 100)
    store = zarrd.ZarrStore(place)
    array = zarr.create_array(store, name="a", shape=data.shape, chunks=(10, 10), shards=(50, 50), dtype="f4")
    array[...] = data
    for pipeline in ("BatchedCodecPipeline", "FusedCodecPipeline"):
        if not hasattr(zarr.core.codec_pipeline, pipeline):
            continue
        with zarr.config.set({"codec_pipeline.path": f"zarr.core.codec_pipeline.{pipeline}"}):
            opened = zarr.open_array(store, path="a", mode="r+")
            assert np.array_equal(opened[13:57, 5:77], data[13:57, 5:77])
            opened[1:3, 4] = 7
            data[1:3, 4] = 7
            assert np.array_equal(opened[...], data)
