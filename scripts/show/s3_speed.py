#!/usr/bin/env python3
"""Measures the S3 listener; prints a table: row · measured · wanted · pass.

s3_speed.py [PROGRAM] [PART…]: the program (target/release/zarrd), and parts: store signatures checksums garage parts listings. wrk
sends the requests. Rates are those of five rounds, in which the contestants take turns; processor times are of the server,
per request. Garage is measured if the search path or target/tools has it.
"""

import base64
import concurrent.futures
import datetime
import hashlib
import hmac
import http.client
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from process import cpu_seconds  # noqa: E402

PARTS = ["store", "signatures", "checksums", "garage", "parts", "listings"]
arguments = sys.argv[1:]
PROGRAM = arguments.pop(0) if arguments and arguments[0] not in PARTS else "target/release/zarrd"
CHOSEN = arguments or PARTS
ROUNDS, SECONDS = int(os.environ.get("ROUNDS", 5)), float(os.environ.get("SECONDS", 3))
KIB, MIB = 1 << 10, 1 << 20
SIZES = {"1 KiB": KIB, "512 KiB": 512 * KIB, "8 MiB": 8 * MIB}
# The names that requests of one size use in turn.
NAMES = {KIB: 256, 512 * KIB: 32, 8 * MIB: 8}
HTTP, S3, GARAGE, RPC = 18771, 18772, 18773, 18774
OPEN = ("zarrd", "zarrd")
GARAGE_KEYS = ("GK31c2f218a2e44f485b94239e", "b892c0665f0ada8a4755dae98baa3b133590e11dae3bcc1f9d769d67f16c3835")
table = []


def row(name, measured, wanted, passed):
    table.append(f"{name} | {measured} | {wanted} | {'yes' if passed else 'NO'}")
    print(table[-1], flush=True)


# Servers

class Zarrd:
    def __init__(self, directory):
        command = [PROGRAM, "serve", "--store", f"sled:{directory}", "--listen", f"127.0.0.1:{HTTP}"]
        command += ["--s3-listen", f"127.0.0.1:{S3}"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        answers(f"http://127.0.0.1:{HTTP}/readyz", self.process)

    def cpu(self):
        return cpu_seconds(self.process.pid)

    def peak_mib(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(r"VmHWM:\s+(\d+)", status.read())[1]) // 1024

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Garage:
    """One node that syncs its data and its metadata, with a bucket called `bucket`."""

    def __init__(self, program, directory):
        self.program, self.configuration = program, f"{directory}/garage.toml"
        with open(self.configuration, "w") as file:
            file.write(
                f'metadata_dir = "{directory}/meta"\ndata_dir = "{directory}/data"\ndb_engine = "lmdb"\nreplication_factor = 1\n'
                f'metadata_fsync = true\ndata_fsync = true\ncompression_level = "none"\nrpc_bind_addr = "127.0.0.1:{RPC}"\n'
                f'rpc_public_addr = "127.0.0.1:{RPC}"\nrpc_secret = "{"17" * 32}"\n'
                f'[s3_api]\ns3_region = "us-east-1"\napi_bind_addr = "127.0.0.1:{GARAGE}"\n'
            )
        environment = os.environ | {"RUST_LOG": "warn"}
        self.process = subprocess.Popen([program, "-c", self.configuration, "server"], stderr=subprocess.DEVNULL, env=environment)
        for _ in range(100):
            time.sleep(0.1)
            if self.run("status", check=False).returncode == 0:
                break
        node = self.run("node", "id", "--quiet").stdout.split("@")[0]
        self.run("layout", "assign", node, "--zone", "zone", "--capacity", "10GB")
        self.run("layout", "apply", "--version", "1")
        time.sleep(2)
        self.run("key", "import", "--yes", *GARAGE_KEYS)
        self.run("bucket", "create", "bucket")
        self.run("bucket", "allow", "--read", "--write", "--owner", "--key", GARAGE_KEYS[0], "bucket")

    def run(self, *arguments, check=True):
        return subprocess.run([self.program, "-c", self.configuration, *arguments], capture_output=True, text=True, check=check)

    def cpu(self):
        return cpu_seconds(self.process.pid)

    def stop(self):
        self.process.kill()
        self.process.wait()


def answers(url, process):
    for _ in range(300):
        try:
            return urllib.request.urlopen(url, timeout=10).read()
        except OSError:
            if process.poll() is not None:
                sys.exit("the server does not start")
            time.sleep(0.1)
    sys.exit("the server does not answer")


# Signatures of version 4, of a body that is not signed

def signature(secret, method, path, query, headers, moment):
    day = moment[:8]
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    request = "\n".join([method, path, query, lines, names, "UNSIGNED-PAYLOAD"])
    scope = f"{day}/us-east-1/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", moment, scope, hashlib.sha256(request.encode()).hexdigest()])
    key = ("AWS4" + secret).encode()
    for part in (day, "us-east-1", "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return scope, names, hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")


