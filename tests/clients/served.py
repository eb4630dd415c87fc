"""A server that a script compares with the libraries that wrote its store, and the differences that it found."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

counts, differing = {}, []


def check(group, name, found, expected):
    """Compares, and prints a difference."""
    counts[group] = counts.get(group, 0) + 1
    if found != expected:
        differing.append(name)
        print(f"DIFFERS {group} {name}\n  expected {expected!r:.300}\n  zarrd    {found!r:.300}")


def finish():
    """Prints the counts, and ends the script: with exit code 1 if something differs."""
    print(f"{counts}; {len(differing)} differ" if differing else f"OK {counts}")
    sys.exit(bool(differing))


class Server:
    """The program that ZARRD names, on a free port."""

    def __init__(self, store):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.home = tempfile.TemporaryDirectory()
        self.url = f"http://127.0.0.1:{port}"
        access = [] if store.startswith("sled:") else ["--access", f"{self.home.name}/access"]
        command = [os.path.abspath(os.environ["ZARRD"]), "serve", "--listen", f"127.0.0.1:{port}", "--store", store, *access]
        self.process = subprocess.Popen(command, cwd=self.home.name, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(300):
            try:
                urllib.request.urlopen(self.url + "/readyz", timeout=2).close()
                return
            except OSError:
                time.sleep(0.1)
        sys.exit("zarrd did not start")

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def request(self, method, path, body=None):
        headers = {"Content-Type": "application/octet-stream"} if body else {}
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, body, headers, method=method), timeout=60) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def get(self, path):
        """The body of an answer; the text of its error otherwise."""
        status, body = self.request("GET", path)
        return body if status == 200 else f"{status} {body[:300]!r}"

    def json(self, path):
        body = self.get(path)
        return body if isinstance(body, str) else json.loads(body)
