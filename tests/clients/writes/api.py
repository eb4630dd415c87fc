"""The server's /node and /array over plain HTTP. Requires only Python."""

import http.client
import json
import urllib.parse
from collections import Counter

ZARR_JSON = "application/json"


class ProblemError(Exception):
    """A response that is a problem document."""

    def __init__(self, status, problem, what):
        self.status, self.problem = status, problem
        self.kind = str(problem.get("type", "")).rpartition("/")[2]
        super().__init__(f"{what}: {status} {json.dumps(problem)[:600]}")


class Api:
    """A connection to a server, such as Api("http://127.0.0.1:8000")."""

    def __init__(self, url):
        self.url = url.rstrip("/")
        parts = urllib.parse.urlsplit(self.url)
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=120)
        self.sent = Counter()

    def request(self, method, path, body=None, headers={}, **query):
        """Sends a request; returns status, headers and body. A parameter that is True has no value."""
        target = urllib.parse.quote(path)
        if query:
            parts = [name if value is True else f"{name}={urllib.parse.quote(str(value), safe=':,()')}" for name, value in query.items()]
            target += "?" + "&".join(parts)
        self.connection.request(method, target, body, headers)
        answer = self.connection.getresponse()
        self.sent[f"{method} {path.split('/')[1]}"] += 1
        return answer.status, answer.headers, answer.read()

    def expect(self, method, path, body=None, headers={}, **query):
        """Sends a request that must succeed; returns status, headers and body."""
        status, found, answer = self.request(method, path, body, headers, **query)
        if status >= 300:
            try:
                problem = json.loads(answer)
            except ValueError:
                problem = {"detail": repr(answer[:300])}
            raise ProblemError(status, problem, f"{method} {path} {query or ''}")
        return status, found, answer

    def node(self, path, **query):
        """The ZOM of a node."""
        return json.loads(self.expect("GET", f"/node/{path}", **query)[2])

    def declare(self, path, zom, **query):
        """Declares a ZOM; returns the status and the canonical ZOM."""
        status, _, answer = self.expect("PUT", f"/node/{path}", json.dumps(zom), {"Content-Type": ZARR_JSON}, **query)
        return status, json.loads(answer)

    def patch(self, path, patch, **query):
        """Patches a node's attributes, shape or dimension names; returns the node's document."""
        headers = {"Content-Type": "application/merge-patch+json"}
        return json.loads(self.expect("PATCH", f"/node/{path}", json.dumps(patch), headers, **query)[2])

    def write(self, path, media, body, **query):
        """Writes a region; returns the server's report."""
        return json.loads(self.expect("PUT", f"/array/{path}", body, {"Content-Type": media}, **query)[2])

    def append(self, path, dimension, media, body, **query):
        """Appends along a dimension; returns the server's report."""
        headers = {"Content-Type": media}
        return json.loads(self.expect("POST", f"/array/{path}", body, headers, append=dimension, **query)[2])
