"""Compares the stored data of the arrays of mirror.py with the data of the original writer:

    stored.py STORE NOTES DIRECTORY [draft]

STORE is the writer's, NOTES are those of mirror.py, and DIRECTORY contains the server's exported data. The documents
must be the requested ones. The same chunks must exist, with the same bytes; for compressors whose output may differ,
the bytes decompressed by numcodecs must be equal. The last line contains the counts, as JSON.
"""

import json
import math
import pathlib
import re
import struct
import sys
from collections import Counter

import numcodecs

import rules

store, notes, exported, draft = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), "draft" in sys.argv[4:]
# Compressors whose output may differ; the header of gzip contains the time.
COMPRESSORS = {"blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd"}
CHECKSUMS = {"adler32", "crc32", "crc32c", "fletcher32", "jenkins_lookup3"}
MISSING = 2**64 - 1
METADATA = {"zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata"}


class Differs(Exception):
    """A difference."""


def numbers(key):
    """The numbers in a chunk key, for any separator."""
    return tuple(map(int, re.findall(r"\d+", key)))


def chunks(directory):
    """The chunks of an array in a directory, by the numbers in their keys."""
    files = [path for path in directory.rglob("*") if path.is_file() and path.name not in METADATA] if directory.is_dir() else []
    return {numbers(str(path.relative_to(directory))): path.read_bytes() for path in files}


def document_differs(entry):
    """The differences between the stored and the requested document."""
    name, asked = entry["name"], entry["document"]
    if draft:
        return draft_differs(json.loads((exported / f"meta/root/{name}.array.json").read_text()), asked)
    if entry["format"] == 3:
        found = json.loads((exported / name / "zarr.json").read_text())
    else:
        attributes = exported / name / ".zattrs"
        found = json.loads((exported / name / ".zarray").read_text())
        found["attributes"] = json.loads(attributes.read_text()) if attributes.exists() else {}
    normalised, reasons = normal(asked, found)
    # As text, since 1, 1.0 and True are equal in Python.
    differing = [key for key in {**normalised, **found} if json.dumps(normalised.get(key), sort_keys=True) != json.dumps(found.get(key), sort_keys=True)]
    if differing:
        raise Differs(", ".join(f"{key} is {json.dumps(found.get(key))}, not {json.dumps(normalised.get(key))}" for key in differing))
    return reasons


def normal(asked, found):
    """The document after the server's documented normalization, and the reason why it differs from the requested one.
    """
    wanted, reasons = dict(asked), []
    if asked["zarr_format"] == 2 and "dimension_separator" not in asked:
        wanted["dimension_separator"] = "."
        reasons.append("with dimension_separator")
    if asked["zarr_format"] == 3 and "attributes" not in asked:
        wanted["attributes"] = {}
        reasons.append("with attributes")
    codecs = asked.get("codecs", [])
    if any(bare(codec) and not bare(other) for codec, other in zip(codecs, found.get("codecs", []))):
        little = {"name": "bytes", "configuration": {"endian": "little"}}
        wanted["codecs"] = [little if bare(codec) and not bare(other) else codec for codec, other in zip(codecs, found["codecs"], strict=True)]
        reasons.append("with the byte order of the codec bytes")
    return wanted, reasons


def bare(codec):
    """True if it is the codec `bytes` without a byte order."""
    return rules.name(codec) == "bytes" and not rules.configuration(codec)


def draft_differs(found, asked):
    """Compares the draft's document with that of v2."""
    codec = dict(asked["compressor"]) if asked["compressor"] else None
    compressor = found.get("compressor")
    attributes = dict(found["attributes"])
    filters = attributes.pop("filters", None)
    pairs = {
        "shape": (found["shape"], asked["shape"]),
        "chunks": (found["chunk_grid"]["chunk_shape"], asked["chunks"]),
        "order": (found["chunk_memory_layout"], asked["order"] if len(asked["shape"]) > 1 else "C"),
        "attributes": (attributes, asked["attributes"]),
        "filters": (filters or [], asked["filters"] or []),
        "compressor": (compressor and compressor["configuration"], codec and {key: value for key, value in codec.items() if key != "id"}),
        "codec": (compressor and compressor["codec"].split("/")[-2], codec and codec["id"]),
    }
    differing = [f"{what} is {json.dumps(is_)}, not {json.dumps(wanted)}" for what, (is_, wanted) in pairs.items() if json.dumps(is_, sort_keys=True) != json.dumps(wanted, sort_keys=True)]
    if differing:
        raise Differs(", ".join(differing))
    return ["in order C, since there is one alone"] if found["chunk_memory_layout"] != asked["order"] else []


def byte_codecs(document):
    """The bytes-to-bytes codecs of a chunk, the outermost last: their numcodecs ids and configurations. Array codecs
    end the list.
    """
    if document["zarr_format"] == 2:
        codecs = [*(document["filters"] or []), *([document["compressor"]] if document["compressor"] else [])]
        codecs = [(codec["id"], {key: value for key, value in codec.items() if key != "id"}) for codec in codecs]
    else:
        codecs = [(rules.name(codec).removeprefix("numcodecs."), rules.configuration(codec)) for codec in document["codecs"]]
    return codecs


def inner(document, key):
    """The extents of a v3 chunk."""
    grid = rules.configuration(document["chunk_grid"])
    if rules.name(document["chunk_grid"]) == "regular":
        return grid["chunk_shape"]
    edges = [[size for run in axis for size in (run[:1] * run[1] if isinstance(run, list) else [run])] if isinstance(axis, list) else None for axis in grid["chunk_shapes"]]
    return [axis[at] if axis else size for axis, size, at in zip(edges, grid["chunk_shapes"], key)]


