"""Neighbours of the formats that the field writes now, written by zarr-python, tensorstore and netCDF and read through zarrd,
and written through zarrd and read by zarr-python:

    ZARRD=target/debug/zarrd formats.py

Prints what differs, and a line of counts; the exit code is 1 if something differs.
"""

import json
import pathlib
import tempfile
import warnings

import ml_dtypes
import numpy as np
import tensorstore
import zarr
from zarr.codecs import BytesCodec, CastValue, GzipCodec, ScaleOffset, ShardingCodec, ZstdCodec
from zarr.codecs import numcodecs as codecs

from served import Server, check, finish

warnings.simplefilter("ignore")


def plain(values):
    """Elements in the notation of zarrd's JSON."""
    def one(value):
        if isinstance(value, list):
            return [one(item) for item in value]
        if isinstance(value, float) and not np.isfinite(value):
            return "NaN" if np.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return value

    return one(np.asarray(values).tolist())


def cast_arrays(data):
    """Arrays of cast_value: path, and the elements that zarr-python reads."""
    values = np.array([[1.5, -2.5, 100.25], [0.0, 33.0, -7.75]])
    nan = {"encode": [["NaN", 255]], "decode": [[255, "NaN"]]}
    cases = {
        **{rounding: ("f8", [CastValue(data_type="int32", rounding=rounding)]) for rounding in ("nearest-even", "nearest-away", "towards-zero", "towards-positive", "towards-negative")},
        "clamp": ("f4", [CastValue(data_type="uint8", out_of_range="clamp")]),
        "wrap": ("f8", [CastValue(data_type="int8", out_of_range="wrap")]),
        "half": ("f8", [CastValue(data_type="float16", rounding="towards-zero", out_of_range="clamp")]),
        "wider": ("f4", [CastValue(data_type="float64")]),
        "packed": ("f8", [ScaleOffset(offset=-1000, scale=8), CastValue(data_type="uint16")]),
        "map": ("f4", [CastValue(data_type="uint8", scalar_map=nan, out_of_range="clamp")]),
    }
    for name, (dtype, filters) in cases.items():
        for variant, more in (("plain", {}), ("big", {"serializer": BytesCodec(endian="big")}), ("shard", {"shards": (2, 4)})):
            array = zarr.create_array(f"{data}/cast/{name}_{variant}", shape=(2, 3), chunks=(1, 2), dtype=dtype, filters=filters, fill_value=0, compressors=ZstdCodec(), **more)
            array[...] = np.where(values == 33, np.nan, values) if name == "map" else values
            yield f"cast/{name}_{variant}", array
    inner = [ScaleOffset(offset=0, scale=4), CastValue(data_type="int16"), BytesCodec(), GzipCodec()]
    array = zarr.create(store=f"{data}/cast/inside", shape=(2, 3), dtype="f8", chunk_shape=(2, 4), zarr_format=3, codecs=[ShardingCodec(chunk_shape=(1, 2), codecs=inner)])
    array[...] = values
    yield "cast/inside", array


def pcodec_arrays(data):
    for dtype in ("i2", "u2", "f2", "i4", "u4", "f4", "i8", "u8", "f8"):
        values = np.arange(60).reshape(10, 6).astype(dtype)
        serializer = codecs.PCodec(level=3, delta_spec="try_lookback", equal_pages_up_to=300)
        array = zarr.create_array(f"{data}/pco/{dtype}", shape=(10, 6), chunks=(4, 4), dtype=dtype, serializer=serializer, compressors=None, fill_value=0)
        array[...] = values
        yield f"pco/{dtype}", array
    array = zarr.create_array(f"{data}/pco/shard", shape=(10, 6), shards=(8, 8), chunks=(4, 4), dtype="f8", serializer=codecs.PCodec(), compressors=None, fill_value=0)
    array[...] = np.arange(60).reshape(10, 6) / 7
    yield "pco/shard", array


