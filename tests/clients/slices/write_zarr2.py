"""Writes everything that zarr-python 2 supports, in v2 and in the 2020 draft of v3:

    write_zarr2.py STORE NOTES [ONE_IN]

STORE is a directory for the arrays, NOTES one for the expected elements, see expectation.py; one in
ONE_IN arrays is written. The draft's arrays are
in STORE/draft.
"""

import json
import os
import pathlib
import sys
import types
import warnings

os.environ["ZARR_V3_EXPERIMENTAL_API"] = os.environ["ZARR_V3_SHARDING"] = "1"

import numcodecs
import numpy as np
import zarr
from zarr._storage.v3_storage_transformers import ShardingStorageTransformer

import expectation

# With threads, blosc orders its blocks arbitrarily.
numcodecs.blosc.use_threads = False
# It searches its own tests for storage transformers too, which requires pytest.
sys.modules["zarr.tests.test_storage_v3"] = types.SimpleNamespace(DummyStorageTransfomer=ShardingStorageTransformer)

# Integers scaled as complex numbers; times through filters for numbers; texts that are not UTF-8.
store, notes = pathlib.Path(sys.argv[1]), expectation.Notes(sys.argv[2], f"zarr-python {zarr.__version__}", *sys.argv[3:4])
warnings.simplefilter("ignore")
old, draft = zarr.NestedDirectoryStore(str(store)), zarr.DirectoryStoreV3(str(store / "draft"))
flat = zarr.DirectoryStore(str(store))

SHAPE, CHUNKS = (5, 7), (3, 4)
FIRST = (slice(0, 3), slice(0, 4))
UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as")
NUMBERS = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
FIELDS = {
    "struct": [("a", "<i2"), ("b", "<f8"), ("c", "S3"), ("d", "<U2"), ("e", "V3")],
    "times": [("a", "<M8[s]"), ("b", ">m8[ns]"), ("c", "u1")],
    "big": [("a", ">i2"), ("b", ">f8"), ("d", ">U2")],
    "mixed": [("a", "<i4"), ("b", ">i4"), ("c", "<u2"), ("d", ">c8"), ("e", "?")],
    "nested": [("x", "<u4"), ("in", [("p", "<c8"), ("q", "?"), ("deep", [("r", ">f2")])]), ("y", "<i8")],
    "subarray": [("a", "<i4", (2, 3)), ("b", ">f4", (2,)), ("c", "S2")],
}


def both_orders(dtype):
    for dtype in dict.fromkeys([np.dtype(dtype), np.dtype(dtype).newbyteorder(">")]):
        yield name_of(dtype), dtype


def name_of(dtype):
    """A valid node name for a data type."""
    text = np.dtype(dtype).str.replace("|", "").replace("<", "le_").replace(">", "be_")
    return text.replace("[", "_").replace("]", "")


def all_types():
    for dtype in [*NUMBERS, "S1", "S5", "V1", "V7", "U1", "U4", "M8[ns]", "M8[10us]", "m8[25s]", "M8[D]", "m8[s]"]:
        yield from both_orders(dtype)
    for name, fields in FIELDS.items():
        yield name, np.dtype(fields)


BLOSCS = [(cname, shuffle) for cname in ("lz4", "lz4hc", "blosclz", "zstd", "zlib") for shuffle in (-1, 0, 1, 2)]
COMPRESSORS = {
    "none": None,
    "zlib": numcodecs.Zlib(level=1),
    "gzip": numcodecs.GZip(level=1),
    "zstd": numcodecs.Zstd(level=1),
    "zstd_checksum": numcodecs.Zstd(level=1, checksum=True),
    "bz2": numcodecs.BZ2(level=1),
    "lzma": numcodecs.LZMA(preset=1),
    "lzma_raw": numcodecs.LZMA(format=3, filters=[{"id": 3, "dist": 4}, {"id": 33, "preset": 1}]),
    "lzma_alone": numcodecs.LZMA(format=2),
    "lz4": numcodecs.LZ4(acceleration=2),
    "blosc": numcodecs.Blosc(),
}
BLOSC = {f"blosc_{cname}_{shuffle}": numcodecs.Blosc(cname=cname, shuffle=shuffle) for cname, shuffle in BLOSCS}
BLOSC["blosc_store"] = numcodecs.Blosc(clevel=0)
BLOSC["blosc_blocks"] = numcodecs.Blosc(cname="zstd", clevel=9, shuffle=2, blocksize=32)
CHECKSUMS = {
    "crc32": numcodecs.CRC32(),
    "crc32_end": numcodecs.CRC32(location="end"),
    "crc32c": {"id": "crc32c"},
    "crc32c_start": {"id": "crc32c", "location": "start"},
    "adler32": numcodecs.Adler32(),
    "adler32_end": numcodecs.Adler32(location="end"),
    "fletcher32": numcodecs.Fletcher32(),
    "jenkins": numcodecs.JenkinsLookup3(),
    "jenkins_initval": numcodecs.JenkinsLookup3(initval=7),
}
SHUFFLES = {"shuffle_2": numcodecs.Shuffle(elementsize=2), "shuffle_4": numcodecs.Shuffle(), "shuffle_8": numcodecs.Shuffle(elementsize=8)}


