"""Clients that read arrays. All of them return a NumPy array with the same elements.

Each one is constructed with the URL of an array and the size of its cache in bytes.
"""

import http.client
import json
import pathlib
from urllib.parse import urlsplit

import numpy as np


def text(select):
    """A selection in zarrd's syntax."""
    return ",".join(str(item) if isinstance(item, int) else ":".join(map(str, item)) for item in select)


def index(select):
    """A selection as a NumPy index."""
    return tuple(item if isinstance(item, int) else slice(*item) for item in select)


class ZarrdHttpClient:
    """zarrd's /array by Python's standard library, over one connection, into the memory of a new array."""

    def __init__(self, url, cache):
        parts = urlsplit(url)
        self.path = parts.path
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port)

    def take(self):
        answer = self.connection.getresponse()
        if answer.status != 200:
            raise RuntimeError(answer.read())
        shape = [int(size) for size in filter(None, answer.headers["Zarr-Shape"].split(","))]
        elements = np.empty(shape, answer.headers["Zarr-Data-Type"])
        memory, at = memoryview(elements.reshape(-1).view("u1")), 0
        while at < len(memory):
            count = answer.readinto(memory[at:])
            if count == 0:
                raise RuntimeError("the answer ended early")
            at += count
        answer.read()
        return elements

    def read(self, select):
        self.connection.request("GET", f"{self.path}?select={text(select)}&format=raw")
        return self.take()

    def points(self, points):
        body = json.dumps({"points": points}).encode()
        self.connection.request("POST", f"{self.path}?read&format=raw", body, {"Content-Type": "application/json"})
        return self.take()


class ZarrdRequests:
    """zarrd's /array by requests; the response becomes an array without a copy."""

    def __init__(self, url, cache):
        import requests

        self.session, self.url = requests.Session(), url
        self.session.trust_env = False

    def read(self, select):
        answer = self.session.get(self.url, params={"select": text(select), "format": "raw"})
        return self.array(answer)

    def points(self, points):
        answer = self.session.post(self.url, params={"read": "", "format": "raw"}, json={"points": points})
        return self.array(answer)

    def array(self, answer):
        answer.raise_for_status()
        shape = [int(size) for size in filter(None, answer.headers["Zarr-Shape"].split(","))]
        return np.frombuffer(answer.content, answer.headers["Zarr-Data-Type"]).reshape(shape)


class Tensorstore:
    """tensorstore with a cache pool; cached chunks are revalidated at every read, which is the default."""

    recheck = True

    def __init__(self, url, cache):
        import tensorstore as ts

        context = ts.Context({"cache_pool": {"total_bytes_limit": cache}})
        spec = {"driver": "zarr3", "kvstore": self.kvstore(url), "recheck_cached_data": self.recheck}
        self.array = ts.open(spec, open=True, read=True, context=context).result()

    def kvstore(self, url):
        return f"{url}/"

    def read(self, select):
        return np.asarray(self.array[index(select)].read().result())

    def points(self, points):
        return np.asarray(self.array.vindex[tuple(np.transpose(points))].read().result())


class TensorstoreTrusting(Tensorstore):
    """tensorstore that revalidates only chunks cached before it opened the array."""

    recheck = "open"


class ZarrPython:
    """zarr-python over fsspec, or over local files. It caches no chunks."""

    def __init__(self, url, cache):
        import zarr

        self.array = zarr.open_array(self.store(url, cache), mode="r")

    def store(self, url, cache):
        return url.removeprefix("file://")

    def read(self, select):
        return np.asarray(self.array[index(select)])

    def points(self, points):
        return np.asarray(self.array.vindex[tuple(np.transpose(points))])


class ZarrPythonObstore(ZarrPython):
    """zarr-python over obstore."""

    def store(self, url, cache):
        from obstore.store import HTTPStore
        from zarr.storage import ObjectStore

        return ObjectStore(HTTPStore.from_url(url, client_options={"allow_http": True}), read_only=True)


class ZarrPythonCached(ZarrPython):
    """zarr-python over fsspec with its experimental cache of encoded chunks, which are never revalidated."""

    def store(self, url, cache):
        from zarr.experimental.cache_store import CacheStore
        from zarr.storage import FsspecStore, MemoryStore

        return CacheStore(FsspecStore.from_url(url, read_only=True), cache_store=MemoryStore(), max_size=cache)


def bucket(url):
    """The endpoint, name and path of `http://KEY:SECRET@HOST/bucket/path`, whose key is taken from the environment."""
    import os

    parts = urlsplit(url)
    os.environ |= {"AWS_ACCESS_KEY_ID": parts.username, "AWS_SECRET_ACCESS_KEY": parts.password}
    name, _, path = parts.path.strip("/").partition("/")
    return f"http://{parts.hostname}:{parts.port}", name, path


