"""Several zarrd servers over one bucket: rates of one and of three, and what they lose when servers and the bucket fail.

Each server is held to a share of a core by a control group, which needs root.
"""

import array
import json
import os
import random
import re
import shutil
import signal
import statistics
import struct
import subprocess
import threading
import time

from process import cpu_seconds
from servers import SHARE, Cluster, document

SERVERS = 3
ROUNDS, SECONDS = int(os.environ.get("ROUNDS_OF_RATES", 5)), int(os.environ.get("SECONDS", 6))
CONNECTIONS = 6
# The side of the arrays that are read and written, and of their chunks.
SIDE, CHUNK = 256, 64
ROW = 64
# How long a claim of a server that ended lasts, with a reserve, in seconds.
CLAIM = 16 * 60

BOXES = f"""
function request()
  local a, b, c = math.random(0, {SIDE - CHUNK}), math.random(0, {SIDE - CHUNK}), math.random(0, {SIDE - CHUNK})
  local box = string.format("%d:%d,%d:%d,%d:%d", a, a + {CHUNK}, b, b + {CHUNK}, c, c + {CHUNK})
  return wrk.format("GET", "/array/read?format=raw&select=" .. box)
end
"""
REGIONS = f"""
local file = io.open("BODY", "rb")
local body = file:read("*a")
file:close()
function request()
  local n = {SIDE // CHUNK} - 1
  local a, b, c = math.random(0, n) * {CHUNK}, math.random(0, n) * {CHUNK}, math.random(0, n) * {CHUNK}
  local box = string.format("%d:%d,%d:%d,%d:%d", a, a + {CHUNK}, b, b + {CHUNK}, c, c + {CHUNK})
  local headers = {{["content-type"] = "application/octet-stream"}}
  return wrk.format("PUT", "/array/NAME?select=" .. box, headers, body)
end
"""
APPENDS = f"""
local threads = 0
function setup(thread) thread:set("id", threads); threads = threads + 1 end
local body = string.rep("\\0\\0\\128\\63", {ROW})
function request()
  local headers = {{["content-type"] = "application/octet-stream"}}
  return wrk.format("POST", "/array/NAME/" .. id .. "?append=0", headers, body)
end
"""
REPORT = """
function response(status) if status >= 300 then bad = (bad or 0) + 1; last = status end end
local all = {}
local setup_before = setup
function setup(thread) table.insert(all, thread); if setup_before then setup_before(thread) end end
function done(summary)
  local bad = 0
  for _, thread in ipairs(all) do bad = bad + (thread:get("bad") or 0); last = thread:get("last") or last end
  io.write(string.format("RESULT %d %d %s %f\\n", summary.requests, bad, last or "-", summary.duration / 1e6))
end
"""