def write(name, data, kind=None, region=None, whole=True, chunks=None, shape=None, **options):
    """Writes an array; `whole` is true if all of it is defined, and not only the written part."""

    def attempt():
        if "filters" in options:
            # The codec's constructor may reject a configuration.
            options["filters"] = [numcodecs.get_codec(dict(codec)) if isinstance(codec, dict) else codec for codec in options["filters"]]
        if name.startswith("draft/"):
            place = {"store": draft, "path": name.removeprefix("draft/"), "zarr_version": 3}
        else:
            place = {"store": old if options.get("dimension_separator") == "/" else flat, "path": name}
        arguments = {"dtype": data.dtype, "fill_value": 0 if data.dtype.kind in "?biufc" else None, **options}
        array = zarr.create(shape=shape or data.shape, chunks=chunks or CHUNKS[: data.ndim], **place, **arguments)

        def correct(found):
            if data.dtype.kind == "c" and region and whole:
                # It computes these from their parts, which transfers NaN and the sign of zero between the parts.
                found[outside(region, found.shape)] = document_value(arguments["fill_value"], data.dtype)
            return found

        def read():
            found = read_back(name)
            # The draft's document represents raw bits like a struct of one unnamed field, and they read back as one.
            return found.view(data.dtype) if data.dtype.kind == "V" and data.dtype.names is None else found

        def erase():
            expectation.erase_chunks(store / name.replace("draft/", "draft/data/root/", 1))

        bounds = None if whole else [part.indices(extent)[:2] for part, extent in zip(region, data.shape)]
        notes.note_all(name, array.__setitem__, read, erase, data, region or ..., correct, kind=kind, region=bounds)

    notes.attempt(name, attempt)


def read_back(name):
    if name.startswith("draft/"):
        return zarr.open_array(draft, path=name.removeprefix("draft/"), mode="r", zarr_version=3)[...]
    return zarr.open_array(flat, path=name, mode="r")[...]


def outside(region, shape):
    """A mask of the unwritten elements."""
    mask = np.ones(shape, bool)
    mask[region] = False
    return mask


def document_value(fill, dtype):
    """A complex number as written in documents: NaN always has the default payload."""
    parts = np.array([fill.real, fill.imag], f"f{dtype.itemsize // 2}")
    parts[np.isnan(parts)] = np.nan
    return parts.view(f"c{dtype.itemsize}")[0]


