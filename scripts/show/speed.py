"""CPU time per request and memory after a burst of two builds of zarrd, by turns.

speed.py BEFORE AFTER [ROUNDS]: paths of two programs. Prints a JSON object: for GET of 1 KiB, a plane of a zstd-compressed
array, and PUT of 1 KiB, the median microseconds of processor time of each build and their ratio; and the MiB of memory that
each occupies a minute after 64 clients have read planes at once.
"""

import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from process import cpu_seconds, memory_mib

ARRAY = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [8, 512, 512],
    "data_type": "float32",
    "fill_value": 0,
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 256, 256]}},
    "chunk_key_encoding": {"name": "default"},
    "codecs": [
        {"name": "bytes", "configuration": {"endian": "little"}},
        {"name": "zstd", "configuration": {"level": 3, "checksum": False}},
    ],
}


class Server:
    def __init__(self, program, directory, port):
        self.port = port
        command = [program, "serve", "--store", f"sled:{directory}", "--listen", f"127.0.0.1:{port}"]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        for _ in range(300):
            try:
                if self.call(self.connect(), "GET", "/readyz")[0] == 200:
                    break
            except OSError:
                time.sleep(0.1)
        client = self.connect()
        plane = b"".join(int(x * 2654435761 % 997).to_bytes(4, "little") for x in range(512 * 512))
        assert self.call(client, "PUT", "/node/a", json.dumps(ARRAY), "application/json")[0] == 201
        for index in range(8):
            assert self.call(client, "PUT", f"/array/a?select={index}", plane)[0] < 300
        assert self.call(client, "PUT", "/store/value", os.urandom(1024))[0] < 300

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def call(self, client, method, path, body=None, media="application/octet-stream"):
        client.request(method, path, body, {"Content-Type": media} if body else {})
        response = client.getresponse()
        return response.status, response.read()

    def measure(self, request, seconds=3):
        """Microseconds of processor time per request, of four clients."""
        counts = [0] * 4
        until, start = time.time() + seconds, cpu_seconds(self.process.pid)

        def run(turn):
            client = self.connect()
            while time.time() < until:
                request(self, client, counts[turn] * 4 + turn)
                counts[turn] += 1

        threads = [threading.Thread(target=run, args=(turn,)) for turn in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        return (cpu_seconds(self.process.pid) - start) / sum(counts) * 1e6


def check(answer):
    assert answer[0] < 300, answer


REQUESTS = {
    "GET of 1 KiB": lambda server, client, _: check(server.call(client, "GET", "/store/value")),
    "plane of zstd": lambda server, client, at: check(server.call(client, "GET", f"/array/a?select={at % 8}&format=raw")),
    "PUT of 1 KiB": lambda server, client, at: check(server.call(client, "PUT", f"/store/put/{at % 512}", bytes(1024))),
}


def main():
    programs, rounds = sys.argv[1:3], int(sys.argv[3]) if len(sys.argv) > 3 else 7
    with tempfile.TemporaryDirectory(prefix="zarrd-speed-", dir="/var/tmp") as scratch:
        servers = [Server(program, f"{scratch}/{at}", 18781 + at) for at, program in enumerate(programs)]
        measured = {name: ([], []) for name in REQUESTS}
        for turn in range(rounds):
            for name, request in REQUESTS.items():
                for at in (0, 1) if turn % 2 else (1, 0):
                    measured[name][at].append(servers[at].measure(request))
        result = {}
        for name, values in measured.items():
            before, after = (statistics.median(value) for value in values)
            result[name] = {"before": round(before, 1), "after": round(after, 1), "ratio": round(after / before, 3)}
        burst = REQUESTS["plane of zstd"]
        for server in servers:
            clients = [server.connect() for _ in range(64)]
            read = [threading.Thread(target=burst, args=(server, client, at)) for at, client in enumerate(clients)]
            [thread.start() for thread in read]
            [thread.join() for thread in read]
        time.sleep(60)
        before, after = (memory_mib(server.process.pid) for server in servers)
        result["MiB a minute after a burst"] = {"before": before, "after": after, "ratio": round(after / before, 3)}
        for server in servers:
            server.process.terminate()
            server.process.wait()
    print(json.dumps(result))


main()