def presigned(keys, method, port, path):
    moment = now()
    query = {
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256", "X-Amz-Credential": f"{keys[0]}/{moment[:8]}/us-east-1/s3/aws4_request",
        "X-Amz-Date": moment, "X-Amz-Expires": "86400", "X-Amz-SignedHeaders": "host",
    }
    query = urllib.parse.urlencode(sorted(query.items()), quote_via=urllib.parse.quote, safe="")
    _, _, signed = signature(keys[1], method, path, query, {"host": f"127.0.0.1:{port}"}, moment)
    return f"{path}?{query}&X-Amz-Signature={signed}"


def signed_headers(keys, method, port, path):
    moment = now()
    headers = {"host": f"127.0.0.1:{port}", "x-amz-content-sha256": "UNSIGNED-PAYLOAD", "x-amz-date": moment}
    scope, names, signed = signature(keys[1], method, path, "", headers, moment)
    credential = f"AWS4-HMAC-SHA256 Credential={keys[0]}/{scope}, SignedHeaders={names}, Signature={signed}"
    return headers | {"authorization": credential}


# Load

SCRIPT = """
local requests, at = {}, 0
local body = %s
for line in io.lines("%s") do requests[#requests + 1] = line end
local built = {}
request = function()
  at = at %% #requests + 1
  if not built[at] then built[at] = wrk.format("%s", requests[at], {%s}, body) end
  return built[at]
end
done = function(summary, latency)
  io.write(string.format("RESULT %%d %%f %%d\\n", summary.requests, summary.duration / 1e6,
    summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout))
end
"""


class Load:
    """Requests that are sent in turn: `paths` by one method, with a body of `size` bytes or none."""

    def __init__(self, scratch, server, port, method, paths, size=0, headers=None):
        self.server, self.port = server, port
        number = len(os.listdir(scratch))
        self.script = f"{scratch}/{number}.lua"
        with open(f"{scratch}/{number}.txt", "w") as file:
            file.write("\n".join(paths) + "\n")
        # wrk sends its own `host`, which is the signed one.
        headers = {name: value for name, value in (headers or {}).items() if name != "host"}
        headers = ", ".join(f'["{name}"] = "{value}"' for name, value in headers.items())
        with open(self.script, "w") as file:
            body = f'string.rep("0123456789abcdef", {size // 16})' if size else "nil"
            file.write(SCRIPT % (body, f"{scratch}/{number}.txt", method, headers))

    def run(self, connections):
        """Requests per second, and seconds of processor time of the server per request."""
        before = self.server.cpu()
        command = ["wrk", f"-t{min(connections, 2)}", f"-c{connections}", f"-d{SECONDS:.0f}s", "--timeout", "60s", "-s", self.script]
        said = subprocess.run([*command, f"http://127.0.0.1:{self.port}"], capture_output=True, text=True).stdout
        found = re.search(r"RESULT (\d+) ([\d.]+) (\d+)", said)
        if not found or found[3] != "0":
            sys.exit(f"{self.script}: {said}")
        count = max(int(found[1]), 1)
        return count / float(found[2]), (self.server.cpu() - before) / count