def v2_types_and_codecs():
    for name, dtype in all_types():
        data = expectation.elements(dtype, SHAPE)
        for codec, compressor in COMPRESSORS.items():
            write(f"v2/types/{name}/{codec}", data, compressor=compressor)
        if name in ("u1", "le_i2", "be_f4", "le_f8", "le_c16", "S5", "struct"):
            for codec, compressor in BLOSC.items():
                write(f"v2/types/{name}/{codec}", data, compressor=compressor)
        for codec, filter in (CHECKSUMS | SHUFFLES).items():
            write(f"v2/types/{name}/{codec}", data, filters=[filter], compressor=None)
        write(f"v2/types/{name}/shuffle_zlib_crc32", data, filters=[numcodecs.Shuffle(), numcodecs.Zlib(), numcodecs.CRC32()], compressor=numcodecs.BZ2())
        write(f"v2/types/{name}/order_F", expectation.elements(dtype, (9, 10)), order="F")
        write(f"v2/types/{name}/null_fill", data, region=FIRST, whole=False, fill_value=None)
    for kind in "Mm":
        for unit in UNITS:
            write(f"v2/types/{kind}8_{unit}/blosc", expectation.elements(f"<{kind}8[{unit}]", SHAPE))
        write(f"v2/types/{kind}8_generic/blosc", expectation.elements(f"<{kind}8", SHAPE))
    write("v2/types/S0/blosc", np.zeros(SHAPE, "S0"))
    write("v2/types/subdtype/blosc", expectation.elements("<i4", (*SHAPE, 2)), dtype=np.dtype(("<i4", (2,))), shape=SHAPE, chunks=CHUNKS)


def v2_filters():
    for name, dtype in all_types():
        if dtype.kind not in "biufcmM":
            continue
        text = dtype.str
        data = expectation.elements(dtype, SHAPE)
        small = (np.arange(35).reshape(SHAPE) * 3 % 50).astype(dtype)
        tame = np.linspace(-40, 40, 35).reshape(SHAPE).astype(dtype) if dtype.kind == "f" else small
        for filter, codec, values in [
            ("delta", numcodecs.Delta(dtype=text), data),
            ("delta_as", numcodecs.Delta(dtype=text, astype="<i8"), small),
            ("delta_big", numcodecs.Delta(dtype=text, astype=">i4"), small),
            ("delta_narrow", numcodecs.Delta(dtype=text, astype="i1"), small),
            ("astype_f8", numcodecs.AsType(encode_dtype="<f8", decode_dtype=text), data),
            ("astype_f4", numcodecs.AsType(encode_dtype=">f4", decode_dtype=text), tame),
            ("astype_i2", numcodecs.AsType(encode_dtype=">i2", decode_dtype=text), small),
            ("astype_u1", numcodecs.AsType(encode_dtype="u1", decode_dtype=text), small),
            ("astype_c16", numcodecs.AsType(encode_dtype="<c16", decode_dtype=text), data),
            ("fixed_i2", numcodecs.FixedScaleOffset(offset=3, scale=10, dtype=text, astype="<i2"), tame),
            ("fixed_u1", numcodecs.FixedScaleOffset(offset=-50, scale=2.5, dtype=text, astype="u1"), tame),
            ("fixed_big", numcodecs.FixedScaleOffset(offset=1000.5, scale=1e-3, dtype=text, astype=">i8"), tame),
            ("fixed_same", numcodecs.FixedScaleOffset(offset=5, scale=3, dtype=text), tame),
            ("quantize_0", {"id": "quantize", "digits": 0, "dtype": text}, tame),
            ("quantize_2", {"id": "quantize", "digits": 2, "dtype": text}, data),
            ("quantize_f4", {"id": "quantize", "digits": 1, "dtype": text, "astype": "<f4"}, tame),
            ("bitround_5", numcodecs.BitRound(keepbits=5), data),
            ("packbits", numcodecs.PackBits(), data),
        ]:
            write(f"v2/filters/{name}/{filter}", values, filters=[codec])
        write(f"v2/filters/{name}/delta_shuffle_lzma", data, filters=[numcodecs.Delta(dtype=text), numcodecs.Shuffle(elementsize=dtype.itemsize)], compressor=numcodecs.LZMA(preset=1))
        write(f"v2/filters/{name}/delta_F", expectation.elements(dtype, (9, 10)), filters=[numcodecs.Delta(dtype=text)], order="F")
    labels = ["alpha", "", "größe", "中😀"]
    texts = np.random.default_rng(5).choice([*labels, "unknown"], SHAPE)
    for name, dtype in {"U8": "<U8", "be_U8": ">U8", "object": object}.items():
        for astype in ("u1", "<i2", ">u4"):
            categorize = numcodecs.Categorize(labels, dtype=dtype, astype=astype)
            options = {"object_codec": categorize, "kind": "string"} if dtype is object else {"filters": [categorize]}
            write(f"v2/filters/categorize/{name}_{astype.replace('>', 'be_').replace('<', 'le_')}", texts.astype(dtype), **options)


