"""Writes everything that tensorstore supports, in v2 and v3:

    write_tensorstore.py STORE NOTES [ONE_IN]

STORE is a directory for the arrays, NOTES one for the expected elements, see expectation.py; one in
ONE_IN arrays is written.
"""

import importlib.metadata
import pathlib
import sys

import ml_dtypes
import numpy as np
import tensorstore as ts

import expectation

store = pathlib.Path(sys.argv[1]).absolute()
notes = expectation.Notes(sys.argv[2], f"tensorstore {importlib.metadata.version('tensorstore')}", *sys.argv[3:4])

SHAPE, CHUNKS = (5, 7), (3, 4)
NUMBERS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NUMBERS += ["float16", "float32", "float64", "complex64", "complex128"]
CODECS = {
    "bare": [],
    "gzip": [{"name": "gzip", "configuration": {"level": 3}}],
    "zstd": [{"name": "zstd", "configuration": {"level": 3}}],
    "crc32c": [{"name": "crc32c"}],
    "zstd_crc32c": [{"name": "zstd", "configuration": {"level": 1}}, {"name": "crc32c"}],
}
for cname in ("lz4", "lz4hc", "blosclz", "zstd", "zlib", "snappy"):
    for shuffle in ("noshuffle", "shuffle", "bitshuffle"):
        configuration = {"cname": cname, "clevel": 5, "shuffle": shuffle}
        CODECS[f"blosc_{cname}_{shuffle}"] = [{"name": "blosc", "configuration": configuration}]
COMPRESSORS = {
    "none": None,
    "zlib": {"id": "zlib", "level": 1},
    "gzip": {"id": "gzip", "level": 1},
    "bz2": {"id": "bz2", "level": 1},
    "zstd": {"id": "zstd", "level": 1},
    "blosc": {"id": "blosc", "cname": "zstd", "clevel": 3, "shuffle": 2},
    "blosc_auto": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": -1},
}


def write(name, data, driver, metadata, region=...):
    def attempt():
        spec = {"driver": driver, "kvstore": {"driver": "file", "path": f"{store / name}/"}, "metadata": metadata}
        array = ts.open(spec, create=True).result()
        array[region] = data[region]
        found = array.read().result()
        if found.dtype == ml_dtypes.bfloat16:
            # NumPy has no such type, only its bits.
            notes.note(name, found.view("u2"), "bfloat16")
        else:
            notes.note(name, found)

    notes.attempt(name, attempt)


def bytes_codec(endian="little"):
    return {"name": "bytes", "configuration": {"endian": endian}}


def sharded(chunks, codecs, location="end", index=None):
    configuration = {"chunk_shape": list(chunks), "codecs": codecs, "index_location": location}
    configuration["index_codecs"] = index or [bytes_codec(), {"name": "crc32c"}]
    return {"name": "sharding_indexed", "configuration": configuration}


def v3(name, data, codecs, chunks=None, region=..., **more):
    grid = {"name": "regular", "configuration": {"chunk_shape": list(chunks or CHUNKS[: data.ndim])}}
    metadata = {"shape": list(data.shape), "data_type": data.dtype.name, "chunk_grid": grid, "codecs": codecs, **more}
    write(f"v3/{name}", data, "zarr3", metadata, region)


def v2(name, data, chunks=None, region=..., **more):
    metadata = {"shape": list(data.shape), "chunks": list(chunks or CHUNKS[: data.ndim]), "dtype": data.dtype.str}
    write(f"v2/{name}", data, "zarr", metadata | {"compressor": None} | more, region)


