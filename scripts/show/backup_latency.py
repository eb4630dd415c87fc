"""The slowest requests of others beside a backup and beside an export of a running server, in interleaved pairs.

backup_latency.py ZARRD INDEX DIRECTORY [PAIRS]. Clients read values of 16 KiB at 200 a second and write values of 4 KiB at 20
a second, with and without the command. Prints a JSON object: for reads and writes the median 99th percentiles in
milliseconds, quiet and beside it, and the median of the ratios of the pairs. Fails if a median ratio of reads is above 1.3.
What the commands wrote, 80 MB for each, stays in the directory: for a minute after thousands of files were removed, ext4
takes a millisecond of a core to create one.
"""

import http.client
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import threading
import time

ZARRD, INDEX, DIRECTORY = sys.argv[1:4]
PAIRS = int(sys.argv[4]) if len(sys.argv) > 4 else 15
NUMBERS = itertools.count()
PORT = 18796
VALUES = 5_000
CLIENTS = [("GET", 4, 50)] + [("PUT", 2, 10)]
SECONDS = 5


def connect():
    return http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)


def call(connection, method, path, body=None):
    connection.request(method, path, body)
    response = connection.getresponse()
    content = response.read()
    assert response.status < 300, (method, path, response.status, content[:300])


def client(method, rate, stop, taken):
    """Sends requests at a steady rate; the time of one begins when it is due, so that a stall is not left out."""
    connection, value = connect(), os.urandom(4096)
    due = time.perf_counter() + random.random() / rate
    while not stop.is_set():
        time.sleep(max(0.0, due - time.perf_counter()))
        key = f"/store/v{random.randrange(VALUES)}" if method == "GET" else f"/store/w/{random.randrange(1000)}"
        call(connection, method, key, value if method == "PUT" else None)
        taken[method].append(time.perf_counter() - due)
        due += 1 / rate


def beside(work):
    """The 99th percentiles of reads and writes in milliseconds while something is done."""
    stop, taken = threading.Event(), {"GET": [], "PUT": []}
    threads = [
        threading.Thread(target=client, args=(method, rate, stop, taken))
        for method, count, rate in CLIENTS
        for _ in range(count)
    ]
    [thread.start() for thread in threads]
    work()
    stop.set()
    [thread.join() for thread in threads]
    return {method: statistics.quantiles(times, n=100)[98] * 1e3 for method, times in taken.items()}


def command(kind):
    """Runs a command again and again until the time of a window is over."""
    until = time.time() + SECONDS
    while time.time() < until:
        target = os.path.join(DIRECTORY, f"target-{next(NUMBERS)}")
        arguments = {"backup": ["backup", target], "export": ["export", "", target]}[kind]
        done = subprocess.run([ZARRD, *arguments, "--server", f"http://127.0.0.1:{PORT}"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def main():
    os.makedirs(DIRECTORY)
    store = f"{INDEX}:{DIRECTORY}/data"
    serve = [ZARRD, "serve", "--store", store, "--listen", f"127.0.0.1:{PORT}"]
    server = subprocess.Popen(serve, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while True:
            try:
                call(connect(), "GET", "/readyz")
                break
            except OSError:
                time.sleep(0.05)
        connection = connect()
        for number in range(VALUES):
            call(connection, "PUT", f"/store/v{number}", os.urandom(16 << 10))
        measured, worst = {}, 0.0
        for kind in ("backup", "export"):
            pairs = [(beside(lambda: time.sleep(SECONDS)), beside(lambda: command(kind))) for _ in range(PAIRS)]
            for method in ("GET", "PUT"):
                quiet, busy = ([each[turn][method] for each in pairs] for turn in (0, 1))
                ratio = statistics.median(b / q for q, b in zip(quiet, busy))
                measured[f"{kind} {method}"] = [round(statistics.median(quiet), 2), round(statistics.median(busy), 2), round(ratio, 2)]
                worst = max(worst, ratio if method == "GET" else 0.0)
        print(json.dumps(measured))
        return worst <= 1.3
    finally:
        server.terminate()
        server.wait()


sys.exit(0 if main() else 1)
