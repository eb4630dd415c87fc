"""Processor time of listings, bins and walks of N, 4 N and 16 N entries of a `dir:` store.

counters.py PROGRAM [N]. Prints a JSON object: of each kind of request the seconds at N, 4 N and 16 N, and by how much the
time of an entry grows from N to 16 N. A cost that is linear grows by 1, one that is quadratic by 16.
"""

import http.client
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.parse

from process import cpu_seconds

PORT = 18795
GROUP = {"zarr_format": 3, "node_type": "group"}


def array(chunks):
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [chunks],
        "data_type": "uint8",
        "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1]}},
        "chunk_key_encoding": {"name": "default"},
        "codecs": [{"name": "bytes"}],
    }


def write(root, count):
    """An array of `count` chunks, all in one directory, and a group of `count` arrays."""
    chunks = root / f"chunks{count}" / "c"
    chunks.mkdir(parents=True)
    (chunks.parent / "zarr.json").write_text(json.dumps(array(count)))
    for index in range(count):
        (chunks / str(index)).write_bytes(b"\1")
    group = root / f"group{count}"
    group.mkdir()
    (group / "zarr.json").write_text(json.dumps(GROUP))
    for index in range(count):
        (group / f"a{index}").mkdir()
        (group / f"a{index}" / "zarr.json").write_text(json.dumps(array(1)))


def get(path):
    client = http.client.HTTPConnection("127.0.0.1", PORT, timeout=600)
    client.request("GET", path, headers={"Accept": "application/json"})
    response = client.getresponse()
    body = response.read()
    assert response.status == 200, (path, response.status, body[:300])
    return json.loads(body), response.headers


def listing(count):
    """All pages of a listing."""
    cursor, found = "", 0
    while cursor is not None:
        query = f"&cursor={urllib.parse.quote(cursor)}" if cursor else ""
        page, _ = get(f"/store/chunks{count}/c/?limit=1000{query}")
        found, cursor = found + len(page["keys"]), page["cursor"]
    assert found == count, (found, count)


def bins(count):
    answer, _ = get(f"/array/chunks{count}?chunks&bins=16")
    stored = sum(answer["bins"]["stored"])
    assert stored == count, (stored, count)


def walk(count):
    """All pages of a group's members."""
    cursor, found = "", 0
    while cursor is not None:
        query = f"?cursor={urllib.parse.quote(cursor)}" if cursor else ""
        page, headers = get(f"/node/group{count}{query}")
        found, cursor = found + len(page["members"]), headers.get("Zarr-Cursor")
    assert found == count, (found, count)


def main():
    program, base = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1500
    counts = [base, 4 * base, 16 * base]
    with tempfile.TemporaryDirectory(prefix="zarrd-counters-", dir="/var/tmp") as scratch:
        for count in counts:
            write(pathlib.Path(scratch), count)
        # Directories that changed within the last seconds are not held between pages.
        time.sleep(3)
        command = [program, "serve", "--store", f"dir:{scratch}", "--listen", f"127.0.0.1:{PORT}"]
        server = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            for _ in range(100):
                try:
                    get("/readyz")
                    break
                except (OSError, ValueError):
                    time.sleep(0.1)

            result = {}
            for request in (listing, bins, walk):
                seconds = []
                for count in counts:
                    # The same number of entries at each size, so that ticks of 10 ms do not matter.
                    times, start = 16 * base // count, cpu_seconds(server.pid)
                    for _ in range(times):
                        request(count)
                    seconds.append((cpu_seconds(server.pid) - start) / times)
                growth = seconds[2] / 16 / max(seconds[0], 1e-9)
                result[request.__name__] = {"seconds": [round(value, 4) for value in seconds], "growth": round(growth, 2)}
        finally:
            server.terminate()
            server.wait()
    print(json.dumps(result))


main()
