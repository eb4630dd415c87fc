#!/usr/bin/env python3
"""Writes of a whole array to a folder and to a bucket, by zarrd and by the libraries that write there themselves.

Prints a table: row · measured · wanted · pass. Needs numpy, tensorstore, zarr 3 and obstore. Contestants take turns, and the
array that each has written last is compared with the elements.

inplace_speed.py PROGRAM
"""

import http.client
import json
import os
import shutil
import statistics
import sys
import time

import numpy
import obstore
import tensorstore
import zarr
from servers import Cluster, Server, document
from zarr.storage import ObjectStore

ROUNDS = int(os.environ.get("ROUNDS_OF_RATES", 5))
SHAPE, CHUNKS = (256, 512, 512), (64, 64, 64)
CODECS = {"raw": [], "zstd": [{"name": "zstd", "configuration": {"level": 1, "checksum": False}}]}
failures = 0


def row(name, measured, wanted, passes):
    global failures
    failures += not passes
    print(f"{name} | {measured} | {wanted} | {'yes' if passes else 'NO'}", flush=True)


def elements():
    choice = numpy.random.default_rng(1)
    return numpy.cumsum(choice.normal(size=SHAPE), axis=2).round(1).astype("<f4")


def described(codec):
    return document(list(SHAPE), list(CHUNKS), CODECS[codec])


def through_zarrd(server, path, values):
    """Seconds of writing all elements in one request."""
    start = time.perf_counter()
    connection = http.client.HTTPConnection(server.address, timeout=300)
    connection.request("PUT", f"/array/{path}?select=:", memoryview(values).cast("B"), {"content-type": "application/octet-stream"})
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        sys.exit(f"PUT /array/{path}: {answer.status} {body[:300]}")
    connection.close()
    return time.perf_counter() - start


def by_tensorstore(folder, values, is_synced):
    context = {"file_io_sync": is_synced}
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{folder}/"}, "context": context}
    array = tensorstore.open(spec).result()
    start = time.perf_counter()
    array.write(values).result()
    return time.perf_counter() - start


def by_zarr_python(store, name, values):
    array = zarr.open_array(store, path=name, mode="r+")
    start = time.perf_counter()
    array[...] = values
    return time.perf_counter() - start


def rounds(first, second):
    """Times of both, by turns, after one of each that does not count."""
    first(), second()
    times = []
    for number in range(ROUNDS):
        if number % 2:
            of_second, of_first = second(), first()
        else:
            of_first, of_second = first(), second()
        times.append((of_first, of_second))
    return times


def compare(name, times, wanted):
    ratios = sorted(of_peer / of_zarrd for of_zarrd, of_peer in times)
    ours, theirs = (statistics.median(of_one) for of_one in zip(*times))
    size = 4 * SHAPE[0] * SHAPE[1] * SHAPE[2] / (1 << 20)
    ratio = statistics.median(ratios)
    measured = f"{ratio:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}): {size / ours:.0f} and {size / theirs:.0f} MiB/s"
    row(name, measured, f"at least {wanted} × the peer", ratio >= wanted)


def show_folder(cluster, values):
    for is_synced, wanted, options in [(True, 1.0, ""), (False, 0.9, "&sync=no")]:
        for codec in CODECS:
            data = cluster.scratch / f"folder-{is_synced}-{codec}"
            for name in ("ours", "theirs"):
                (data / name).mkdir(parents=True)
                (data / name / "zarr.json").write_text(json.dumps(described(codec)))
            time.sleep(3)  # until the files count as complete
            server = Server(cluster.program, ["--store", f"dir:{data}?writes=yes{options}"])
            times = rounds(
                lambda: through_zarrd(server, "ours", values), lambda: by_tensorstore(data / "theirs", values, is_synced)
            )
            for name in ("ours", "theirs"):
                if not numpy.array_equal(zarr.open_array(data / name, mode="r")[...], values):
                    sys.exit(f"{name}: other elements than those that were written")
            server.end()
            shutil.rmtree(data)
            kind = "synced" if is_synced else "not synced"
            compare(f"folder: whole array, {codec}, {kind}; tensorstore", times, wanted)


def show_bucket(cluster, values):
    endpoint = {"endpoint": f"http://{cluster.s3}", "region": "us-east-1", "access_key_id": "zarrd", "secret_access_key": "zarrd"}
    bucket = obstore.store.S3Store("lab", **endpoint, client_options={"allow_http": True})
    server = cluster.start_server(share=None)
    for codec in CODECS:
        for name in ("ours", "theirs"):
            cluster.bucket.must("PUT", f"/node/lab/{codec}-{name}", json.dumps(described(codec)))
        store = ObjectStore(bucket)
        times = rounds(
            lambda: through_zarrd(server, f"{codec}-ours", values), lambda: by_zarr_python(store, f"{codec}-theirs", values)
        )
        for name in ("ours", "theirs"):
            if not numpy.array_equal(zarr.open_array(store, path=f"{codec}-{name}", mode="r")[...], values):
                sys.exit(f"{name}: other elements than those that were written")
        compare(f"bucket: whole array, {codec}; zarr-python and obstore", times, 0.9)


def main():
    values = elements()
    with Cluster(sys.argv[1]) as cluster:
        cluster.bucket.must("PUT", "/node/lab", '{"zarr_format": 3, "node_type": "group"}')
        show_folder(cluster, values)
        show_bucket(cluster, values)
    sys.exit(1 if failures else 0)


main()
