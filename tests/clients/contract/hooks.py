"""Hooks of schemathesis: restore the data named in the examples of openapi.yaml after each request that may change
it.
"""

import os

import httpx
import schemathesis
from fit import fit
from schemathesis import GenerationMode

CHUNKS = {"name": "regular", "configuration": {"chunk_shape": [64, 2]}}
CODECS = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd", "configuration": {"level": 3, "checksum": False}}]

ARRAY_V3 = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [128, 2],
    "data_type": "float32",
    "chunk_grid": CHUNKS,
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "fill_value": 0.0,
    "codecs": CODECS,
    "attributes": {"unit": "K"},
    "dimension_names": ["y", "x"],
}
ARRAY_V2 = {
    "zarr_format": 2,
    "shape": [128, 2],
    "chunks": [64, 2],
    "dtype": "<f4",
    "compressor": None,
    "fill_value": 0.0,
    "order": "C",
    "filters": None,
    "dimension_separator": ".",
    "attributes": {},
}


def group_v3(members):
    return {"zarr_format": 3, "node_type": "group", "attributes": {"title": "Experiment"}, "members": members}


# The data at the paths of the examples, by path and dialect.
NODES = [
    ("lab/exp1", "v3", group_v3({"foo": ARRAY_V3})),
    ("lab/old", "v2", {"zarr_format": 2, "attributes": {}, "members": {"foo": ARRAY_V2}}),
    ("sketch", "draft", group_v3({"foo": {**ARRAY_V3, "dimension_names": None}})),
]
ARRAYS = ["lab/exp1/foo", "lab/old/foo", "sketch/foo"]
VALUES = ["lab/notes.txt", "lab/notes/1", "lab/notes/2"]


def fill(client):
    for path, dialect, node in NODES:
        client.put(f"/node/{path}?overwrite&dialect={dialect}", json=node).raise_for_status()
    for path in ARRAYS:
        client.put(f"/array/{path}?select=0:64", json=1.5).raise_for_status()
    for key in VALUES:
        client.put(f"/store/{key}", content=b"forty-two mice").raise_for_status()


def client():
    return httpx.Client(base_url=os.environ["ZARRD_URL"], trust_env=False, timeout=30)


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.meta is not None and case.meta.generation.mode is GenerationMode.POSITIVE:
        fit(case)


@schemathesis.hook
def after_call(context, case, response):
    if os.environ.get("ZARRD_REFILL") and case.method not in ("GET", "HEAD", "OPTIONS") and response.status_code < 300:
        with client() as connection:
            fill(connection)


if __name__ == "__main__":
    with client() as connection:
        fill(connection)