def elements():
    """The elements of an array: a random walk, rounded to tenths. Each MiB of it has the same numbers, rotated."""
    choice, value, walk = random.Random(1), 0.0, array.array("f")
    for _ in range(CHUNK**3):
        value = round(value + choice.gauss(0, 1), 1)
        walk.append(value)
    bytes_of_walk = walk.tobytes()
    turn = 4 * 977
    parts = [bytes_of_walk[number * turn :] + bytes_of_walk[: number * turn] for number in range((SIDE // CHUNK) ** 3)]
    return b"".join(parts)


ZSTD = {"name": "zstd", "configuration": {"level": 1, "checksum": False}}


# Rates

class Load:
    """wrk with a script, for a server."""

    def __init__(self, scratch, name, script):
        self.path = scratch / f"{name}.lua"
        self.path.write_text(script + REPORT)

    def start(self, server):
        command = ["wrk", f"-t{CONNECTIONS}", f"-c{CONNECTIONS}", f"-d{SECONDS}s", "--timeout", "30s", "-s", str(self.path)]
        return subprocess.Popen([*command, f"http://{server.address}"], stdout=subprocess.PIPE, text=True)


def rate(loads, servers):
    """Requests a second of all servers together."""
    running = [load.start(server) for load, server in zip(loads, servers)]
    total = 0
    for process in running:
        output, _ = process.communicate()
        found = re.search(r"RESULT (\d+) (\d+) (\S+) (\S+)", output)
        if not found or int(found[2]):
            raise RuntimeError(f"requests were refused: {output[-300:]}")
        total += int(found[1]) / float(found[4])
    return total


def show_rates(program, row):
    """The rates of one server and of three, by turns."""
    with Cluster(program, ["--chunk-cache=0", "--result-cache=0"]) as cluster:
        servers = [cluster.start_server() for _ in range(SERVERS)]
        values = elements()
        cluster.bucket.must("PUT", "/node/lab", '{"zarr_format": 3, "node_type": "group"}')
        for name in ["read", *(f"write{index}" for index in range(SERVERS))]:
            description = json.dumps(document([SIDE] * 3, [CHUNK] * 3, [ZSTD]))
            cluster.bucket.must("PUT", f"/node/lab/{name}", description)
            cluster.bucket.must("PUT", f"/array/lab/{name}?select=:", values, "application/octet-stream")
        for index in range(SERVERS):
            for thread in range(CONNECTIONS):
                cluster.bucket.must("PUT", f"/node/lab/append{index}/{thread}", json.dumps(document([0, ROW], [64, ROW])))
        body = cluster.scratch / "body"
        body.write_bytes(values[: 4 * CHUNK**3])
        regions = REGIONS.replace("BODY", str(body))
        loads = {
            "reads of boxes 64³ of float32, zstd, no cache": (2.7, [Load(cluster.scratch, "read", BOXES)] * SERVERS),
            "region writes of 1 MiB, zstd": (2.5, [Load(cluster.scratch, f"w{i}", regions.replace("NAME", f"write{i}")) for i in range(SERVERS)]),
            "appends of a row to different arrays": (2.5, [Load(cluster.scratch, f"a{i}", APPENDS.replace("NAME", f"append{i}")) for i in range(SERVERS)]),
        }  # fmt: skip
        for name, (wanted, of_servers) in loads.items():
            rate(of_servers, servers)
            before, start = cpu_seconds(cluster.bucket.process.pid), time.monotonic()
            turns = [(rate(of_servers[:1], servers[:1]), rate(of_servers, servers)) for _ in range(ROUNDS)]
            used = (cpu_seconds(cluster.bucket.process.pid) - before) / (time.monotonic() - start)
            one, three = statistics.median(turn[0] for turn in turns), statistics.median(turn[1] for turn in turns)
            ratios = sorted(turn[1] / turn[0] for turn in turns)
            measured = f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}): {one:.0f} and {three:.0f} a second; the bucket used {used:.2f} cores"
            row(f"three servers of {SHARE} cores: {name}", measured, f"at least {wanted} × one", statistics.median(ratios) >= wanted)


# Failures

class Appender(threading.Thread):
    """A client that appends numbers to one array, each once, and records how each append ended."""

    def __init__(self, cluster, name, number):
        super().__init__(daemon=True)
        self.cluster, self.name, self.number = cluster, name, number
        self.done, self.unknown, self.refused = [], [], 0
        self.pause, self.ends = 0.05, threading.Event()

    def run(self):
        choice, value = random.Random(self.number), self.number << 16
        while not self.ends.wait(self.pause):
            value += 1
            server = choice.choice(self.cluster.servers)
            try:
                status, answer = server.request("POST", f"/array/{self.name}?append=0", struct.pack("<I", value), "application/octet-stream")
            except OSError:
                self.unknown.append(value)
                time.sleep(0.3)
                continue
            if status == 200:
                self.done.append(value)
            elif b"outcome-unknown" in answer or b"partly-written" in answer:
                self.unknown.append(value)
            else:
                self.refused += 1
                time.sleep(0.3)


def show_failures(program, row):
    """Appends to sixteen arrays, each by two clients, while servers are killed and stopped, and the bucket starts again."""
    with Cluster(program) as cluster:
        for _ in range(SERVERS):
            cluster.start_server()
        names = [f"a{number}" for number in range(16)]
        cluster.bucket.must("PUT", "/node/lab", '{"zarr_format": 3, "node_type": "group"}')
        for name in names:
            description = {**document([0], [7]), "data_type": "uint32"}
            cluster.bucket.must("PUT", f"/node/lab/{name}", json.dumps(description))
        appenders = [Appender(cluster, name, number) for number, name in enumerate([*names, *names])]
        for appender in appenders:
            appender.start()
        time.sleep(10)
        stopped, killed = cluster.servers[0], cluster.servers[1]
        stopped.process.send_signal(signal.SIGSTOP)
        killed.process.send_signal(signal.SIGKILL)
        killed.process.wait()
        killed.remove_group()
        cluster.servers.remove(stopped)
        cluster.servers.remove(killed)
        cluster.start_server()
        time.sleep(10)
        cluster.bucket.end()
        time.sleep(3)
        cluster.start_bucket()
        time.sleep(10)
        # What they left is freed after 15 minutes; until then nothing else has to be found.
        for appender in appenders:
            appender.pause = 10
        time.sleep(CLAIM)
        for appender in appenders:
            appender.pause = 0.05
        alive = [appender for appender in appenders if appender.done]
        before = {appender.number: len(appender.done) for appender in alive}
        cluster.servers.append(stopped)
        stopped.process.send_signal(signal.SIGCONT)
        time.sleep(20)
        for appender in appenders:
            appender.ends.set()
        for appender in appenders:
            appender.join(120)
        went_on = sum(len(appender.done) > before.get(appender.number, 0) for appender in appenders)
        report_losses(row, appenders, names, cluster.start_server(), went_on)


def report_losses(row, appenders, names, server, went_on):
    found = {}
    for name in names:
        elements = server.must("GET", f"/array/{name}?format=raw")
        found[name] = struct.unpack(f"<{len(elements) // 4}I", elements)
    every = [(appender.name, value) for appender in appenders for value in appender.done]
    unknown = {(appender.name, value) for appender in appenders for value in appender.unknown}
    present = [(name, value) for name in names for value in found[name]]
    lost = len(set(every) - set(present))
    twice = len(present) - len(set(present))
    foreign = len(set(present) - set(every) - unknown)
    refused = sum(appender.refused for appender in appenders)
    measured = (
        f"{len(every)} acknowledged: {lost} lost, {twice} twice; {len(unknown)} with an unknown end, "
        f"{len(unknown & set(present))} of them made; {refused} refused, {foreign} of those made; {went_on} of {len(appenders)} clients went on"
    )
    passes = bool(every) and not lost and not twice and not foreign and went_on == len(appenders)
    row("three servers, one killed, one stopped for 16 minutes and resumed, the bucket started again: appends", measured, "0 lost, 0 twice", passes)


def needs():
    """What this machine lacks."""
    if os.geteuid() != 0:
        return "root, for control groups"
    if not shutil.which("wrk"):
        return "wrk"
    return None
