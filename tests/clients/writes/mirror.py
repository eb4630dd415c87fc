"""Creates the arrays that another library wrote once more, through /node, and writes their elements through /array:

    mirror.py URL STORE NOTES [draft]

STORE and NOTES are what a writer of ../slices made. Of STORE only the documents are read, of NOTES the elements. The arrays are created at the paths that they have there, or with
`draft` as a hierarchy of the draft at /draft. NOTES/mirrored.json lists what was created.
"""

import json
import pathlib
import sys
from collections import Counter

import numpy as np

import writing
from api import Api, Refused

url, store, notes = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
prefix, query = ("draft/", {"dialect": "draft"}) if "draft" in sys.argv[4:] else ("", {})
# The draft cannot say that elements which were never written are undefined.
declared = query | {"lossy": True} if query else {}
api = Api(url)
generator = np.random.default_rng(20261122)
writer = writing.Writer(api, generator)
refused = []


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
    """Declares arrays as one tree where that is taken, else as two halves; those that are refused alone are noted."""
    try:
        api.declare(at, tree(documents, version), **declared)
        return 1
    except Refused as refusal:
        if len(documents) == 1:
            (name,) = documents
            refused.append((name, refusal.kind, str(refusal)))
            return 0
    names = sorted(documents)
    # A group that is there already may get more members only where nothing is said of those that it has.
    return sum(one(name, documents[name], at) for name in names)


def one(name, document, at):
    try:
        api.declare(f"{at}/{name}", document, **declared)
        return 1
    except Refused as refusal:
        refused.append((name, refusal.kind, str(refusal)))
        return 0


def loses(document):
    """Whether elements change each time that a chunk is decoded and encoded again, as it is when it is written in parts."""
    text = json.dumps([document.get("codecs"), document.get("filters")])
    return any(f"{name}\"" in text for name in ("delta", "astype", "quantize", "fixedscaleoffset", "bitround", "scale_offset"))


def start_of(document, shape):
    """Where some arrays begin, so that the rest is appended: the axis and how many are there."""
    regular = isinstance(document.get("chunk_grid", {}), dict) and document.get("chunk_grid", {}).get("name", "regular") == "regular"
    if not regular or loses(document) or not shape or 0 in shape or generator.random() > 0.25:
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
        # NaT, of which the rest of a chunk at the edge is full where no fill value is said, would be added to what follows it.
        found["fill_value"] = 0

growing, trees = {}, {}
for name, (entry, found) in entries.items():
    wanted = tuple(found["shape"])
    if not entry["region"] and entry["shape"] == list(wanted) and (start := start_of(found, wanted)):
        growing[name] = start
        found["shape"] = [start[1] if axis == start[0] else extent for axis, extent in enumerate(wanted)]
    # Subtrees of some hundred arrays, so that one that is refused does not spoil the rest.
    top = "/".join(name.split("/")[:2])
    trees.setdefault((top, found["zarr_format"]), {})[name] = found

requests = sum(
    declare({name.removeprefix(f"{top}/"): found for name, found in documents.items()}, f"{prefix}{top}", version)
    for (top, version), documents in trees.items()
)
without = {name for name, _, _ in refused}
mirrored = []
for name, (entry, found) in entries.items():
    if any(name.endswith(f"/{other}") or name == other for other in without):
        continue
    elements = writing.expectation.load(notes, entry)
    path = f"{prefix}{name}"
    try:
        if entry["region"]:
            writer.bounds(path, elements, entry["kind"], entry["region"], **query)
        elif loses(found):
            writer.region(path, elements, entry["kind"], [slice(None)] * elements.ndim, **query)
        elif name in growing:
            writer.grown(path, elements, entry["kind"], *growing[name], **query)
        else:
            writer.whole(path, elements, entry["kind"], **query)
    except (Refused, AssertionError) as error:
        refused.append((name, getattr(error, "kind", "assertion"), str(error)))
        continue
    mirrored.append(entry | {"format": found["zarr_format"]})

(notes / "mirrored.json").write_text(json.dumps(mirrored))
(notes / "refused-mirrored.json").write_text(json.dumps(refused, indent=1))
seen = Counter()
for name, kind, text in refused:
    seen[kind] += 1
    if seen[kind] <= 3:
        print(f"refused {name}: {text}")
done = " ".join(f"{count} {what}" for what, count in writer.done.items())
print(f"refused {json.dumps(seen)}")
print(f"mirrored {len(mirrored)} of {len(entries)} arrays declared in {requests} requests: {done}")
