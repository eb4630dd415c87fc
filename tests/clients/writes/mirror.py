"""Recreates the arrays of another library through /node, and writes their elements through /array:

    mirror.py URL STORE NOTES OUT [draft] [whole]

STORE and NOTES are the output of a writer of ../slices. Only the documents of STORE are read, and the elements of
NOTES. The arrays are created at the same paths, or with `draft` as a draft hierarchy at /draft. OUT/mirrored.json
lists the created arrays with the requested documents. With `whole`, nothing is appended. The last line contains the counts,
as JSON.
"""

import json
import pathlib
import sys
from collections import defaultdict

import numpy as np

import rules
import writing

import expectation  # of ../slices, which `writing` puts on the path
from api import Api, ProblemError

url, (store, notes, out) = sys.argv[1], map(pathlib.Path, sys.argv[2:5])
prefix, query = ("draft/", {"dialect": "draft"}) if "draft" in sys.argv[5:] else ("", {})
# The draft cannot express that unwritten elements are undefined.
declared = query | {"allow_lossy": True} if query else {}
api = Api(url)
generator = np.random.default_rng(20261122)
writer = writing.Writer(api, generator)
rejects = rules.converted if query else rules.none
rejected = defaultdict(list)


def document(name):
    """The node document of an array in a directory."""
    v3, v2 = store / name / "zarr.json", store / name / ".zarray"
    if v3.exists():
        return json.loads(v3.read_text())
    if not v2.exists():
        return None
    attributes = store / name / ".zattrs"
    return json.loads(v2.read_text()) | {"attributes": json.loads(attributes.read_text()) if attributes.exists() else {}}


def group(version):
    return {"zarr_format": version, "attributes": {}, "members": {}} | ({"node_type": "group"} if version == 3 else {})


def tree(documents, version):
    """One ZOM of arrays at paths."""
    root = group(version)
    for name, document in documents.items():
        *parents, last = name.split("/")
        node = root
        for parent in parents:
            node = node["members"].setdefault(parent, group(version))
        node["members"][last] = document
    return root


def declare(documents, at, version):
    """Declares arrays as one tree; if some are rejected, the others as one tree, and those one by one. Returns the
    number of accepted requests.
    """
    without = {name: document for name, document in documents.items() if any(rejects(document))}
    rest = {name: document for name, document in documents.items() if name not in without}
    if without:
        try:
            plant(documents, at, version)
            raise AssertionError(f"{at} was declared with {list(without)}")
        except ProblemError as rejection:
            assert rejection.kind == "unconvertible", rejection
    if rest:
        plant(rest, at, version)
    for name, document in without.items():
        one(name, document)
    return 2 + len(without) if without else 1


def plant(documents, at, version):
    api.declare(f"{prefix}{at}", tree({name.removeprefix(f"{at}/"): document for name, document in documents.items()}, version), **declared)


def one(name, document):
    """Declares an array that must be rejected."""
    error = None
    try:
        api.declare(f"{prefix}{name}", document, **declared)
    except ProblemError as rejection:
        assert rejection.kind == "unconvertible", rejection
        error = str(rejection)
    rejected[rules.reason(rejects, document, error)].append(name)


def start_of(document, shape):
    """The initial extent of arrays whose rest is appended: the axis and the length."""
    if not writing.is_regular(document) or writing.is_lossy(document) or not shape or 0 in shape or generator.random() > 0.25:
        return None
    if "whole" in sys.argv[5:]:
        return None
    axis = int(generator.integers(0, len(shape)))
    return axis, int(generator.integers(0, shape[axis]))


if query:
    api.declare("draft", group(3), **query)
entries = {}
for entry in json.loads((notes / "manifest.json").read_text()):
    if (found := document(entry["name"])) is None:
        continue
    entries[entry["name"]] = (entry, found)
    if "m8" in str(found.get("dtype")) and "delta" in json.dumps(found["filters"]):
        # NaT, which fills the rest of an edge chunk without a fill value, would be added to the following elements.
        found["fill_value"] = 0

growing, trees, wanted_shapes = {}, {}, {}
for index, (name, (entry, found)) in enumerate(entries.items()):
    # They must pass through all subsequent codecs.
    if index % 5:
        found["attributes"] = (found.get("attributes") or {}) | {"mirrored": name, "é": [None, 1.0, {"deep": [1e300, -0.0, 2**70]}]}
    wanted_shapes[name] = wanted = tuple(found["shape"])
    if not entry["region"] and entry["shape"] == list(wanted) and (start := start_of(found, wanted)):
        growing[name] = start
        found["shape"] = [start[1] if axis == start[0] else extent for axis, extent in enumerate(wanted)]
    # Subtrees of some hundred arrays, so that a rejected one does not affect all others.
    top = "/".join(name.split("/")[:2])
    trees.setdefault((top, found["zarr_format"]), {})[name] = found

requests = sum(declare(documents, top, version) for (top, version), documents in trees.items())
without = {name for names in rejected.values() for name in names}
mirrored = []
for name, (entry, found) in entries.items():
    if name in without:
        continue
    elements = expectation.load(notes, entry, "source")
    path = f"{prefix}{name}"
    if entry["region"]:
        writer.bounds(path, elements, entry["kind"], entry["region"], **query)
    elif writing.is_lossy(found):
        writer.region(path, elements, entry["kind"], [slice(None)] * elements.ndim, **query)
    elif name in growing:
        writer.grown(path, elements, entry["kind"], *growing[name], **query)
    else:
        writer.whole(path, elements, entry["kind"], **query)
    asked = found | {"shape": list(wanted_shapes[name])}
    files = {what: entry[what] and str(notes / entry[what]) for what in ("file", "source")}
    mirrored.append(entry | files | {"format": found["zarr_format"], "document": asked})

(out / "mirrored.json").write_text(json.dumps(mirrored))
print(f"mirrored {len(mirrored)} of {len(entries)} arrays declared in {requests} requests: {writer.done}")
report = {
    "arrays": len(mirrored),
    "lossy": sum(entry["lossy"] for entry in mirrored),
    "appended": sum(entry["name"] in growing for entry in mirrored),
    "rejected": {why: len(names) for why, names in sorted(rejected.items())},
}
print(json.dumps(report, ensure_ascii=False))