def by_turns(loads, connections):
    """Of each load the median rate and processor time; and the median ratios of the rates to those of the first."""
    for load in loads:
        load.run(connections)
    rounds = []
    for turn in range(ROUNDS):
        order = list(range(len(loads)))
        order = order[turn % len(order):] + order[: turn % len(order)]
        done = {at: loads[at].run(connections) for at in order}
        rounds.append([done[at] for at in range(len(loads))])
    medians = [tuple(statistics.median(each[at][what] for each in rounds) for what in (0, 1)) for at in range(len(loads))]
    ratios = [statistics.median(each[at][0] / each[0][0] for each in rounds) for at in range(len(loads))]
    return medians, ratios


def names(size):
    return [f"v{size}-{number}" for number in range(NAMES[size])]


def put(port, path, body, headers=None):
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    client.request("PUT", path, body, headers or {})
    response = client.getresponse()
    content = response.read()
    assert response.status < 300, (path, response.status, content[:300])
    return response, content


def fill(port, prefix, path=lambda path: path):
    for size in SIZES.values():
        for name in names(size):
            put(port, path(f"{prefix}{name}"), os.urandom(size))


# Parts of the table

def store(scratch, zarrd):
    """The same requests of both listeners."""
    fill(HTTP, "/store/lab/")
    for label, size in SIZES.items():
        for method in ("GET", "PUT"):
            body = size if method == "PUT" else 0
            loads = [
                Load(scratch, zarrd, port, method, [f"{prefix}{name}" for name in names(size)], body)
                for port, prefix in ((HTTP, "/store/lab/"), (S3, "/lab/"))
            ]
            for connections in (1, 16):
                medians, ratios = by_turns(loads, connections)
                measured = f"{ratios[1]:.2f} ({medians[1][0]:.0f} of {medians[0][0]:.0f} requests/s; CPU {medians[1][1] * 1e6:.0f} and {medians[0][1] * 1e6:.0f} µs)"
                row(f"unsigned {method} of {label}, c={connections}: rate of that of /store", measured, "≥ 0.85", ratios[1] >= 0.85)


def signatures(scratch, zarrd):
    """What verifying costs: signed requests less unsigned ones, of the same value."""
    put(HTTP, "/store/lab/one", bytes(KIB))
    loads = [
        Load(scratch, zarrd, S3, "GET", ["/lab/one"]),
        Load(scratch, zarrd, S3, "GET", ["/lab/one"], headers=signed_headers(OPEN, "GET", S3, "/lab/one")),
        Load(scratch, zarrd, S3, "GET", [presigned(OPEN, "GET", S3, "/lab/one")]),
    ]
    medians, _ = by_turns(loads, 16)
    for name, at in (("headers", 1), ("presigned", 2)):
        cost = (medians[at][1] - medians[0][1]) * 1e6
        row(f"a signature, {name}: µs of CPU", f"{cost:.0f} (of {medians[at][1] * 1e6:.0f})", "≤ 40", cost <= 40)