def all_of_v3():
    for dtype in NUMBERS:
        data = expectation.elements(dtype, SHAPE)
        for codec, codecs in CODECS.items():
            v3(f"types/{dtype}/{codec}", data, [bytes_codec(), *codecs])
        v3(f"types/{dtype}/big", data, [bytes_codec("big")])
        larger = expectation.elements(dtype, (11, 13))
        v3(f"types/{dtype}/sharded", larger, [sharded((2, 3), [bytes_codec(), *CODECS["zstd"]])], (6, 6))
        for index, fill in enumerate(fills_of(data)):
            v3(f"types/{dtype}/fill_{index}", data, [bytes_codec()], region=(slice(0, 3), slice(0, 4)), fill_value=fill)
    half = expectation.elements("f4", SHAPE).astype(ml_dtypes.bfloat16)
    for codec in ("bare", "blosc_zstd_bitshuffle"):
        v3(f"types/bfloat16/{codec}", half, [bytes_codec(), *CODECS[codec]])
    v3("types/bfloat16/big", half, [bytes_codec("big")])
    cube = expectation.elements("u2", (5, 6, 7))
    for order in ([2, 1, 0], [1, 2, 0], [0, 2, 1]):
        name = "".join(map(str, order))
        transpose = {"name": "transpose", "configuration": {"order": order}}
        v3(f"layouts/transpose_{name}", cube, [transpose, bytes_codec()], (2, 4, 3))
        v3(f"layouts/transpose_{name}_sharded", cube, [transpose, sharded([2, 2, 2], [transpose, bytes_codec()])], (2, 4, 4))
    for encoding in ("default", "v2"):
        for separator, word in (("/", "slash"), (".", "dot")):
            keys = {"name": encoding, "configuration": {"separator": separator}}
            v3(f"layouts/keys_{encoding}_{word}", expectation.elements("f4", SHAPE), [bytes_codec()], chunk_key_encoding=keys)
            v3(f"layouts/keys_{encoding}_{word}_scalar", expectation.elements("f4", ()), [bytes_codec()], (), chunk_key_encoding=keys)
    for shape, chunks in (((0,), (3,)), ((0, 5), (2, 2)), ((17,), (5,)), ((3, 4, 2, 5, 3), (2, 3, 2, 2, 1)), ((2, 3), (10, 10))):
        v3(f"layouts/shape_{'_'.join(map(str, shape))}", expectation.elements("i4", shape), [bytes_codec()], chunks)
    v3("layouts/named", expectation.elements("i4", SHAPE), [bytes_codec()], dimension_names=["y", None])
    data = expectation.elements("i4", (11, 13))
    for location in ("start", "end"):
        for index, index_codecs in {"checked": None, "bare": [bytes_codec()], "big": [bytes_codec("big"), {"name": "crc32c"}]}.items():
            for codec, codecs in CODECS.items():
                if not codec.startswith("blosc") or codec == "blosc_lz4_shuffle":
                    shard = sharded((2, 3), [bytes_codec("big"), *codecs], location, index_codecs)
                    v3(f"shards/{location}_{index}_{codec}", data, [shard], (6, 6))
                    v3(f"shards/{location}_{index}_{codec}_sparse", data, [shard], (6, 6), region=(slice(5, 7), slice(4, 8)), fill_value=9)
            inner = sharded((1, 3), [bytes_codec(), *CODECS["gzip"]], "start")
            v3(f"shards/{location}_{index}_nested", data, [sharded((2, 3), [inner], location, index_codecs)], (6, 6))
            deeper = sharded((2, 3), [inner], "end", [bytes_codec()])
            v3(f"shards/{location}_{index}_nested_deeper", data, [sharded((6, 6), [deeper], location, index_codecs)], (12, 12))


def fills_of(data):
    if data.dtype.kind == "f":
        size = 2 * data.dtype.itemsize
        return ["NaN", "Infinity", "-Infinity", 0.5, f"0x{1:0{size}x}", f"0xff{'f' * (size - 2)}"]
    if data.dtype.kind == "c":
        return [["NaN", "-Infinity"], [0.5, -1]]
    return [True] if data.dtype.kind == "b" else [int(np.iinfo(data.dtype).max), int(np.iinfo(data.dtype).min)]


def all_of_v2():
    for dtype in NUMBERS:
        for endian in "<>":
            stored = np.dtype(dtype).newbyteorder(endian)
            data = expectation.elements(stored, SHAPE)
            name = f"types/{dtype}_{'be' if endian == '>' else 'le'}"
            for codec, compressor in COMPRESSORS.items():
                v2(f"{name}/{codec}", data, compressor=compressor)
            v2(f"{name}/order_F", data, order="F")
            for index, fill in enumerate(fills_of(data)):
                v2(f"{name}/fill_{index}", data, region=(slice(0, 3), slice(0, 4)), fill_value=fill)
            v2(f"{name}/fill_null", data, region=(slice(0, 3), slice(0, 4)), fill_value=None)
    for shape, chunks in (((), ()), ((0,), (3,)), ((0, 5), (2, 2)), ((17,), (5,)), ((3, 4, 2, 5, 3), (2, 3, 2, 2, 1)), ((2, 3), (10, 10))):
        for order in "CF":
            for separator, word in (("/", "slash"), (".", "dot")):
                name = f"layouts/shape_{'_'.join(map(str, shape)) or 'scalar'}_{order}_{word}"
                v2(name, expectation.elements(">i4", shape), chunks, order=order, dimension_separator=separator)


all_of_v3()
all_of_v2()
notes.close()