def v2_objects():
    strings = expectation.strings(SHAPE)
    byte_strings = expectation.byte_strings(SHAPE)
    values = [None, True, -1, 1.5, "é", "", [1, [2]], {"a": None, "b": [{}]}]
    objects = expectation.objects([values[index % len(values)] for index in range(35)], SHAPE)
    for codec, compressor in {**COMPRESSORS, "blosc_zstd": numcodecs.Blosc(cname="zstd", shuffle=2)}.items():
        options = {"compressor": compressor, "dtype": object}
        write(f"v2/objects/utf8/{codec}", strings, "string", object_codec=numcodecs.VLenUTF8(), **options)
        write(f"v2/objects/bytes/{codec}", byte_strings, "bytes", object_codec=numcodecs.VLenBytes(), **options)
        for dtype in ("<i4", ">i4", "<f8", "u1", "<M8[ns]"):
            arrays = expectation.inner_arrays(dtype, SHAPE)
            write(f"v2/objects/array_{name_of(dtype)}/{codec}", arrays, "arrays", object_codec=numcodecs.VLenArray(dtype), **options)
        write(f"v2/objects/json/{codec}", objects, "objects", object_codec=numcodecs.JSON(), **options)
        write(f"v2/objects/json_text/{codec}", strings, "objects", object_codec=numcodecs.JSON(), **options)
    write("v2/objects/json_utf16", strings, "objects", dtype=object, object_codec=numcodecs.JSON(encoding="utf-16"))
    for order in "CF":
        write(f"v2/objects/utf8_{order}", expectation.strings((9, 10)), "string", dtype=object, object_codec=numcodecs.VLenUTF8(), order=order)
    write("v2/objects/utf8_crc32", strings, "string", dtype=object, object_codec=numcodecs.VLenUTF8(), filters=[numcodecs.CRC32()])
    for name, fill in {"empty": "", "text": "fill é", "null": None, "zero": 0}.items():
        write(f"v2/objects/fill_{name}", strings, "string", dtype=object, object_codec=numcodecs.VLenUTF8(), region=FIRST, whole=name != "null", fill_value=fill)
        if isinstance(fill, str):
            write(f"v2/objects/fill_bytes_{name}", byte_strings, "bytes", dtype=object, object_codec=numcodecs.VLenBytes(), region=FIRST, fill_value=fill.encode())
    write("v2/objects/scalar", expectation.strings(()), "string", dtype=object, object_codec=numcodecs.VLenUTF8())


def layouts(root, **options):
    for name, (shape, chunks) in expectation.LAYOUTS.items():
        for dtype in ("<i4", "<f8"):
            for order in "CF":
                for separator, word in ((".", "dot"), ("/", "slash")):
                    data = expectation.elements(dtype, shape)
                    write(f"{root}/{name}/{dtype[1:]}_{order}_{word}", data, chunks=chunks, order=order, dimension_separator=separator, **options)
    data = expectation.elements("<f4", (11, 12))
    for name, region in {"none": (slice(0, 0), slice(0, 0)), "first": FIRST, "middle": (slice(4, 5), slice(5, 9))}.items():
        write(f"{root}/missing/{name}", data, region=region, fill_value=2.5, **options)


def fills(root):
    for dtype in [*NUMBERS, "S5", "V7", "U4", "M8[ns]", "M8[10us]", "m8[25s]"]:
        for name, dtype in both_orders(dtype):
            values = expectation.elements(dtype, (12,), seed=1)
            for index, fill in enumerate(values[: 12 if dtype.kind in "fc" else 3]):
                write(f"{root}/{name}/{index}", expectation.elements(dtype, SHAPE), region=FIRST, fill_value=fill.item() if dtype.kind in "biufc" else fill)
    for name, fields in FIELDS.items():
        dtype = np.dtype(fields)
        write(f"{root}/{name}", expectation.elements(dtype, SHAPE), region=FIRST, fill_value=expectation.elements(dtype, (1,), seed=1)[0])
        write(f"{root}/{name}_zero", expectation.elements(dtype, SHAPE), region=FIRST, fill_value=0)