def crc(value, polynomial, width):
    """The reflected CRC of a value, whose register begins and ends inverted."""
    steps = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (polynomial if byte & 1 else 0)
        steps.append(byte)
    register = (1 << width) - 1
    for byte in value:
        register = register >> 8 ^ steps[(register ^ byte) & 255]
    return (register ^ (1 << width) - 1).to_bytes(width // 8, "big")


def checksums(scratch, zarrd):
    """What comparing costs: uploads of 8 MiB with each checksum less those without."""
    size = 8 * MIB
    value = b"0123456789abcdef" * (size // 16)
    sums = {
        "crc32": zlib.crc32(value).to_bytes(4, "big"), "crc32c": crc(value, 0x82F63B78, 32),
        "crc64nvme": crc(value, 0x9A6C9329AC4BC9B5, 64), "sha1": hashlib.sha1(value).digest(),
        "sha256": hashlib.sha256(value).digest(),
    }
    encoded = {f"x-amz-checksum-{name}": base64.b64encode(value).decode() for name, value in sums.items()}
    encoded["content-md5"] = base64.b64encode(hashlib.md5(value).digest()).decode()
    paths = [f"/lab/{name}" for name in names(size)]
    loads = [Load(scratch, zarrd, S3, "PUT", paths, size)]
    loads += [Load(scratch, zarrd, S3, "PUT", paths, size, {name: value}) for name, value in encoded.items()]
    medians, _ = by_turns(loads, 4)
    plain = medians[0][1]
    for name, (_, cpu) in zip(encoded, medians[1:]):
        row(f"{name.removeprefix('x-amz-checksum-')}: µs of CPU per MiB", f"{(cpu - plain) / 8 * 1e6:.0f} (PUT without: {plain / 8 * 1e6:.0f})", "measured", True)


def garage(scratch, zarrd):
    """The same presigned requests of both servers."""
    program = shutil.which("garage") or shutil.which("garage", path="target/tools/bin")
    if program is None:
        install = "cargo install garage --version 2.5.0 --locked --no-default-features --features bundled-libs,lmdb,sqlite --root target/tools"
        row("Garage", f"not installed; {install}", "faster on each row", False)
        return
    directory = f"{scratch}/garage"
    os.mkdir(directory)
    peer = Garage(program, directory)
    try:
        fill(HTTP, "/store/bucket/")
        fill(GARAGE, "/bucket/", lambda path: presigned(GARAGE_KEYS, "PUT", GARAGE, path))
        for label, size in SIZES.items():
            for method in ("GET", "PUT"):
                loads = []
                for server, port, keys in ((peer, GARAGE, GARAGE_KEYS), (zarrd, S3, OPEN)):
                    paths = [presigned(keys, method, port, f"/bucket/{name}") for name in names(size)]
                    loads.append(Load(scratch, server, port, method, paths, size if method == "PUT" else 0))
                for connections in (1, 16):
                    medians, ratios = by_turns(loads, connections)
                    measured = f"{ratios[1]:.2f} ({medians[1][0]:.0f} of {medians[0][0]:.0f} requests/s; CPU {medians[1][1] * 1e6:.0f} and {medians[0][1] * 1e6:.0f} µs)"
                    row(f"signed {method} of {label}, c={connections}: rate of Garage's", measured, "> 1", ratios[1] > 1)
    finally:
        peer.stop()


def parts(scratch, zarrd):
    """An upload of 4 GiB in parts of 64 MiB, four at a time as clients send them, and one in a single request."""
    size, part, connections = 4 << 30, 64 * MIB, 4
    value = os.urandom(part)

    def plain():
        put(S3, "/lab/plain", (value for _ in range(size // part)), {"content-length": str(size)})

    def in_parts():
        clients = threading.local()

        def call(method, target, body=None):
            if not hasattr(clients, "client"):
                clients.client = http.client.HTTPConnection("127.0.0.1", S3, timeout=600)
            client = clients.client
            client.request(method, target, body)
            response = client.getresponse()
            content = response.read()
            assert response.status < 300 and b"<Error>" not in content, (target, response.status, content[:300])
            return response, content.decode()

        upload = re.search("<UploadId>(.*?)</UploadId>", call("POST", "/lab/parts?uploads")[1])[1]

        def send(number):
            return call("PUT", f"/lab/parts?partNumber={number + 1}&uploadId={upload}", value)[0].headers["etag"]

        with concurrent.futures.ThreadPoolExecutor(connections) as pool:
            tags = list(pool.map(send, range(size // part)))
        listed = "".join(f"<Part><PartNumber>{number + 1}</PartNumber><ETag>{tag}</ETag></Part>" for number, tag in enumerate(tags))
        call("POST", f"/lab/parts?uploadId={upload}", f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>")

    ratios, rates = [], []
    for turn in range(3):
        seconds = {}
        for name, upload in [("plain", plain), ("parts", in_parts)][:: 1 if turn % 2 else -1]:
            begin = time.perf_counter()
            upload()
            seconds[name] = time.perf_counter() - begin
            urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{S3}/lab/{name}", method="DELETE"), timeout=60)
            time.sleep(2)
        ratios.append(seconds["plain"] / seconds["parts"])
        rates.append((4096 / seconds["parts"], 4096 / seconds["plain"]))
    ours, theirs = (statistics.median(rate[at] for rate in rates) for at in (0, 1))
    ratio = statistics.median(ratios)
    row("4 GiB in parts of 64 MiB, four at a time: rate of that of one PUT", f"{ratio:.2f} ({ours:.0f} of {theirs:.0f} MiB/s)", "≥ 0.9", ratio >= 0.9)
    peak = zarrd.peak_mib()
    row("peak memory of the server meanwhile, MiB", peak, "≤ 150", peak <= 150)


def listings(_, zarrd):
    """All keys of a bucket in pages of 1,000, through both listeners."""
    count, part = 1_000_000, 10_000
    array = {
        "zarr_format": 3, "node_type": "array", "shape": [count], "data_type": "uint8", "fill_value": 0, "attributes": {},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1]}}, "chunk_key_encoding": {"name": "default"},
        "codecs": [{"name": "bytes"}],
    }
    put(HTTP, "/node/lab/a", json.dumps(array), {"content-type": "application/json"})
    for begin in range(0, count, part):
        put(HTTP, f"/array/lab/a?select={begin}:{begin + part}", bytes([7]) * part)
    total = count + 1

    def pages(port, first, following, cursor):
        client, listed, target, begin = http.client.HTTPConnection("127.0.0.1", port, timeout=600), 0, first, time.perf_counter()
        cpu = zarrd.cpu()
        while target:
            client.request("GET", target)
            response = client.getresponse()
            content = response.read()
            assert response.status == 200, content[:300]
            found, entries = cursor(content)
            listed += entries
            target = found and f"{following}{urllib.parse.quote(found, safe='')}"
        assert listed == total, listed
        return time.perf_counter() - begin, zarrd.cpu() - cpu

    def of_s3(content):
        found = re.search(b"<NextContinuationToken>(.*?)</NextContinuationToken>", content)
        return found and found[1].decode(), content.count(b"<Contents>")

    def of_store(content):
        page = json.loads(content)
        return page.get("cursor"), len(page["keys"])

    contestants = {
        "/store": lambda: pages(HTTP, "/store/lab/a/?list=keys&limit=1000", "/store/lab/a/?list=keys&limit=1000&cursor=", of_store),
        "S3": lambda: pages(S3, "/lab?list-type=2&prefix=a/", "/lab?list-type=2&prefix=a/&continuation-token=", of_s3),
    }
    rounds = []
    for turn in range(ROUNDS):
        order = list(contestants)[:: 1 if turn % 2 else -1]
        rounds.append({name: contestants[name]() for name in order})
    ratio = statistics.median(each["/store"][0] / each["S3"][0] for each in rounds)
    figures = {name: [statistics.median(each[name][at] for each in rounds) for at in (0, 1)] for name in contestants}
    measured = f"{ratio:.2f} ({figures['S3'][0]:.1f} and {figures['/store'][0]:.1f} s; CPU {figures['S3'][1]:.1f} and {figures['/store'][1]:.1f} s)"
    row(f"listing of {total:,} keys: rate of that of /store's pages of 1,000", measured, "≥ 0.8", ratio >= 0.8)


def main():
    directory = os.environ.get("TMPDIR", "/var/tmp")
    for part in CHOSEN:
        with tempfile.TemporaryDirectory(prefix="zarrd-s3-", dir=directory) as scratch:
            os.mkdir(f"{scratch}/loads")
            zarrd = Zarrd(f"{scratch}/data")
            try:
                globals()[part](f"{scratch}/loads", zarrd)
            finally:
                zarrd.stop()
    print("\nrow | measured | wanted | pass\n---|---|---|---\n" + "\n".join(table))
    failed = sum(line.endswith("| NO") for line in table)
    print(f"{len(table)} rows, {failed} of them fail")
    return failed == 0


sys.exit(0 if main() else 1)