def small_arrays(data):
    names = ["int2", "int4", "float4_e2m1fn", "float8_e3m4", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2", "float8_e5m2fnuz", "bfloat16"]
    for name in names:
        for driver in ("zarr3", "zarr"):
            path = f"small/{driver}_{name}"
            spec = {"driver": driver, "kvstore": {"driver": "file", "path": f"{data}/{path}/"}}
            array = tensorstore.open(spec, create=True, dtype=name, shape=[7], chunk_layout=tensorstore.ChunkLayout(chunk_shape=[3])).result()
            values = np.array([1, 0, -1, 1, -2, 0.5, -0.5])
            array[...] = (values.astype("i1") if "int" in name else values).astype(array.dtype.numpy_dtype)
            yield path, array.read().result().astype("f4" if "float" in name else "i1")


def struct_arrays(data):
    dtypes = {
        "offsets": np.dtype({"names": ["a", "b"], "formats": ["<u4", "u1"], "offsets": [0, 4], "itemsize": 8}),
        "gap": np.dtype({"names": ["a", "b"], "formats": ["u1", "<f8"], "offsets": [3, 8], "itemsize": 24}),
        "aligned": np.dtype([("i", "i1"), ("j", "<i4"), ("k", "<i2"), ("l", "<f8")], align=True),
        "big": np.dtype([("i", "i1"), ("j", ">i4")], align=True),
        "nested": np.dtype([("p", np.dtype([("x", "u1"), ("y", "<i2")], align=True)), ("q", "u1")]),
    }
    for name, dtype in dtypes.items():
        descr = [("p", dtype["p"].descr), ("q", "|u1")] if name == "nested" else dtype.descr
        elements = np.frombuffer(np.arange(3 * dtype.itemsize, dtype="u1").tobytes(), dtype)
        directory = pathlib.Path(data, "struct", name)
        directory.mkdir(parents=True)
        document = {"zarr_format": 2, "shape": [3], "chunks": [3], "dtype": descr, "compressor": None, "filters": None, "order": "C", "fill_value": None}
        (directory / ".zarray").write_text(json.dumps(document))
        (directory / "0").write_bytes(elements.tobytes())
        read = zarr.open_array(str(directory), mode="r")[:]
        yield f"struct/{name}", read.astype(read.dtype.newbyteorder("<")).tobytes()


def character_arrays(data):
    names = ["Oslo", "Rom", "Zürich"]
    for version in (2, 3):
        group = zarr.open_group(f"{data}/chars{version}", mode="w", zarr_format=version)

        def write(name, values, dims, attributes, chunks):
            more = {"dimension_names": dims} if version == 3 else {}
            attributes = attributes | ({} if version == 3 else {"_ARRAY_DIMENSIONS": dims})
            fill = b"" if values.dtype.kind == "S" else 0
            group.create_array(name, shape=values.shape, chunks=chunks, dtype=values.dtype, fill_value=fill, attributes=attributes, **more)[...] = values

        def letters(encoding, width):
            return np.array([[bytes([byte]) for byte in name.encode(encoding).ljust(width, b"\0")] for name in names], "S1")

        write("utf8", letters("utf-8", 7), ["station", "w"], {"_Encoding": "utf-8"}, (2, 3))
        write("latin1", letters("latin-1", 6), ["station", "v"], {"_Encoding": "latin1"}, (3, 6))
        write("stack", np.stack([letters("utf-8", 7)] * 2), ["k", "station", "w"], {}, (1, 2, 4))
        write("one", letters("utf-8", 7)[0], ["w"], {}, (7,))
        write("station", np.array([b"o", b"ro", b"z"], "S2"), ["station"], {}, (2,))
        write("t", np.array([10, 20, 30], "i4"), ["station"], {}, (3,))
        at = f"/array/chars{version}"
        yield f"{at}/utf8?decode=cf", names
        yield f"{at}/utf8?decode=cf&select=1", "Rom"
        yield f"{at}/latin1?decode=cf", names
        yield f"{at}/stack?decode=cf&select=1,1:", names[1:]
        yield f"{at}/one?decode=cf", "Oslo"
        yield f"{at}/t?sel.station=ro", 20
        yield f"{at}/t?sel.utf8=Z%C3%BCrich", 30
        yield f"{at}/t?sel.latin1=Oslo", 10


def write_through(server, group, path, array):
    """Writes elements through zarrd that zarr-python has written, and compares what it reads."""
    node = server.json(f"/node/{path}")
    if not isinstance(node, dict):
        return check(group, f"{path} described", node, "a node")
    elements = array[...]
    document = (pathlib.Path(array.store_path.store.root) / array.store_path.path / "zarr.json").read_bytes()
    embedded.request("PUT", f"/store/{path}/zarr.json", document)
    status, body = embedded.request("PUT", f"/array/{path}", np.ascontiguousarray(elements).tobytes())
    if status not in (200, 201, 204):
        return check(group, f"{path} written", f"{status} {body[:200]}", "written")
    again = zarr.open_array(f"{embedded.url}/store/{path}", mode="r")[...]
    check(group, f"{path} written", np.asarray(again).tobytes(), elements.tobytes())


with tempfile.TemporaryDirectory() as data, tempfile.TemporaryDirectory() as other:
    written = [("cast_value", *entry) for entry in cast_arrays(data)] + [("pcodec", *entry) for entry in pcodec_arrays(data)]
    small, structs, texts = list(small_arrays(data)), list(struct_arrays(data)), list(character_arrays(data))
    server, embedded = Server(f"dir:{data}"), Server(f"sled:{other}/data")
    try:
        for group, path, array in written:
            status, body = server.request("GET", f"/array/{path}?format=raw")
            check(group, path, body if status == 200 else f"{status} {body[:200]}", array[...].tobytes())
            check(group, f"{path} as JSON", server.json(f"/array/{path}"), plain(array[...]))
            write_through(server, group, path, array)
        for path, elements in small:
            check("small numbers", path, server.json(f"/array/{path}"), plain(elements))
        for path, elements in structs:
            check("structs", path, server.request("GET", f"/array/{path}?format=raw")[1], elements)
        for path, expected in texts:
            check("texts", path, server.json(path), expected)
    finally:
        server.stop()
        embedded.stop()
finish()
