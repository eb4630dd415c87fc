"""Reads chunks through three stores of zarr-python, in turns: `ZarrStore`, fsspec's http, and obstore.

    stores.py URL [ROUNDS]

Prints for each case and store the median of the rounds in seconds, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from typing import Any

import fsspec
import numpy as np
import obstore.store
import zarr
from zarr.core.buffer import default_buffer_prototype
from zarr.storage import FsspecStore, ObjectStore

import zarrd

url, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 7
place = f"{url}/store/bench"
CASES = {"64 chunks of 0.5 MB": (64, 524_288), "1,000 chunks of 1 KiB": (1000, 1024)}

writer = zarrd.ZarrStore(place)
for count, size in CASES.values():
    random = np.random.default_rng(1).integers(0, 255, (count, size), "u1")
    array = zarr.create_array(
        writer, name=str(size), shape=random.shape, chunks=(1, size), dtype="u1", compressors=None, overwrite=True
    )
    array[...] = random


def stores() -> dict[str, Any]:
    fs = fsspec.filesystem("http", asynchronous=True, skip_instance_cache=True)
    return {
        "zarrd": zarrd.ZarrStore(place, read_only=True),
        "fsspec http": FsspecStore(fs, path=place, read_only=True),
        "obstore": ObjectStore(
            obstore.store.HTTPStore.from_url(place, client_options={"allow_http": True}), read_only=True
        ),
    }


async def gets(store: Any, size: int, count: int) -> None:
    """The values themselves, 64 at a time."""
    limit = asyncio.Semaphore(64)
    prototype = default_buffer_prototype()

    async def get(index: int) -> None:
        async with limit:
            value = await store.get(f"{size}/c/{index}/0", prototype)
            assert value is not None
            assert len(value) == size

    await asyncio.gather(*map(get, range(count)))


results: dict[str, dict[str, float]] = {}
opened = stores()
for name, (count, size) in CASES.items():
    arrays = {kind: zarr.open_array(store, path=str(size), mode="r") for kind, store in opened.items()}
    times: dict[str, list[float]] = {kind: [] for kind in arrays}
    values: dict[str, list[float]] = {kind: [] for kind in arrays}
    for turn in range(rounds + 1):
        for kind in sorted(arrays, key=lambda each: (hash(each) + turn) % 3):
            begun = time.perf_counter()
            assert arrays[kind][...].shape == (count, size)
            middle = time.perf_counter()
            zarr.core.sync.sync(gets(opened[kind], size, count))
            if turn:
                times[kind].append(middle - begun)
                values[kind].append(time.perf_counter() - middle)
    results[f"array, {name}"] = {kind: statistics.median(each) for kind, each in times.items()}
    results[f"store, {name}"] = {kind: statistics.median(each) for kind, each in values.items()}
print(json.dumps(results))