def decoded(id, configuration, data):
    """The bytes decoded by numcodecs with the requested codec."""
    if id == "blosc":
        # Its header describes the data completely, and v3 has other names for the options.
        configuration = {}
    return bytes(numcodecs.get_codec({"id": id, **configuration}).decode(data))


def compressors(codecs):
    """The compressors among codecs, including those within shards."""
    for id, configuration in codecs:
        if id in COMPRESSORS:
            yield id
        elif id == "sharding_indexed":
            yield from compressors((rules.name(codec).removeprefix("numcodecs."), rules.configuration(codec)) for codec in configuration["codecs"])


def compare(found, wanted, codecs, shape, how):
    """Compares two chunks, outermost codec first; `how` collects the compressors that had to be undone. Compressed
    bytes are never compared: their equality is a coincidence.
    """
    if found == wanted and not any(compressors(codecs)):
        return
    if not codecs:
        raise Differs(f"{found.hex():.80} instead of {wanted.hex():.80}")
    *rest, (id, configuration) = codecs
    if id == "blosc" and configuration.get("cname") == "snappy":
        how.add("snappy, which numcodecs does not have")
    elif id in COMPRESSORS:
        how.add(id)
        compare(decoded(id, configuration, found), decoded(id, configuration, wanted), rest, shape, how)
    elif id in CHECKSUMS or id == "shuffle" and len(found) != len(wanted):
        # Compressed bytes that may differ.
        compare(decoded(id, configuration, found), decoded(id, configuration, wanted), rest, shape, how)
    elif id == "sharding_indexed":
        # They are in arbitrary order.
        inmost = [(rules.name(codec).removeprefix("numcodecs."), rules.configuration(codec)) for codec in configuration["codecs"]]
        parts = [shard(data, configuration, shape) for data in (found, wanted)]
        for one, other in zip(*parts, strict=True):
            if (one is None) != (other is None):
                raise Differs("an inner chunk is missing")
            if one is not None:
                compare(one, other, inmost, configuration["chunk_shape"], how)
    else:
        raise Differs(f"{id}: {found.hex():.80} instead of {wanted.hex():.80}")


def shard(data, configuration, shape):
    """The inner chunks of a shard, in index order; checks the location of the index."""
    count = math.prod(-(-extent // size) for extent, size in zip(shape, configuration["chunk_shape"]))
    index_codecs = configuration["index_codecs"]
    order = ">" if rules.configuration(index_codecs[0]).get("endian") == "big" else "<"
    length = 16 * count + (4 if "crc32c" in map(rules.name, index_codecs) else 0)
    index = data[:length] if configuration.get("index_location") == "start" else data[-length:]
    if length > 16 * count:
        numcodecs.get_codec({"id": "crc32c", "location": "end"}).decode(index)
    spans = struct.unpack(f"{order}{2 * count}Q", index[: 16 * count])
    return [None if offset == MISSING else data[offset : offset + size] for offset, size in zip(spans[::2], spans[1::2])]


def array(entry, counts):
    """Compares one array."""
    name, document = entry["name"], entry["document"]
    for why in document_differs(entry):
        counts[f"documents {why}"] += 1
    found, wanted = chunks(exported / ("data/root" if draft else "") / name), chunks(store / name)
    if document["zarr_format"] == 2 and not document["shape"] and draft:
        found = {(0,): value for value in found.values()}
    # For texts, a numeric fill value is equivalent to none.
    if entry["format"] == 2 and (document["fill_value"] is None or document["dtype"] == "|O" and document["fill_value"] == 0):
        # Nothing defines the elements of a missing chunk, so all written chunks are stored.
        more = set(found) - set(wanted)
        counts["chunks without a fill value that only the server stores"] += len(more)
        found = {key: value for key, value in found.items() if key not in more}
    if set(found) - set(wanted):
        raise Differs(f"chunks {sorted(set(found) - set(wanted))} are not in the original")
    if more := set(wanted) - set(found):
        # Whether these contain only the fill value depends on the elements, which other scripts compare.
        counts["chunks that only the original stores"] += len(more)
    if entry["format"] == 2 and re.search("[mM]8|[|]O", json.dumps(document["dtype"])) and document["fill_value"] in (None, 0):
        undefined = [key for key in found if any((at + 1) * size > extent for at, size, extent in zip(key, document["chunks"], document["shape"]))]
        counts["chunks of times and objects whose rest beyond the array is undefined"] += len(undefined)
        found = {key: value for key, value in found.items() if key not in undefined}
    hows = set()
    for key, chunk in found.items():
        how = set()
        shape = inner(document, key[-len(document["shape"]) :] if document["shape"] else ()) if document["zarr_format"] == 3 else None
        try:
            compare(chunk, wanted[key], byte_codecs(document), shape, how)
        except Differs as differs:
            raise Differs(f"chunk {key}: {differs}") from None
        hows |= how
        counts["chunks"] += 1
    counts["arrays byte for byte" if not hows else f"arrays without {', '.join(sorted(hows))}"] += 1


counts, different = Counter(), []
for entry in json.loads((notes / "mirrored.json").read_text()):
    try:
        array(entry, counts)
    except Differs as differs:
        different.append(f"different: {entry['name']} {differs}")
print("\n".join(line[:400] for line in different[: int(sys.argv[5]) if len(sys.argv) > 5 else 10]))
print(f"{len(different)} differ")
print(json.dumps(dict(sorted(counts.items()))))
sys.exit(1 if different else 0)
