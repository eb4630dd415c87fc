"""Sends models of pydantic-zarr through /node, and reads them back through it and with zarr-python:

    pydantic_models.py URL
"""

import importlib.metadata
import json
import sys
import warnings

import numcodecs
import numpy as np
import zarr
from pydantic_zarr import v2, v3
from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, TransposeCodec, ZstdCodec

from api import Api

url = sys.argv[1]
api = Api(url)
warnings.simplefilter("ignore")
TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "complex64"]
compared = 0


def samples(format):
    """An in-memory hierarchy created by zarr-python."""
    root = zarr.open_group(zarr.storage.MemoryStore(), mode="w", zarr_format=format, attributes={"title": "größe", "n": [1, 2.5, None, {"a": {}}]})
    root.create_group("empty")
    deep = root.create_group("a/b/c", attributes={"deep": True})
    for dtype in TYPES:
        deep.create_array(dtype, shape=(20, 30), chunks=(7, 8), dtype=dtype, attributes={"unit": "mm"})
    deep.create_array("nan", shape=(3,), chunks=(2,), dtype="float32", fill_value=np.nan)
    deep.create_array("infinite", shape=(3,), chunks=(2,), dtype="float64", fill_value=-np.inf)
    deep.create_array("scalar", shape=(), chunks=(), dtype="int32", fill_value=-7)
    deep.create_array("bare", shape=(9,), chunks=(4,), dtype="int16", compressors=None)
    if format == 2:
        deep.create_array("gzip", shape=(9,), chunks=(4,), dtype="int16", compressors=numcodecs.GZip(level=3))
        deep.create_array("blosc", shape=(9,), chunks=(4,), dtype="int16", compressors=numcodecs.Blosc(cname="zstd", clevel=7, shuffle=2))
        deep.create_array("delta", shape=(9,), chunks=(4,), dtype="<i4", filters=[numcodecs.Delta("<i4"), numcodecs.Shuffle(4)])
        deep.create_array("fortran", shape=(9, 8), chunks=(4, 4), dtype=">f8", order="F", chunk_key_encoding={"name": "v2", "separator": "/"})
        deep.create_array("text", shape=(4,), chunks=(2,), dtype="<U5", fill_value="x")
        deep.create_array("when", shape=(4,), chunks=(2,), dtype="<M8[s]")
    else:
        deep.create_array("gzip", shape=(9,), chunks=(4,), dtype="int16", compressors=[GzipCodec(level=3), Crc32cCodec()])
        deep.create_array("blosc", shape=(9,), chunks=(4,), dtype="int16", compressors=BloscCodec(cname="lz4", clevel=5, typesize=2, shuffle="shuffle"))
        deep.create_array("turned", shape=(9, 8), chunks=(4, 4), dtype="float64", filters=TransposeCodec(order=(1, 0)), compressors=ZstdCodec(level=2))
        deep.create_array("sharded", shape=(90, 80), chunks=(5, 5), shards=(20, 40), dtype="uint16")
        deep.create_array("named", shape=(9, 8), chunks=(4, 4), dtype="int8", dimension_names=["y", None])
        deep.create_array("keys", shape=(9, 8), chunks=(4, 4), dtype="int8", chunk_key_encoding={"name": "v2", "separator": "."})
        deep.create_array("text", shape=(4,), chunks=(2,), dtype="string")
        deep.create_array("bits", shape=(4,), chunks=(2,), dtype="V3")
    return root


def dumped(model):
    """A model as serialized by pydantic-zarr."""
    return json.loads(json.dumps(model.model_dump(mode="json"), allow_nan=False))


def check(what, found, wanted):
    """Asserts that two models are equal. They are compared as JSON, since from_zarr returns tuples instead of lists.
    """
    global compared
    found, wanted = dumped(found), dumped(wanted)
    if found != wanted:
        ours, theirs = (json.dumps(model, indent=1, sort_keys=True).splitlines() for model in (found, wanted))
        lines = [f"{a}   |   {b}" for a, b in zip(ours, theirs) if a != b][:10]
        raise SystemExit(f"{what}: differs\n" + "\n".join(lines))
    compared += 1


def round_trip(name, models, sent):
    """Declares a model; all ways of reading it must return an equal one."""
    status, canonical = api.declare(f"{name}", dumped(sent))
    assert status == 201, status
    check(f"{name}: the answer of PUT", models.GroupSpec(**canonical), sent)
    check(f"{name}: GET", models.GroupSpec(**api.node(f"{name}", depth="all")), sent)
    group = zarr.open_group(f"{url}/store/{name}", mode="r", zarr_format=sent.zarr_format)
    check(f"{name}: from_zarr", models.GroupSpec.from_zarr(group), sent)
    status, _ = api.declare(f"{name}", dumped(sent))
    assert status == 200, status

    # Flat, both ways.
    flat = api.node(f"{name}", flat=True, depth="all")
    wanted = sent.to_flat()
    assert sorted(flat) == sorted(wanted), sorted(set(flat) ^ set(wanted))
    is_array = lambda document: "shape" in document
    specs = {path: models.ArraySpec(**document) if is_array(document) else models.GroupSpec(**{"members": None, **document}) for path, document in flat.items()}
    for path, spec in wanted.items():
        check(f"{name}: flat {path}", specs[path], spec)
    check(f"{name}: from_flat", models.GroupSpec.from_flat(specs), sent)

    # A part of it, and a single array.
    inner = sent.members["a"].members["b"]
    check(f"{name}: a part", models.GroupSpec(**api.node(f"{name}/a/b", depth="all")), inner)
    for member, spec in inner.members["c"].members.items():
        check(f"{name}: {member}", models.ArraySpec(**api.node(f"{name}/a/b/c/{member}")), spec)
        check(f"{name}: {member} opens", models.ArraySpec.from_zarr(zarr.open_array(f"{url}/store/{name}/a/b/c/{member}", mode="r")), spec)

    # Compared without changing anything.
    validated = json.loads(api.expect("POST", f"/node/{name}", json.dumps(dumped(sent)), {"Content-Type": "application/json"}, validate=True)[2])
    assert validated["unchanged"] is True and validated["differences"] == [], validated
    other = dumped(sent)
    other["members"]["a"]["members"]["b"]["members"]["c"]["members"]["int16"]["shape"][1] = 31
    validated = json.loads(api.expect("POST", f"/node/{name}", json.dumps(other), {"Content-Type": "application/json"}, validate=True)[2])
    pointer = "/members/a/members/b/members/c/members/int16/shape/1"
    assert [(one["pointer"], one["expected"], one["actual"]) for one in validated["differences"]] == [(pointer, 31, 30)], validated


for format, models in ((2, v2), (3, v3)):
    round_trip(f"v{format}/memory", models, models.GroupSpec.from_zarr(samples(format)))

# The other way: a hierarchy that pydantic-zarr creates on the server is declared again, and is equal.
for format, models in ((2, v2), (3, v3)):
    sent = models.GroupSpec(**api.node(f"v{format}/memory", depth="all"))
    sent.to_zarr(zarr.storage.FsspecStore.from_url(f"{url}/store"), path=f"v{format}/made")
    status, _ = api.declare(f"v{format}/made", dumped(sent))
    assert status == 200, status
    compared += 1

print(f"pydantic-zarr {importlib.metadata.version('pydantic-zarr')} compared {compared} models")
