"""Seconds and memory of recovering a store with many small values: whole, and with a damaged page of its index.

recover_times.py ZARRD INDEX DIRECTORY KEYS. Prints a JSON object; fails if not all values of the whole store are recovered.
"""

import json
import os
import subprocess
import sys
import time
import urllib.request

ZARRD, INDEX, DIRECTORY, KEYS = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
CHUNKS = 100_000
PORT = 18796


def run(code, *arguments):
    """Runs a command; its seconds, the peak of its memory in MiB, and its summary."""
    started = time.time()
    with open(f"{DIRECTORY}/messages", "w+") as messages:
        process = subprocess.Popen([ZARRD, *arguments], stdout=subprocess.PIPE, stderr=messages, text=True)
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        if os.waitstatus_to_exitcode(status) != code:
            messages.seek(0)
            sys.exit(f"{arguments}: {status} {messages.read()[-2000:]}")
    return [round(time.time() - started, 1), usage.ru_maxrss // 1024], json.loads(output.splitlines()[-1])


def request(method, path, body=None):
    headers = {"Content-Type": "application/json"}
    call = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", body and body.encode(), headers, method=method)
    return urllib.request.urlopen(call, timeout=600).read()


def fill(store):
    server = subprocess.Popen([ZARRD, "serve", "--store", store, "--listen", f"127.0.0.1:{PORT}"], stderr=subprocess.DEVNULL)
    while True:
        try:
            request("GET", "/readyz")
            break
        except OSError:
            time.sleep(0.05)
    for number in range((KEYS + CHUNKS - 1) // CHUNKS):
        array = {
            "zarr_format": 3, "node_type": "array", "shape": [CHUNKS], "data_type": "uint32", "fill_value": 0,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1]}}, "attributes": {},
            "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        }
        request("PUT", f"/node/a{number}", json.dumps(array))
        for part in range(0, CHUNKS, 10_000):
            request("PUT", f"/array/a{number}?select={part}:{part + 10_000}", json.dumps(7))
    server.terminate()
    server.wait()


def main():
    os.makedirs(DIRECTORY)
    data = f"{DIRECTORY}/data"
    fill(f"{INDEX}:{data}")
    whole, summary = run(0, "recover", data, f"{INDEX}:{DIRECTORY}/whole")
    index = f"{data}/index/" + ("db" if INDEX == "sled" else "index.redb")
    with open(index, "r+b") as file:
        file.seek(os.path.getsize(index) // 3)
        file.write(b"\x5a" * 4096)
    report = f"{DIRECTORY}/report"
    damaged, partly = run(5, "recover", data, f"{INDEX}:{DIRECTORY}/partly", "--report", report)
    share = round(100 * partly["keys"] / summary["keys"], 2)
    print(json.dumps({"keys": summary["keys"], "whole": whole, "damaged": damaged, "certain %": share}))
    return summary["keys"] >= KEYS


sys.exit(0 if main() else 1)
