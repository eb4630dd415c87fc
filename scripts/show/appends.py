"""Sixteen clients that append to sixteen arrays of one group, for some seconds: without and with consolidated metadata.

appends.py PORT SECONDS; the server must be running. Prints a JSON object with the counts by status, and whether each array
and the copies of its document have all that was acknowledged.
"""

import http.client
import json
import sys
import threading
import time

PORT, SECONDS = int(sys.argv[1]), float(sys.argv[2])
WRITERS = 16
ARRAY = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [0],
    "data_type": "uint8",
    "fill_value": 0,
    "attributes": {},
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [16]}},
    "chunk_key_encoding": {"name": "default"},
    "codecs": [{"name": "bytes"}],
}
MEMBERS = {f"a{index}": ARRAY for index in range(WRITERS)}


def connect():
    return http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)


def call(connection, method, path, body=None, media="application/json"):
    connection.request(method, path, body, {"Content-Type": media})
    response = connection.getresponse()
    return response.status, response.read()


def write(group, index, counts, until):
    connection = connect()
    while time.time() < until:
        status, _ = call(connection, "POST", f"/array/{group}/a{index}?append=0", b"\1" * 4, "application/octet-stream")
        counts[status] = counts.get(status, 0) + 1


def measure(group, consolidated):
    document = {"zarr_format": 3, "node_type": "group", "attributes": {}}
    call(connect(), "PUT", f"/node/{group}", json.dumps({**document, "members": MEMBERS}))
    if consolidated:
        copies = {"kind": "inline", "must_understand": False, "metadata": MEMBERS}
        call(connect(), "PUT", f"/store/{group}/zarr.json", json.dumps({**document, "consolidated_metadata": copies}))
    counts, until = [{} for _ in range(WRITERS)], time.time() + SECONDS
    threads = [threading.Thread(target=write, args=(group, index, counts[index], until)) for index in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wanted = {f"a{index}": [4 * counts[index].get(200, 0)] for index in range(WRITERS)}
    members = json.loads(call(connect(), "GET", f"/node/{group}")[1])["members"]
    kept = all(members[name]["shape"] == shape for name, shape in wanted.items())
    if consolidated:
        stored = json.loads(call(connect(), "GET", f"/store/{group}/zarr.json")[1])["consolidated_metadata"]["metadata"]
        kept = kept and all(stored[name]["shape"] == shape for name, shape in wanted.items())
    total = {}
    for count in counts:
        for status, number in count.items():
            total[status] = total.get(status, 0) + number
    return {"statuses": total, "kept": kept}


print(json.dumps({"plain": measure("plain", False), "consolidated": measure("consolidated", True)}))
