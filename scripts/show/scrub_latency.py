"""The 99th percentile of reads beside a scrub and without one, of interleaved pairs.

scrub_latency.py ZARRD INDEX DIRECTORY PAIRS. Two servers have the same values; one scrubs without pauses between passes, the
other never. Prints the medians in ms and their ratio; fails if the median of the ratios is above 1.3.
"""

import http.client
import random
import shutil
import statistics
import subprocess
import sys
import time

ZARRD, INDEX, DIRECTORY, PAIRS = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
VALUES = 2000
READS = 3000
PORTS = {"quiet": 18797, "beside": 18798}


def start(name, scrub):
    store = f"{INDEX}:{DIRECTORY}/{name}"
    command = [ZARRD, "serve", "--store", store, "--listen", f"127.0.0.1:{PORTS[name]}", "--scrub", scrub]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", PORTS[name])
            connection.request("GET", "/readyz")
            connection.getresponse().read()
            return server, connection
        except OSError:
            time.sleep(0.05)


def request(connection, method, path, body=None):
    connection.request(method, path, body)
    response = connection.getresponse()
    response.read()
    if response.status >= 300:
        sys.exit(f"{method} {path}: {response.status}")


def p99(connection):
    times = []
    for _ in range(READS):
        key = random.randrange(VALUES)
        started = time.perf_counter()
        request(connection, "GET", f"/store/v/{key}")
        times.append(time.perf_counter() - started)
    return sorted(times)[len(times) * 99 // 100] * 1000


def main():
    server, connection = start("quiet", "off")
    for key in range(VALUES):
        size = 100_000 if key % 4 == 0 else 1000
        request(connection, "PUT", f"/store/v/{key}", random.randbytes(size))
    server.terminate()
    server.wait()
    shutil.copytree(f"{DIRECTORY}/quiet", f"{DIRECTORY}/beside")
    servers = {"quiet": start("quiet", "off"), "beside": start("beside", "1ms")}
    for _, connection in servers.values():
        p99(connection)
    pairs = []
    for number in range(PAIRS):
        order = ["quiet", "beside"] if number % 2 == 0 else ["beside", "quiet"]
        measured = {name: p99(servers[name][1]) for name in order}
        pairs.append((measured["quiet"], measured["beside"]))
    for server, _ in servers.values():
        server.terminate()
        server.wait()
    ratio = statistics.median(beside / quiet for quiet, beside in pairs)
    quiet, beside = (statistics.median(pair[index] for pair in pairs) for index in (0, 1))
    print(f"{quiet:.2f}, {beside:.2f}, {ratio:.2f}")
    return ratio <= 1.3


sys.exit(0 if main() else 1)
