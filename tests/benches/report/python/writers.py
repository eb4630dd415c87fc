"""Writes of an array from memory: creation and filling, until the call returns."""

import http.client
import json
import os
import pathlib
import shutil
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from urllib.parse import urlsplit

import numpy as np


def zarrd(url, document, data):
    """zarrd's /node and /array: durable when acknowledged."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port)

    def send(method, path, body, media, expected):
        connection.request(method, path, body, {"Content-Type": media} if media else {})
        answer = connection.getresponse()
        said = answer.read()
        if answer.status not in expected:
            raise RuntimeError(said)

    body = json.dumps(document).encode()
    begin = perf_counter()
    send("PUT", f"/node{parts.path}", body, "application/json", [201])
    send("PUT", f"/array{parts.path}", memoryview(data.reshape(-1).view("u1")), "application/octet-stream", [200])
    seconds = perf_counter() - begin
    send("DELETE", f"/node{parts.path}", None, None, [200])
    return seconds


def tensorstore_array(url, document):
    import tensorstore as ts

    metadata = {name: value for name, value in document.items() if name not in ("zarr_format", "node_type")}
    return ts.open({"driver": "zarr3", "kvstore": f"{url}/", "metadata": metadata}, create=True).result()


def tensorstore(url, document, data):
    """tensorstore to local files; it syncs each file and its directory by default."""
    begin = perf_counter()
    tensorstore_array(url, document).write(data).result()
    return perf_counter() - begin


def zarr_python(url, document, data):
    """zarr-python to local files, or through fsspec; it syncs nothing."""
    import zarr
    from zarr.core.buffer import default_buffer_prototype
    from zarr.core.sync import sync
    from zarr.storage import FsspecStore, LocalStore

    begin = perf_counter()
    local = url.startswith("file://")
    store = LocalStore(url.removeprefix("file://")) if local else FsspecStore.from_url(url)
    buffer = default_buffer_prototype().buffer.from_bytes(json.dumps(document).encode())
    sync(store.set("zarr.json", buffer))
    zarr.open_array(store, mode="r+")[...] = data
    return perf_counter() - begin


def zarr_python_synced(url, document, data):
    """zarr-python to local files, followed by a sync of all file systems."""
    seconds = zarr_python(url, document, data)
    begin = perf_counter()
    os.sync()
    return seconds + perf_counter() - begin


WRITERS = {
    "zarrd": zarrd,
    "tensorstore": tensorstore,
    "zarr-python": zarr_python,
    "zarr-python-synced": zarr_python_synced,
}


def write(writer, url, document, data):
    seconds = WRITERS[writer](url, document, data)
    if url.startswith("file://"):
        shutil.rmtree(pathlib.Path(url.removeprefix("file://")))
    return seconds


def small_regions(url, document, threads, seconds):
    """Threads that each write the chunks of their own row with tensorstore, for a duration."""
    directory = pathlib.Path(url.removeprefix("file://"))
    shutil.rmtree(directory, ignore_errors=True)
    array = tensorstore_array(url, document)
    side = document["chunk_grid"]["configuration"]["chunk_shape"][0]
    columns = document["shape"][1] // side
    data = np.ones((side, side), "float32")

    def row(number):
        latencies, at, end = [], 0, perf_counter() + seconds
        while perf_counter() < end:
            column = at % columns
            region = array[number * side : (number + 1) * side, column * side : (column + 1) * side]
            begin = perf_counter()
            region.write(data).result()
            latencies.append(perf_counter() - begin)
            at += 1
        return latencies

    begin = perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        latencies = [latency for row in pool.map(row, range(threads)) for latency in row]
    return {"latencies": latencies, "seconds": perf_counter() - begin}
