"""A server of the part of S3's protocol that reads a bucket: s3_server.py DIR ACCESS_KEY

The files below DIR are the objects of the bucket `bucket`. Requests that are not signed with ACCESS_KEY are refused. Prints
its port.
"""

import hashlib
import http.server
import os
import sys
import urllib.parse
from xml.sax.saxutils import escape

ROOT, ACCESS_KEY = sys.argv[1:]


def tag(data):
    return f'"{hashlib.md5(data).hexdigest()}"'


def objects():
    """The names of all objects, sorted by their bytes."""
    names = (os.path.join(at, name) for at, _, files in os.walk(ROOT) for name in files)
    return sorted((os.path.relpath(name, ROOT) for name in names), key=str.encode)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        bucket, _, name = urllib.parse.unquote(url.path).lstrip("/").partition("/")
        if f"Credential={ACCESS_KEY}/" not in self.headers.get("Authorization", ""):
            self.fail(403, "InvalidAccessKeyId")
        elif bucket != "bucket":
            self.fail(404, "NoSuchBucket")
        elif not name:
            self.list(dict(urllib.parse.parse_qsl(url.query)))
        elif os.path.isfile(os.path.join(ROOT, name)):
            self.read(os.path.join(ROOT, name))
        else:
            self.fail(404, "NoSuchKey")

    do_HEAD = do_GET

    def read(self, path):
        with open(path, "rb") as file:
            data = file.read()
        if self.headers.get("If-Match", tag(data)) != tag(data):
            return self.fail(412, "PreconditionFailed")
        headers = {"ETag": tag(data), "Last-Modified": "Mon, 23 Nov 2026 12:00:00 GMT"}
        wanted = self.headers.get("Range")
        if wanted is None:
            return self.answer(200, data, headers)
        first, last = wanted.removeprefix("bytes=").split("-")
        start = int(first) if first else max(len(data) - int(last), 0)
        end = min(int(last) + 1, len(data)) if first and last else len(data)
        if start >= len(data):
            return self.fail(416, "InvalidRange")
        self.answer(206, data[start:end], headers | {"Content-Range": f"bytes {start}-{end - 1}/{len(data)}"})

    def list(self, query):
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        after = query.get("continuation-token") or query.get("start-after", "")
        limit = int(query.get("max-keys", 1000))
        entries = {}
        for name in objects():
            rest = name[len(prefix) :]
            if name.startswith(prefix):
                is_below = delimiter and delimiter in rest
                entries[prefix + rest.split(delimiter)[0] + delimiter if is_below else name] = is_below
        # A prefix is listed again after a name below it, as S3 does, unless it was the end of the page before.
        rest = [name for name in entries if name.encode() > after.encode()]
        parts = [f"<IsTruncated>{str(len(rest) > limit).lower()}</IsTruncated>"]
        if len(rest) > limit:
            parts.append(f"<NextContinuationToken>{escape(rest[limit - 1])}</NextContinuationToken>")
        for name in rest[:limit]:
            if entries[name]:
                parts.append(f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>")
                continue
            with open(os.path.join(ROOT, name), "rb") as file:
                data = file.read()
            parts.append(
                f"<Contents><Key>{escape(name)}</Key><Size>{len(data)}</Size><ETag>{escape(tag(data))}</ETag>"
                "<LastModified>2026-11-23T12:00:00.000Z</LastModified></Contents>"
            )
        self.answer(200, f"<ListBucketResult>{''.join(parts)}</ListBucketResult>".encode(), {})

    def fail(self, status, code):
        self.answer(status, f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode(), {})

    def answer(self, status, body, headers):
        self.send_response(status)
        for name, value in (headers | {"Content-Length": len(body)}).items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