def v2_fills_by_hand():
    """Forms of fill values that zarr-python reads, written by hand."""
    forms = {
        "<f4": ["NaN", "Infinity", "-Infinity", 1, -0.0, 0.1],
        ">f8": ["NaN", "Infinity", "-Infinity", 1, 1e308],
        "<c8": [["NaN", "Infinity"], [1, -0.5]],
        "<u8": [2**64 - 1],
        "|b1": [True, False, 1],
        "|S5": ["YWJj", ""],
        "<i2": [-7, 3.0],
    }
    for dtype, values in forms.items():
        for index, value in enumerate(values):
            name = f"v2/fills_by_hand/{dtype[1:]}/{index}"
            array = zarr.create(SHAPE, chunks=CHUNKS, dtype=dtype, store=flat, path=name)
            array[FIRST] = expectation.elements(dtype, (3, 4))
            path = store / name / ".zarray"
            path.write_text(json.dumps(json.loads(path.read_text()) | {"fill_value": value}))
            notes.attempt(name, lambda: notes.note(name, read_back(name)))


def draft_types_and_codecs():
    compressors = {name: COMPRESSORS[name] for name in ("none", "zlib", "gzip", "zstd", "bz2", "lzma", "lz4", "blosc")}
    for name, dtype in all_types():
        data = expectation.elements(dtype, SHAPE)
        for codec, compressor in compressors.items():
            write(f"draft/types/{name}/{codec}", data, compressor=compressor)
        if name in ("u1", "le_i2", "be_f4", "le_f8"):
            for codec, compressor in BLOSC.items():
                write(f"draft/types/{name}/{codec}", data, compressor=compressor)
        for order in "CF":
            write(f"draft/types/{name}/order_{order}", expectation.elements(dtype, (9, 10)), order=order)
        for chunks, per_shard in (((2, 3), (2, 2)), ((3, 2), (1, 3)), ((9, 10), (1, 1))):
            sharded = {"storage_transformers": [ShardingStorageTransformer("indexed", chunks_per_shard=per_shard)]}
            write(f"draft/types/{name}/sharded_{per_shard[0]}{per_shard[1]}", expectation.elements(dtype, (9, 10)), chunks=chunks, **sharded)
        write(f"draft/types/{name}/null_fill", data, region=FIRST, whole=False, fill_value=None)
    for name, filter in (CHECKSUMS | SHUFFLES | {"delta": numcodecs.Delta(dtype="<i4")}).items():
        write(f"draft/filters/{name}", expectation.elements("<i4", SHAPE), filters=[filter])
    write("draft/objects/utf8", expectation.strings(SHAPE), "string", dtype=object, object_codec=numcodecs.VLenUTF8())
    write("draft/objects/bytes", expectation.byte_strings(SHAPE), "bytes", dtype=object, object_codec=numcodecs.VLenBytes())


def draft_shards():
    data = expectation.elements("<i4", (11, 13))
    for order in "CF":
        for separator, word in ((".", "dot"), ("/", "slash")):
            for codec in ("none", "gzip", "blosc"):
                sharded = [ShardingStorageTransformer("indexed", chunks_per_shard=(2, 3))]
                options = {"order": order, "dimension_separator": separator, "compressor": COMPRESSORS[codec], "chunks": (2, 2)}
                name = f"draft/shards/{codec}_{order}_{word}"
                write(name, data, storage_transformers=sharded, **options)
                write(f"{name}_sparse", data, storage_transformers=sharded, region=(slice(3, 4), slice(3, 9)), fill_value=99, **options)
    line = [ShardingStorageTransformer("indexed", chunks_per_shard=(3,))]
    write("draft/shards/line", expectation.elements("<f8", (17,)), chunks=(2,), storage_transformers=line)
    cube = [ShardingStorageTransformer("indexed", chunks_per_shard=(2, 1, 3))]
    write("draft/shards/cube", expectation.elements("<u2", (7, 6, 9)), chunks=(2, 3, 2), storage_transformers=cube)


v2_types_and_codecs()
v2_filters()
v2_objects()
layouts("v2/layouts")
fills("v2/fills")
v2_fills_by_hand()
draft_types_and_codecs()
draft_shards()
layouts("draft/layouts")
fills("draft/fills")
notes.close()
