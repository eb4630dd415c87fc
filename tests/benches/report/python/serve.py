"""Executes the requests of the benchmark: one JSON object per line, each answered with one.

    python serve.py
"""

import json
import pathlib
import shutil
import sys
import warnings
import zlib
from time import perf_counter

import numpy as np

import arrays
import readers
import writers

warnings.simplefilter("ignore")
# Objects opened by this process, and data to write.
state = {"reader": None, "data": {}}


def make(ask):
    """Writes the arrays of the benchmark to a directory."""
    import zarr

    data = arrays.field(ask["side"])
    for layout in ["raw", "zstd", "sharded"]:
        directory = pathlib.Path(ask["directory"]) / layout
        directory.mkdir(parents=True)
        (directory / "zarr.json").write_text(json.dumps(arrays.document(ask["side"], layout)))
        zarr.open_array(directory, mode="r+")[...] = data
    # Reading it loads what clients initialize lazily.
    zarr.create_array(f"{ask['directory']}/tiny", data=np.zeros((4, 4), "f4"), chunks=(4, 4))


def timed(operation, arguments):
    begin = perf_counter()
    found = operation(arguments)
    return perf_counter() - begin, found


def digest(array):
    return [list(array.shape), zlib.crc32(np.ascontiguousarray(array, "<f4"))]


def warm_up(ask):
    """Opens and reads a small array, so that all code is loaded."""
    readers.READERS[ask["reader"]](ask["url"], ask["cache"]).read([[0, 4], [0, 4]])


def open_array(ask):
    state["reader"] = readers.READERS[ask["reader"]](ask["url"], ask["cache"])


def read(ask):
    """Reads selections, or lists of points, until all are done or the time is over. The first result has a digest."""
    reader = state["reader"]
    operation = reader.points if ask["points"] else reader.read
    latencies, first, end = [], None, perf_counter() + ask["seconds"]
    for what in ask["what"]:
        seconds, found = timed(operation, what)
        latencies.append(seconds)
        if first is None:
            first = digest(found)
        del found
        if perf_counter() >= end:
            break
    return {"latencies": latencies, "digest": first}


def cold(ask):
    """Opens an array and reads a selection of it."""
    begin = perf_counter()
    open_array(ask)
    found = state["reader"].read(ask["what"])
    return {"latencies": [perf_counter() - begin], "digest": digest(found)}


def write(ask):
    side = ask["side"]
    if side not in state["data"]:
        state["data"] = {side: arrays.field(side)}
    document = arrays.document(side, ask["layout"])
    return {"latencies": [writers.write(ask["writer"], ask["url"], document, state["data"][side])]}


def small_regions(ask):
    return writers.small_regions(ask["url"], ask["document"], ask["threads"], ask["seconds"])


def create_tree(ask):
    shutil.rmtree(ask["directory"], ignore_errors=True)
    seconds, _ = timed(lambda _: readers.create_tree(ask["directory"], ask["zom"]), None)
    return {"latencies": [seconds]}


def consolidate(ask):
    import zarr

    zarr.consolidate_metadata(ask["directory"])


def tree(ask):
    seconds, count = timed(lambda ask: readers.tree(ask["reader"], ask["url"]), ask)
    return {"latencies": [seconds], "nodes": count}


def documents(ask):
    """Opens arrays of a hierarchy one after another."""
    latencies, end = [], perf_counter() + ask["seconds"]
    for name in ask["names"]:
        directory = f"{ask['directory']}/{name}" if ask.get("directory") else None
        seconds, found = timed(lambda name: readers.document(ask["reader"], f"{ask['url']}/{name}", directory), name)
        if list(found["shape"]) != ask["shape"]:
            raise RuntimeError(found)
        latencies.append(seconds)
        if perf_counter() >= end:
            break
    return {"latencies": latencies}


def reduce(ask):
    """Reduces a whole array with dask, which decodes with as many threads as there are cores."""
    import dask.array

    def reduced(ask):
        return float(getattr(dask.array, ask["function"])(dask.array.from_zarr(ask["directory"])).compute())

    return {"latencies": [timed(reduced, ask)[0]]}


def histogram(ask):
    """Counts the elements of an array that is in memory already."""
    import zarr

    if "elements" not in state:
        state["elements"] = zarr.open_array(ask["directory"], mode="r")[...]
    return {"latencies": [timed(lambda data: np.histogram(data, bins=64, range=(-4, 4)), state["elements"])[0]]}


does = {
    "versions": lambda ask: readers.versions(),
    "make": make,
    "warm-up": warm_up,
    "open": open_array,
    "read": read,
    "cold": cold,
    "write": write,
    "small-regions": small_regions,
    "create-tree": create_tree,
    "consolidate": consolidate,
    "tree": tree,
    "documents": documents,
    "reduce": reduce,
    "histogram": histogram,
}
for line in sys.stdin:
    ask = json.loads(line)
    print(json.dumps(does[ask["do"]](ask)), flush=True)