class TensorstoreBucket(Tensorstore):
    """tensorstore by its S3 driver."""

    def kvstore(self, url):
        endpoint, name, path = bucket(url)
        return {
            "driver": "s3",
            "bucket": name,
            "path": f"{path}/",
            "endpoint": endpoint,
            "aws_region": "us-east-1",
            "aws_credentials": {"type": "environment"},
        }


class TensorstoreBucketTrusting(TensorstoreBucket):
    """tensorstore by its S3 driver that revalidates only chunks cached before it opened the array."""

    recheck = "open"


class ZarrPythonBucket(ZarrPython):
    """zarr-python over obstore's client of S3."""

    def store(self, url, cache):
        from obstore.store import S3Store
        from zarr.storage import ObjectStore

        endpoint, name, path = bucket(url)
        options = {"client_options": {"allow_http": True}, "virtual_hosted_style_request": False}
        store = S3Store(name, prefix=path, endpoint=endpoint, region="us-east-1", **options)
        return ObjectStore(store, read_only=True)


class ZarrPythonBucketCached(ZarrPythonBucket):
    """zarr-python over obstore's client of S3, with its experimental cache, which is never revalidated."""

    def store(self, url, cache):
        from zarr.experimental.cache_store import CacheStore
        from zarr.storage import MemoryStore

        return CacheStore(super().store(url, cache), cache_store=MemoryStore(), max_size=cache)


READERS = {
    "http.client": ZarrdHttpClient,
    "requests": ZarrdRequests,
    "tensorstore": Tensorstore,
    "tensorstore-trusting": TensorstoreTrusting,
    "zarr-python": ZarrPython,
    "zarr-python-obstore": ZarrPythonObstore,
    "zarr-python-cached": ZarrPythonCached,
    "tensorstore-bucket": TensorstoreBucket,
    "tensorstore-bucket-trusting": TensorstoreBucketTrusting,
    "zarr-python-bucket": ZarrPythonBucket,
    "zarr-python-bucket-cached": ZarrPythonBucketCached,
}


def document(reader, url, directory):
    """Opens an array of a hierarchy and returns its metadata as a dictionary."""
    if reader == "http.client":
        return ZarrdNodes.of(url).get("?depth=0", urlsplit(url).path)
    if reader == "tensorstore":
        import tensorstore as ts

        array = ts.open({"driver": "zarr3", "kvstore": f"{url}/"}, open=True, read=True, context=ts.Context()).result()
        return array.spec().to_json()["metadata"]
    import zarr

    return zarr.open_array(directory or url, mode="r").metadata.to_dict()


class ZarrdNodes:
    """zarrd's /node over one connection for each server."""

    connections = {}

    def __init__(self, url):
        parts = urlsplit(url)
        self.path = parts.path
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port)

    @classmethod
    def of(cls, url):
        key = urlsplit(url).netloc
        if key not in cls.connections:
            cls.connections[key] = cls(url)
        return cls.connections[key]

    def get(self, query, path=None):
        self.connection.request("GET", (path or self.path) + query)
        answer = self.connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise RuntimeError(body)
        return json.loads(body)


def count(node):
    return 1 + sum(map(count, node.get("members", {}).values()))


def tree(reader, url):
    """Reads the metadata of all nodes of a hierarchy; returns their number."""
    if reader == "http.client":
        return count(ZarrdNodes(url).get("?depth=all"))
    import zarr

    where = url.removeprefix("file://")
    opened = zarr.open_consolidated(where, mode="r") if reader == "consolidated" else zarr.open_group(where, mode="r")
    documents = [member.metadata.to_dict() for _, member in opened.members(max_depth=None)]
    return 1 + len(documents)


def versions():
    from importlib.metadata import version
    import platform

    names = ["numpy", "tensorstore", "zarr", "fsspec", "aiohttp", "obstore", "requests"]
    return {"Python": platform.python_version(), **{name: version(name) for name in names}}


def create_tree(directory, zom):
    """Creates a hierarchy with zarr-python in a new directory."""
    import zarr
    from zarr.core.group import GroupMetadata
    from zarr.core.metadata import ArrayV3Metadata

    def flat(node, path=""):
        yield path, node
        for name, member in node.get("members", {}).items():
            yield from flat(member, f"{path}/{name}" if path else name)

    nodes = {}
    for path, node in flat(zom):
        document = {name: value for name, value in node.items() if name != "members"}
        is_group = document["node_type"] == "group"
        nodes[path] = GroupMetadata.from_dict(document) if is_group else ArrayV3Metadata.from_dict(document)
    created = sum(1 for _ in zarr.create_hierarchy(store=zarr.storage.LocalStore(pathlib.Path(directory)), nodes=nodes))
    if created != len(nodes):
        raise RuntimeError(f"{created} of {len(nodes)} nodes were created")
