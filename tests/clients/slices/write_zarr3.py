"""Writes everything that zarr-python 3 supports, in both of its formats:

    write_zarr3.py STORE NOTES [ONE_IN]

STORE is a directory for the arrays, NOTES one for the expected elements, see expectation.py; one in
ONE_IN arrays is written.
"""

import json
import pathlib
import sys
import warnings

import numcodecs
import numpy as np
import zarr
import zarr.codecs.numcodecs as named
from zarr.codecs import (
    BloscCodec,
    BytesCodec,
    Crc32cCodec,
    GzipCodec,
    ScaleOffset,
    ShardingCodec,
    TransposeCodec,
    ZstdCodec,
)
from zarr.core.dtype import FixedLengthUTF32, VariableLengthBytes, VariableLengthUTF8

import expectation

# With threads, blosc orders its blocks arbitrarily.
numcodecs.blosc.use_threads = False
# Integers scaled as complex numbers, and a codec of the extension registry.
store, notes = pathlib.Path(sys.argv[1]), expectation.Notes(sys.argv[2], f"zarr-python {zarr.__version__}", *sys.argv[3:4])
warnings.simplefilter("ignore")
zarr.config.set({"array.rectilinear_chunks": True})

SHAPE, CHUNKS = (5, 7), (3, 4)
NUMBERS = ["bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
STRUCT = np.dtype([("a", "<i2"), ("b", "<f8"), ("c", "S3"), ("d", "<U2"), ("e", "<M8[s]"), ("f", "V3")])
NESTED = np.dtype([("x", "<u4"), ("in", [("p", "<c8"), ("q", "?"), ("deep", [("r", "<f2")])]), ("y", "<i8")])
FIXED = {
    **{name: name for name in NUMBERS},
    **{"S1": "S1", "S5": "S5", "V1": "V1", "V7": "V7", "U1": "<U1", "U4": "<U4"},
    **{f"datetime_{unit}": f"<M8[{unit}]" for unit in ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as")},
    **{f"timedelta_{unit}": f"<m8[{unit}]" for unit in ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as")},
    **{"datetime_10us": "<M8[10us]", "datetime_7D": "<M8[7D]", "timedelta_25s": "<m8[25s]"},
    **{"datetime": "<M8", "timedelta": "<m8", "struct": STRUCT, "nested": NESTED},
}
VARIABLE = {"string": (VariableLengthUTF8(), expectation.strings), "bytes": (VariableLengthBytes(), expectation.byte_strings)}

BLOSCS = [(cname, shuffle) for cname in ("lz4", "lz4hc", "blosclz", "zstd", "zlib") for shuffle in ("noshuffle", "shuffle", "bitshuffle")]
CODECS = {
    "none": [],
    "gzip": GzipCodec(level=5),
    "zstd": ZstdCodec(level=3),
    "zstd_checksum": ZstdCodec(level=1, checksum=True),
    "crc32c": Crc32cCodec(),
    "zstd_crc32c": [ZstdCodec(), Crc32cCodec()],
    "gzip_zstd_crc32c": [GzipCodec(level=1), ZstdCodec(), Crc32cCodec()],
    **{f"blosc_{cname}_{shuffle}": BloscCodec(cname=cname, shuffle=shuffle, clevel=5) for cname, shuffle in BLOSCS},
    "blosc_store": BloscCodec(cname="lz4", clevel=0, shuffle="shuffle"),
    "blosc_blocks": BloscCodec(cname="zstd", clevel=9, shuffle="bitshuffle", blocksize=32),
    "n_gzip": named.GZip(level=1),
    "n_zlib": named.Zlib(level=6),
    "n_zstd": named.Zstd(level=1),
    "n_blosc": named.Blosc(cname="zstd", clevel=3, shuffle=2),
    "n_blosc_defaults": named.Blosc(),
    "n_lz4": named.LZ4(acceleration=3),
    "n_bz2": named.BZ2(level=1),
    "n_lzma": named.LZMA(preset=1),
    "n_lzma_raw": named.LZMA(format=3, filters=[{"id": 3, "dist": 4}, {"id": 33, "preset": 1}]),
    "n_lzma_alone": named.LZMA(format=2),
    "n_crc32": named.CRC32(),
    "n_crc32_end": named.CRC32(location="end"),
    "n_crc32c": named.CRC32C(),
    "n_crc32c_start": named.CRC32C(location="start"),
    "n_adler32": named.Adler32(),
    "n_adler32_end": named.Adler32(location="end"),
    "n_fletcher32": named.Fletcher32(),
    "n_jenkins": named.JenkinsLookup3(),
    "n_jenkins_initval": named.JenkinsLookup3(initval=7),
    "n_shuffle_zlib": [named.Shuffle(elementsize=4), named.Zlib(level=1)],
    "n_shuffle_odd": named.Shuffle(elementsize=3),
}
SHARD_INDEX = {"crc32c": [BytesCodec(), Crc32cCodec()], "bare": [BytesCodec()], "big": [BytesCodec(endian="big"), Crc32cCodec()]}


def write(name, dtype, data, kind=None, chunks=None, region=None, **options):
    """Writes an array in either format, and notes the elements read back."""

    def attempt():
        shape = options.pop("shape", data.shape)
        format = 2 if name.startswith("v2/") else 3
        array = zarr.create_array(
            store / name, shape=shape, chunks=chunks or CHUNKS[: len(shape)], dtype=dtype, zarr_format=format, **options
        )
        kind = read_back(name)[1]
        notes.note_all(name, array.__setitem__, lambda: read_back(name)[0], lambda: expectation.erase_chunks(store / name), data, region or ..., kind=kind)

    notes.attempt(name, attempt)


def read_back(name):
    """The elements and their kind."""
    array = zarr.open_array(store / name, mode="r")
    if array.dtype.kind not in "OT":
        # A scalar would lose its size.
        return np.asarray(array[...], array.dtype), None
    kind = "bytes" if isinstance(array.metadata.dtype, VariableLengthBytes) else "string"
    return np.asarray(array[...], object), kind


def with_fill(name, fill):
    """Sets a document's fill value by hand, and notes the elements read back."""

    def attempt():
        path = store / name / "zarr.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"fill_value": fill}))
        found, kind = read_back(name)
        if isinstance(fill, str) and fill.startswith("0x"):
            # Conversion through Python's floats changes payloads.
            missing = np.ones(found.shape, bool)
            missing[0:3, 0:4] = False
            found[missing] = np.frombuffer(bytes.fromhex(fill[2:]), found.dtype.newbyteorder(">"))[0]
        notes.note(name, found, kind)

    notes.attempt(name, attempt)


def each_type(shape=SHAPE):
    for name, dtype in FIXED.items():
        yield name, dtype, expectation.elements(dtype, shape)
    for name, (dtype, make) in VARIABLE.items():
        yield name, dtype, make(shape)


def types_and_codecs():
    for name, dtype, data in each_type():
        short = name.startswith(("datetime_", "timedelta_")) and name not in ("datetime_10us", "timedelta_25s", "datetime_ns")
        for codec, compressors in CODECS.items():
            # All pairs, except units of time that differ only in their name, and blosc.
            if short and codec not in ("none", "gzip"):
                continue
            if codec.startswith("blosc_") and name not in ("u1", "i2", "f4", "f8", "c16", "S5", "struct", "string") and codec != "blosc_zstd_bitshuffle":
                continue
            write(f"v3/types/{name}/{codec}", dtype, data, compressors=compressors)
        write(f"v3/types/{name}/big", dtype, data, serializer=BytesCodec(endian="big"), compressors=[])
        write(f"v3/types/{name}/transposed", dtype, data, filters=TransposeCodec(order=(1, 0)), compressors=ZstdCodec())
        write(f"v3/types/{name}/sharded", dtype, expectation.elements(dtype, (9, 10)) if name in FIXED else data, chunks=(2, 3), shards=(4, 6))
        if name in FIXED:
            write(f"v3/types/{name}/big_sharded", dtype, data, serializer=BytesCodec(endian="big"), chunks=(2, 2), shards=(4, 4))
            native = np.dtype(dtype).newbyteorder(">")
            write(f"v3/types/{name}/native_big", native, expectation.elements(dtype, SHAPE).astype(native))


def array_codecs():
    """Array-to-array codecs for each supported number type."""
    for name in NUMBERS:
        dtype = np.dtype(name)
        data = expectation.elements(dtype, SHAPE)
        small = (np.abs(np.arange(35).reshape(SHAPE)) * 3 % 50).astype(dtype)
        tame = np.linspace(-40, 40, 35).reshape(SHAPE).astype(dtype) if dtype.kind == "f" else small
        for filter, filters, values in [
            ("delta", named.Delta(dtype=dtype.str), data),
            ("delta_as", named.Delta(dtype=dtype.str, astype="<i8"), small),
            ("delta_narrow", named.Delta(dtype=dtype.str, astype="i1"), small),
            ("packbits", named.PackBits(), data),
            ("astype_f8", named.AsType(encode_dtype="<f8", decode_dtype=dtype.str), data),
            ("astype_f4", named.AsType(encode_dtype="<f4", decode_dtype=dtype.str), tame),
            ("astype_i2", named.AsType(encode_dtype="<i2", decode_dtype=dtype.str), small),
            ("astype_u1", named.AsType(encode_dtype="u1", decode_dtype=dtype.str), small),
            ("astype_c16", named.AsType(encode_dtype="<c16", decode_dtype=dtype.str), data),
            ("fixed_i2", named.FixedScaleOffset(offset=3, scale=10, dtype=dtype.str, astype="<i2"), tame),
            ("fixed_u1", named.FixedScaleOffset(offset=-50, scale=2.5, dtype=dtype.str, astype="u1"), tame),
            ("fixed_i8", named.FixedScaleOffset(offset=1000.5, scale=1e-3, dtype=dtype.str, astype="<i8"), tame),
            ("fixed_same", named.FixedScaleOffset(offset=5, scale=3, dtype=dtype.str), tame),
            ("quantize_2", named.Quantize(digits=2, dtype=dtype.str), data),
            ("quantize_0", named.Quantize(digits=0, dtype=dtype.str), tame),
            ("quantize_f4", named.Quantize(digits=1, dtype=dtype.str, astype="<f4"), tame),
            ("bitround_5", named.BitRound(keepbits=5), data),
            ("bitround_all", named.BitRound(keepbits={2: 10, 4: 23, 8: 52}.get(dtype.itemsize, 9)), data),
            ("transpose_delta", [TransposeCodec(order=(1, 0)), named.Delta(dtype=dtype.str)], data),
            ("delta_transpose", [named.Delta(dtype=dtype.str), TransposeCodec(order=(1, 0))], data),
            ("transpose_packbits", [TransposeCodec(order=(1, 0)), named.PackBits()], data),
        ]:
            write(f"v3/filters/{name}/{filter}", dtype, values, filters=filters, compressors=[])
        for extra, filters in [
            ("offset", ScaleOffset(offset=3)),
            ("scale", ScaleOffset(scale=2)),
            ("neither", ScaleOffset()),
        ]:
            write(f"v3/scale_offset/{name}/{extra}", dtype, small, filters=filters, compressors=[])
        write(f"v3/filters/{name}/delta_sharded", dtype, data, filters=named.Delta(dtype=dtype.str), chunks=(2, 3), shards=(4, 6))


def shards():
    data = expectation.elements("i4", (11, 13))
    for location in ("start", "end"):
        for index, index_codecs in SHARD_INDEX.items():
            for inner, codecs in {
                "raw": [BytesCodec()],
                "big": [BytesCodec(endian="big")],
                "gzip": [BytesCodec(), GzipCodec()],
                "crc32c": [BytesCodec(), Crc32cCodec()],
                "transpose_zstd_crc32c": [TransposeCodec(order=(1, 0)), BytesCodec(), ZstdCodec(), Crc32cCodec()],
                "delta": [named.Delta(dtype="<i4"), BytesCodec(), BloscCodec(typesize=4)],
            }.items():
                serializer = ShardingCodec(chunk_shape=(2, 3), codecs=codecs, index_codecs=index_codecs, index_location=location)
                write(f"v3/shards/{location}/{index}/{inner}", "i4", data, chunks=(6, 6), serializer=serializer, compressors=[])
        inmost = [BytesCodec(), GzipCodec()]
        for depth, shape in ((2, (1, 3)), (3, (1, 1))):
            nested = ShardingCodec(chunk_shape=(2, 3), codecs=[ShardingCodec(chunk_shape=(1, 3), codecs=inmost, index_location="start")], index_location=location)
            if depth == 3:
                inner = ShardingCodec(chunk_shape=(1, 3), codecs=[ShardingCodec(chunk_shape=shape, codecs=inmost)], index_location="start")
                nested = ShardingCodec(chunk_shape=(2, 3), codecs=[inner], index_location=location)
            write(f"v3/shards/{location}/nested_{depth}", "i4", data, chunks=(6, 6), serializer=nested, compressors=[])
            sparse = ((slice(0, 1), slice(0, 2)), (slice(7, 9), slice(8, 12)))
            write(f"v3/shards/{location}/nested_{depth}_sparse", "i4", data, chunks=(6, 6), serializer=nested, compressors=[], region=sparse[1], fill_value=-7)
    serializer = ShardingCodec(chunk_shape=(3, 2))
    write("v3/shards/transposed_outside", "i4", data, chunks=(6, 6), filters=TransposeCodec(order=(1, 0)), serializer=serializer, compressors=[])
    write("v3/shards/compressed_outside", "i4", data, chunks=(6, 6), serializer=serializer, compressors=[GzipCodec(), Crc32cCodec()])
    write("v3/shards/one_chunk", "i4", data, chunks=(6, 6), shards=(6, 6))
    write("v3/shards/larger_than_array", "f4", expectation.elements("f4", (3, 3)), chunks=(2, 2), shards=(8, 8))
    write("v3/shards/sparse", "i4", data, chunks=(2, 2), shards=(4, 4), region=(slice(3, 4), slice(3, 9)), fill_value=99)
    write("v3/shards/cube", "u2", expectation.elements("u2", (7, 6, 9)), chunks=(2, 3, 2), shards=(4, 6, 4))
    write("v3/shards/scalar", "f8", expectation.elements("f8", ()), chunks=(), shards=())
    write("v3/shards/empty", "f8", expectation.elements("f8", (0, 4)), chunks=(2, 2), shards=(4, 4))
    strings = expectation.strings((9, 4))
    write("v3/shards/strings", VariableLengthUTF8(), strings, chunks=(2, 2), shards=(4, 4))
    write("v3/shards/strings_sparse", VariableLengthUTF8(), strings, chunks=(2, 2), shards=(4, 4), region=(slice(0, 3), slice(1, 2)), fill_value="fill é")


def layouts(format):
    """Shapes, grids, chunk keys, orders, and missing chunks."""
    root = f"v{format}/layouts"
    shapes = expectation.LAYOUTS | {"eight": ((2,) * 8, (1, 2) * 4)}
    for name, (shape, chunks) in shapes.items():
        for dtype in ("i4", "c16", "S5"):
            write(f"{root}/{name}/{dtype}", dtype, expectation.elements(dtype, shape), chunks=chunks)
        string = VariableLengthUTF8()
        write(f"{root}/{name}/string", string, expectation.strings(shape), chunks=chunks)
    data = expectation.elements("f4", (11, 12))
    for encoding in ("default", "v2"):
        for separator in ("/", "."):
            options = {"chunk_key_encoding": {"name": encoding, "separator": separator}}
            if format == 2 and encoding == "default":
                continue
            write(f"{root}/keys/{encoding}_{'slash' if separator == '/' else 'dot'}", "f4", data, **options)
            write(f"{root}/keys/{encoding}_{'slash' if separator == '/' else 'dot'}_scalar", "f4", expectation.elements("f4", ()), chunks=(), **options)
    for order in "CF":
        for dtype in ("f4", ">i2", "S5", STRUCT):
            name = dtype if isinstance(dtype, str) else "struct"
            write(f"{root}/order_{order}/{name.replace('>', 'be_')}", dtype, expectation.elements(dtype, (11, 12)), order=order)
            write(f"{root}/order_{order}/{name.replace('>', 'be_')}_cube", dtype, expectation.elements(dtype, (5, 6, 7)), chunks=(2, 4, 3), order=order)
    for name, region in {"none": (slice(0, 0), slice(0, 0)), "first": (slice(0, 2), slice(0, 3)), "middle": (slice(4, 5), slice(5, 9))}.items():
        write(f"{root}/missing/{name}", "f4", data, region=region, fill_value=2.5)
        write(f"{root}/missing/{name}_nan", "f8", data.astype("f8"), region=region, fill_value=np.nan)
    if format == 3:
        write(f"{root}/named", "f4", data, dimension_names=["y", None])
        write(f"{root}/unicode_ü_names", "f4", data, dimension_names=["größe", "中"])
        permuted = expectation.elements("i2", (5, 6, 7, 4))
        for order in [(3, 2, 1, 0), (1, 0, 3, 2), (2, 3, 0, 1), (1, 2, 3, 0), (0, 1, 2, 3)]:
            name = "".join(map(str, order))
            write(f"{root}/transpose/{name}", "i2", permuted, chunks=(2, 4, 3, 3), filters=TransposeCodec(order=order))
        twice = [TransposeCodec(order=(1, 2, 3, 0)), TransposeCodec(order=(3, 1, 0, 2))]
        write(f"{root}/transpose/twice", "i2", permuted, chunks=(2, 4, 3, 3), filters=twice)
        rectilinear = {
            "both": [[1, 4, 6], [5, 5, 2]],
            "rows": [[2, 3, 3, 3], 5],
            "runs": [[3, 3, 3, 2], [1] * 12],
            "one": [[11], [12]],
        }
        for name, chunks in rectilinear.items():
            for dtype in ("f4", "S5"):
                write(f"{root}/rectilinear/{name}_{dtype}", dtype, expectation.elements(dtype, (11, 12)), chunks=chunks)
            missing = (slice(0, 2), slice(0, 3))
            write(f"{root}/rectilinear/{name}_missing", "f4", data, chunks=chunks, region=missing, fill_value=7)
            write(f"{root}/rectilinear/{name}_string", VariableLengthUTF8(), expectation.strings((11, 12)), chunks=chunks)
        write(f"{root}/rectilinear/sharded", "f4", data, chunks=(1, 2), shards=[[4, 7], [2, 4, 6]])
        write(f"{root}/rectilinear/transposed", "f4", data, chunks=[[4, 7], [2, 4, 6]], filters=TransposeCodec(order=(1, 0)))


def fills(format):
    """Every type with special fill values; only one chunk is written."""
    region = (slice(0, 3), slice(0, 4))
    for name, dtype in FIXED.items():
        values = expectation.elements(dtype, (12,), seed=1)
        for index, fill in enumerate(values[: 3 if name not in ("f2", "f4", "f8", "c8", "c16") else 12]):
            write(f"v{format}/fills/{name}/{index}", dtype, expectation.elements(dtype, SHAPE), region=region, fill_value=fill)
    for index, fill in enumerate(["", "text", "é\0中😀"]):
        write(f"v{format}/fills/string/{index}", VariableLengthUTF8(), expectation.strings(SHAPE), region=region, fill_value=fill)
        write(f"v{format}/fills/bytes/{index}", VariableLengthBytes(), expectation.byte_strings(SHAPE), region=region, fill_value=fill.encode())
        write(f"v{format}/fills/utf32/{index}", FixedLengthUTF32(length=4), expectation.elements("<U4", SHAPE), region=region, fill_value=fill[:4].rstrip("\0"))


def edited_fills():
    """Forms of fill values that zarr-python reads, written by hand."""
    forms = {
        "f2": ["NaN", "Infinity", "-Infinity", "0x7e01", "0xfc00", "0x8000", 1, -0.0, 1e-7],
        "f4": ["NaN", "Infinity", "-Infinity", "0x7fc00001", "0xffc00000", "0x7fa00000", "0x00000001", 1, 0.1],
        "f8": ["NaN", "Infinity", "-Infinity", "0x7ff8000000000001", "0xfff8000000000000", 1, 0.1, 1e308, "0x3ff0000000000000"],
        "c8": [["NaN", "Infinity"], ["0x7fc00001", "-Infinity"], [1, -0.5]],
        "c16": [["NaN", "Infinity"], ["0x7ff8000000000001", 0.1], [1, 2]],
        "u8": [2**64 - 1, 2**63],
        "i8": [-(2**63), 2**53 + 1],
        "bool": [True, False],
        "S5": ["YWJj", ""],
        "V7": [[1, 2, 3, 4, 5, 6, 7], "AQIDBAUGBw=="],
        "datetime_ns": ["NaT", 0, -1, 2**62],
        "timedelta_25s": ["NaT", 0, -1, 2**62],
    }
    for name, values in forms.items():
        for index, value in enumerate(values):
            path = f"v3/fills_by_hand/{name}/{index}"
            (store / path).mkdir(parents=True)
            array = zarr.create_array(store / path, shape=SHAPE, chunks=CHUNKS, dtype=FIXED[name], overwrite=True)
            array[0:3, 0:4] = expectation.elements(FIXED[name], (3, 4))
            with_fill(path, value)


def raw_bits():
    """The data types `r8`, `r16` … of the specification, for which zarr-python has no name."""
    for name, data_type in {"V7": "r56", "V1": "r8", "u2": "r16"}.items():
        path = f"v3/raw_bits/{name}"
        dtype = FIXED[name]
        array = zarr.create_array(store / path, shape=SHAPE, chunks=CHUNKS, dtype=dtype, overwrite=True)
        array[...] = data = expectation.elements(dtype, SHAPE)
        document = json.loads((store / path / "zarr.json").read_text())
        document.update(data_type=data_type, fill_value=[0] * data.dtype.itemsize)
        document["codecs"] = [codec for codec in document["codecs"] if codec["name"] != "bytes"]
        document["codecs"].insert(0, {"name": "bytes"})
        (store / path / "zarr.json").write_text(json.dumps(document))
        # These are the written bytes.
        notes.note(path, data.view(f"V{data.dtype.itemsize}"))


COMPRESSORS_V2 = {
    "none": None,
    "zlib": numcodecs.Zlib(level=1),
    "gzip": numcodecs.GZip(level=1),
    "zstd": numcodecs.Zstd(level=1),
    "bz2": numcodecs.BZ2(level=1),
    "lzma": numcodecs.LZMA(preset=1),
    "lz4": numcodecs.LZ4(),
    "blosc": numcodecs.Blosc(),
}
FILTERS_V2 = {
    "shuffle": [numcodecs.Shuffle(elementsize=4)],
    "crc32": [numcodecs.CRC32()],
    "crc32c": [numcodecs.CRC32C()],
    "adler32": [numcodecs.Adler32()],
    "fletcher32": [numcodecs.Fletcher32()],
    "jenkins": [numcodecs.JenkinsLookup3()],
}


def v2():
    types = {**FIXED, **{f"be_{name}": np.dtype(dtype).newbyteorder(">") for name, dtype in FIXED.items() if name[-1] in "2468" or name in ("U4", "struct", "nested", "datetime_ns")}}
    for name, dtype in types.items():
        data = expectation.elements(dtype, SHAPE)
        for codec, compressor in COMPRESSORS_V2.items():
            if name.startswith(("datetime_", "timedelta_")) and codec not in ("none", "blosc"):
                continue
            write(f"v2/types/{name}/{codec}", dtype, data, compressors=compressor)
        for codec, filters in FILTERS_V2.items():
            if not name.startswith(("datetime_", "timedelta_")):
                write(f"v2/types/{name}/{codec}", dtype, data, filters=filters, compressors=None)
        write(f"v2/types/{name}/null_fill", dtype, data, region=(slice(0, 3), slice(0, 4)), fill_value=None)
    for name, (dtype, make) in VARIABLE.items():
        for codec, compressor in COMPRESSORS_V2.items():
            write(f"v2/types/{name}/{codec}", dtype, make(SHAPE), compressors=compressor)


types_and_codecs()
array_codecs()
shards()
for format in (2, 3):
    layouts(format)
    fills(format)
edited_fills()
raw_bits()
v2()
notes.close()
