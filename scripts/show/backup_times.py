"""Seconds and memory of a start, a first and an incremental backup and a restore of a store with many small values.

backup_times.py ZARRD INDEX DIRECTORY KEYS. Prints a JSON object; fails if the restored store has another number of keys.
"""

import atexit
import json
import os
import subprocess
import sys
import time
import urllib.request

ZARRD, INDEX, DIRECTORY, KEYS = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
CHUNKS = 100_000
PORT = 18795


def run(*arguments):
    """Runs a command; its seconds and the peak of its memory in MiB."""
    started = time.time()
    process = subprocess.Popen([ZARRD, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{arguments}: {process.stderr.read().decode()}")
    return [round(time.time() - started, 1), usage.ru_maxrss // 1024]


def request(method, path, body=None):
    headers = {"Content-Type": "application/json"}
    call = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", body and body.encode(), headers, method=method)
    return urllib.request.urlopen(call, timeout=600).read()


def serve(store):
    started = time.time()
    server = subprocess.Popen([ZARRD, "serve", "--store", store, "--listen", f"127.0.0.1:{PORT}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    atexit.register(server.kill)
    while True:
        try:
            request("GET", "/readyz")
            return server, round(time.time() - started, 1)
        except OSError:
            if server.poll() is not None:
                sys.exit(f"the server ended with exit code {server.returncode}")
            time.sleep(0.05)


def fill(first, count, value):
    """Writes arrays of many chunks of one element, each in one commit."""
    for number in range(first, first + (count + CHUNKS - 1) // CHUNKS):
        array = {
            "zarr_format": 3, "node_type": "array", "shape": [CHUNKS], "data_type": "uint32", "fill_value": 0,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1]}}, "attributes": {},
            "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        }
        request("PUT", f"/node/a{number}?overwrite", json.dumps(array))
        for part in range(0, CHUNKS, 10_000):
            request("PUT", f"/array/a{number}?select={part}:{part + 10_000}", json.dumps(value))


def counted_keys():
    """The number of keys, which a server counts after its start."""
    for _ in range(300):
        lines = request("GET", "/metrics").decode().splitlines()
        counted = next((line.split()[1] for line in lines if line.startswith("zarrd_store_keys ")), None)
        if counted is not None:
            return int(counted)
        time.sleep(1)
    sys.exit("the keys are not counted after five minutes")


def main():
    store, backup = f"{INDEX}:{DIRECTORY}/data", f"{DIRECTORY}/backup"
    os.makedirs(DIRECTORY)
    server, _ = serve(store)
    fill(0, KEYS, 7)
    server.terminate()
    server.wait()
    server, start = serve(store)
    url = f"http://127.0.0.1:{PORT}"
    measured = {"start": [start], "first": run("backup", backup, "--server", url)}
    fill(0, CHUNKS, 8)
    measured["incremental"] = run("backup", backup, "--server", url)
    with open(f"/proc/{server.pid}/status") as status:
        peak = next(line for line in status if line.startswith("VmHWM")).split()[1]
    measured["server"] = int(peak) // 1024
    server.terminate()
    server.wait()
    measured["stopped"] = run("backup", backup, "--store", store)
    restored = f"{INDEX}:{DIRECTORY}/restored"
    measured["restore"] = run("restore", backup, restored, "--without-access")
    listed = subprocess.run([ZARRD, "restore", backup, "--list"], capture_output=True, text=True).stdout.splitlines()
    server, _ = serve(restored)
    values = counted_keys()
    server.terminate()
    server.wait()
    print(json.dumps(measured))
    return values == json.loads(listed[-1])["keys"]


sys.exit(0 if main() else 1)
