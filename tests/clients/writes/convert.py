"""Converts the arrays of mirror.py to v3, so that compare.py can read them as such:

    convert.py URL NOTES [draft]

Arrays of v2 are converted in place, over the same chunks, one by one, since v3 does not support all of their data
types and codecs. A draft hierarchy is copied completely, to /converted. The new documents must have the codecs and
attributes of the requested ones. NOTES/mirrored.json lists the converted arrays with their current documents. The
last line contains the counts, as JSON.
"""

import json
import pathlib
import sys
from collections import Counter

import numpy as np

import rules
from api import Api, ProblemError

url, notes, draft = sys.argv[1], pathlib.Path(sys.argv[2]), "draft" in sys.argv[3:]
api = Api(url)
rejected, done = Counter(), Counter()
SHUFFLES = ["noshuffle", "shuffle", "bitshuffle"]


def convert(path, **query):
    """Converts a node; returns the error if it is rejected."""
    try:
        report = json.loads(api.expect("POST", f"/node/{path}", convert="v3", **query)[2])
    except ProblemError as rejection:
        assert rejection.kind == "unconvertible", rejection
        return str(rejection)
    done.update(nodes=report["nodes"], chunks=report["chunks"])
    return None


def codecs_of(document):
    """The v3 codecs equivalent to a v2 document: their names and configurations."""
    compressor = [document["compressor"]] if document["compressor"] else []
    numcodecs = [dict(codec) for codec in (document["filters"] or []) + compressor]
    return [codec_of(codec.pop("id"), codec) for codec in numcodecs]


def codec_of(id, configuration):
    # In v3 only the codec `bytes` has a byte order.
    configuration = {key: value.replace(">", "<") if "type" in key else value for key, value in configuration.items()}
    match id:
        case "zstd":
            return id, {"checksum": False} | configuration
        case "blosc" | "gzip" | "vlen-utf8" | "vlen-bytes":
            return id, configuration
        case "crc32c" if configuration.get("location", "end") == "end":
            return id, {}
    return f"numcodecs.{id}", configuration


def codecs_in(document):
    """The codecs of a v3 document, without those that v2 expresses by data type and order."""
    found = []
    for codec in document["codecs"]:
        id, configuration = rules.name(codec), dict(rules.configuration(codec))
        if id == "blosc":
            configuration.pop("typesize", None)
            configuration["shuffle"] = SHUFFLES.index(configuration["shuffle"])
        if id not in ("bytes", "transpose"):
            found.append((id, configuration))
    return found


def is_equal(found, asked, document):
    """True if both have the same codecs; the shuffle that v2 leaves to blosc is ignored."""
    chosen = 2 if item_size(document["dtype"]) == 1 else 1
    choose = lambda configuration: configuration | ({"shuffle": chosen} if configuration.get("shuffle") == -1 else {})
    return found == [(id, choose(configuration)) for id, configuration in asked]


def item_size(dtype):
    return np.dtype([tuple(field) for field in dtype] if isinstance(dtype, list) else dtype).itemsize


entries = json.loads((notes / "mirrored.json").read_text())
if draft:
    error = convert("draft", target="/converted")
    assert error is None, error
converted, without, different = [], Counter(), []
for entry in entries:
    asked = entry["document"]
    if (why := None if draft else rules.reason(rules.converted, asked, convert(entry["name"]))) is not None:
        without[why] += 1
        continue
    place = f"converted/{entry['name']}" if draft else entry["name"]
    document = json.loads(api.expect("GET", f"/store/{place}/zarr.json")[2])
    wrong = [what for what in ("shape", "attributes") if document[what] != asked[what]]
    if not is_equal(codecs_in(document), codecs_of(asked), asked):
        wrong.append(f"{codecs_in(document)} instead of {codecs_of(asked)}")
    if wrong:
        different.append(f"different: {entry['name']} {wrong}")
    converted.append(entry | {"format": 3, "document": document})
(notes / "mirrored.json").write_text(json.dumps(converted))
print("\n".join(different[:5]))
report = {"arrays": len(converted), "nodes": done["nodes"], "chunks copied": done["chunks"], "rejected": dict(sorted(without.items()))}
print(json.dumps(report, ensure_ascii=False))
sys.exit(1 if different else 0)
