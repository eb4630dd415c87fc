"""Servers of zarrd, also over a bucket, that scripts start; and documents of arrays."""

import contextlib
import http.client
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

# The share of a core that a server of a cluster has.
SHARE = 0.3


def document(shape, chunks, codecs=()):
    return {
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "float32", "fill_value": 0, "attributes": {},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, *codecs],
        "chunk_key_encoding": {"name": "default"},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
    }  # fmt: skip


def bound_to_share(pid, name):
    """Holds a process to its share of a core; the directory of its control group."""
    if pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists():
        group = pathlib.Path(f"/sys/fs/cgroup/{name}")
        group.mkdir()
        (group / "cpu.max").write_text(f"{int(SHARE * 20_000)} 20000")
    else:
        group = pathlib.Path(f"/sys/fs/cgroup/cpu/{name}")
        group.mkdir()
        (group / "cpu.cfs_period_us").write_text("20000")
        (group / "cpu.cfs_quota_us").write_text(str(int(SHARE * 20_000)))
    (group / "cgroup.procs").write_text(str(pid))
    return group


class Server:
    """A zarrd; `address` is where it listens."""

    def __init__(self, program, arguments, environment=(), name=None, listen="127.0.0.1:0"):
        command = [program, "serve", "--listen", listen, *arguments]
        environment = {**os.environ, **dict(environment)}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
        line = self.process.stdout.readline()
        found = re.search(r"http://(127\.0\.0\.1:\d+)", line)
        if not found:
            raise RuntimeError(f"the server does not start: {line or self.process.wait()}")
        self.address = found[1]
        self.group = bound_to_share(self.process.pid, f"zarrd-show-{os.getpid()}-{name}") if name else None

    def request(self, method, path, body=None, content_type="application/json", timeout=60):
        connection = http.client.HTTPConnection(self.address, timeout=timeout)
        try:
            connection.request(method, path, body, {"content-type": content_type})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def must(self, method, path, body=None, content_type="application/json"):
        status, answer = self.request(method, path, body, content_type, timeout=300)
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {answer[:300]}")
        return answer

    def end(self, signal_number=signal.SIGTERM):
        self.process.send_signal(signal_number)
        self.process.wait(120)
        self.remove_group()

    def remove_group(self):
        for _ in range(50):
            if self.group is None or not self.group.exists():
                return
            with contextlib.suppress(OSError):
                self.group.rmdir()
            time.sleep(0.1)


class Cluster:
    """A bucket, which is the S3 listener of a zarrd, and servers over it, in a folder that is removed at the end."""

    def __init__(self, program, options=()):
        self.program, self.options, self.servers = str(program), list(options), []
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="zarrd-show.", dir=os.environ.get("TMPDIR", "/var/tmp")))
        self.s3 = self.bucket = None
        self.start_bucket()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in [*self.servers, self.bucket]:
            with contextlib.suppress(ProcessLookupError):
                server.process.send_signal(signal.SIGCONT)
                server.end(signal.SIGKILL)
        shutil.rmtree(self.scratch, ignore_errors=True)

    def start_bucket(self):
        s3 = self.s3 or free_address()
        self.bucket = Server(self.program, ["--store", f"sled:{self.scratch}/bucket", "--s3-listen", s3])
        self.s3 = s3
        self.bucket.must("PUT", "/store/lab/made", "the bucket")

    def start_server(self, share=SHARE):
        """Starts a server, which is held to a share of a core unless that is `None`."""
        environment = {
            "AWS_ENDPOINT": f"http://{self.s3}", "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "zarrd", "AWS_SECRET_ACCESS_KEY": "zarrd",
        }  # fmt: skip
        arguments = ["--store", "s3://lab?writes=yes", *self.options]
        name = f"{len(self.servers)}-{time.monotonic_ns()}" if share else None
        server = Server(self.program, arguments, environment, name)
        self.servers.append(server)
        return server


def free_address():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listener.getsockname()[1]}"
