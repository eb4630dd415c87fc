"""Writes groups and arrays of both formats with zarr-python, through zarr.open("http://...").

    write_zarr_python.py URL DIR

In addition to the data at URL, it writes each array's elements to DIR, as raw bytes in C order and little-endian, and
DIR/manifest.json, with which the other clients compare their results.
"""

import json
import pathlib
import sys
import warnings

import numcodecs
import numpy as np
import zarr
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, TransposeCodec, ZstdCodec

NUMBERS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NUMBERS += ["float16", "float32", "float64", "complex64", "complex128"]

url, directory = sys.argv[1], pathlib.Path(sys.argv[2])
warnings.filterwarnings("ignore", message="Consolidated metadata is currently not part")
random = np.random.default_rng(20261121)
manifest = []


def elements(dtype, shape):
    """Random non-zero elements over the whole range of the type."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(bool) | (np.indices(shape).sum(axis=0) % 2 == 0)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        numbers = random.integers(info.min, info.max, shape, dtype.newbyteorder("="), endpoint=True)
        return np.maximum(numbers, 1).astype(dtype)
    if dtype.kind == "f":
        return random.normal(1, 100, shape).astype(dtype)
    if dtype.kind == "c":
        return (random.normal(1, 100, shape) + 1j * random.normal(0, 100, shape)).astype(dtype)
    raise TypeError(dtype)


def note(root, name, data, format, **more):
    """Saves the expected elements of an array."""
    file = f"{root.removeprefix(url + '/')}/{name}.bin".replace("/", "-")
    little = data.astype(data.dtype.newbyteorder("<"))
    (directory / file).write_bytes(np.ascontiguousarray(little).tobytes())
    entry = {"url": f"{root}/{name}", "file": file, "format": format, "dtype": data.dtype.name}
    manifest.append(entry | {"shape": list(data.shape), "sharded": False} | more)


def write(group, name, dtype, shape=(23, 31), chunks=(10, 12), data=None, partial=True, **options):
    """Creates an array, writes all of it and then a region again."""
    data = elements(dtype, shape) if data is None else data
    array = group.create_array(name, shape=shape, chunks=chunks, dtype=dtype, **options)
    array[...] = data
    if partial and data.ndim:
        region = tuple(slice(extent // 3, extent // 2 + 1) for extent in shape)
        data[region] = elements(dtype, data[region].shape)
        array[region] = data[region]
    format = group.metadata.zarr_format
    note(group_url(group), name, data, format, sharded="shards" in options)
    return array


def group_url(group):
    return f"{url}/v{group.metadata.zarr_format}.zarr" + (f"/{group.path}" if group.path else "")


def write_v2():
    root = zarr.open_group(f"{url}/v2.zarr", mode="a", zarr_format=2)
    root.attrs["title"] = "Zarr v2 über HTTP"
    for dtype in NUMBERS:
        write(root, f"types/{dtype}", dtype)
    codecs = root.create_group("codecs", attributes={"note": "compressors and layouts"})
    write(codecs, "none", "i4", compressors=None)
    write(codecs, "zlib", "f8", compressors=numcodecs.Zlib(level=3))
    write(codecs, "gzip", "f8", compressors=numcodecs.GZip(level=5))
    write(codecs, "zstd", "i8", compressors=numcodecs.Zstd(level=3))
    write(codecs, "blosc", "f4", compressors=numcodecs.Blosc(cname="lz4", shuffle=1))
    write(codecs, "bz2", "u2", compressors=numcodecs.BZ2(level=1))
    write(codecs, "big_endian", ">i4")
    write(codecs, "fortran", "f4", order="F")
    write(codecs, "slashes", "u2", chunk_key_encoding={"name": "v2", "separator": "/"})
    write(codecs, "cube", "u1", (7, 8, 9), (3, 3, 3))
    write(codecs, "scalar", "f8", (), ())
    write(codecs, "filled", "i2", fill_value=-7, data=np.full((23, 31), -7, "i2"), partial=False, config={"write_empty_chunks": True})
    return root


def write_v3():
    root = zarr.open_group(f"{url}/v3.zarr", mode="a", zarr_format=3)
    root.attrs["title"] = "Zarr v3 über HTTP"
    for dtype in NUMBERS:
        write(root, f"types/{dtype}", dtype)
    codecs = root.create_group("codecs", attributes={"note": "codecs and layouts"})
    write(codecs, "none", "i4", compressors=None)
    write(codecs, "gzip", "f8", compressors=GzipCodec(level=5))
    write(codecs, "zstd", "i8", compressors=ZstdCodec(level=3))
    write(codecs, "blosc", "f4", compressors=BloscCodec(cname="lz4", typesize=4))
    write(codecs, "crc32c", "u2", compressors=[ZstdCodec(), Crc32cCodec()])
    write(codecs, "big_endian", "i4", serializer=BytesCodec(endian="big"))
    write(codecs, "transposed", "f4", filters=TransposeCodec(order=(1, 0)))
    write(codecs, "v2_keys", "u2", chunk_key_encoding={"name": "v2", "separator": "."})
    write(codecs, "named", "u1", (7, 8, 9), (3, 3, 3), dimension_names=["time", "y", "x"])
    write(codecs, "scalar", "f8", (), ())
    shards = root.create_group("shards")
    write(shards, "plain", "f8", (200, 150), (10, 10), shards=(100, 50))
    write(shards, "raw", "i4", (64, 64), (8, 8), shards=(32, 32), compressors=None)
    write(shards, "gzip", "u2", (50, 70), (5, 7), shards=(25, 35), compressors=GzipCodec())
    write(shards, "cube", "i1", (24, 24, 24), (4, 4, 4), shards=(12, 12, 24))
    # Far larger than its largest part, for the tests that count bytes.
    write(shards, "large", "f8", (1024, 1024), (64, 64), shards=(1024, 1024), compressors=None)
    sparse = np.zeros((64, 64), "i4")
    sparse[0:8, 0:8] = elements("i4", (8, 8))
    write(shards, "sparse", "i4", (64, 64), (8, 8), shards=(32, 32), data=sparse, partial=False, config={"write_empty_chunks": True})
    return root


def check(root):
    """Written data is visible at once, through the same group and through a new one."""
    format = root.metadata.zarr_format
    again = zarr.open(group_url(root), mode="r+")
    written = {entry["url"].removeprefix(f"{url}/v{format}.zarr/") for entry in manifest if entry["format"] == format}
    for group in (root, again):
        members = {name for name, node in group.members(max_depth=None) if isinstance(node, zarr.Array)}
        assert members == written, (members ^ written)
        assert sorted(group.keys()) == sorted({name.split("/")[0] for name in written})
    assert again.attrs["title"] == f"Zarr v{format} über HTTP"
    again.attrs["more"] = [1, 2, {"three": None}]
    zarr.consolidate_metadata(again.store)


for make in (write_v2, write_v3):
    check(make())
(directory / "manifest.json").write_text(json.dumps(manifest, indent=1))
print(f"zarr-python {zarr.__version__} wrote {len(manifest)} arrays")
