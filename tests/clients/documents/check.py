"""Patches documents through the server, and compares every byte that a patch does not name.

    check.py URL DIR

DIR contains the hierarchies of write_zarr2.py and write_zarr3.py. Half of the documents are stored unchanged, the
others respelled. The expected texts are computed by texts.py.
"""

import concurrent.futures
import http.client
import json
import pathlib
import random
import sys
import threading
import traceback
import urllib.parse

import generated
import texts

url, directory = urllib.parse.urlsplit(sys.argv[1]), pathlib.Path(sys.argv[2])
DOCUMENTS = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata", ".array.json", ".group.json")
local = threading.local()


def ask(method, path, body=None):
    if not hasattr(local, "connection"):
        local.connection = http.client.HTTPConnection(url.hostname, url.port)
    headers = {} if body is None else {"Content-Type": "application/json"}
    local.connection.request(method, urllib.parse.quote(path, safe="/?=&"), body, headers)
    answer = local.connection.getresponse()
    return answer.status, answer.read().decode()


def done(method, path, body=None):
    status, text = ask(method, path, body)
    assert status in (200, 201, 204), (method, path, body, status, text)
    return text


class Hierarchy:
    """A stored hierarchy, and its documents after the last change."""

    def __init__(self, path):
        self.name, self.rng = path.name, random.Random(path.name)
        self.dialect = {"2": "v2", "32": "v2", "3": "v3", "d": "draft"}[self.name.split("-")[0]]
        found = {str(file.relative_to(path)): file.read_bytes().decode() for file in sorted(path.rglob("*")) if file.is_file()}
        self.documents = {key: text for key, text in found.items() if key.endswith(DOCUMENTS)}
        if self.rng.random() < 0.6:
            self.reshape()
        for key, text in self.documents.items():
            done("PUT", f"/store/{self.name}/{key}", text.encode())
        self.changes, self.tags = 0, {}

    def reshape(self):
        """Respells every document, with attributes that Python would not write, and with identical copies in
        consolidated metadata.
        """
        values = {key: texts.parse(text) for key, text in self.documents.items()}
        for key, value in values.items():
            attributes = value if key.endswith(".zattrs") else value.child("attributes")
            if attributes is not None and not key.endswith(".zmetadata"):
                self.spoil(attributes)
        for key, value in values.items():
            metadata = value.child("metadata") if key == ".zmetadata" else value.at(["consolidated_metadata", "metadata"])
            for index, (name, begin, copy) in enumerate(metadata.members if metadata else []):
                below = texts.plain(name)
                node = values[below if key == ".zmetadata" else f"{below}/zarr.json"]
                own = [texts.plain(name) for name, _, _ in node.members]
                if key != ".zmetadata":
                    extra = [member for member in copy.members if texts.plain(member[0]) not in own]
                    node = with_members(node, node.members + extra)
                metadata.members[index] = (name, begin, node)
        for value in values.values():
            if self.rng.random() < 0.5:
                self.rng.shuffle(value.members)
        for key, value in values.items():
            self.documents[key] = texts.Style(self.rng).document(value)

    def spoil(self, attributes):
        rng = self.rng
        for _ in range(rng.randrange(4)):
            name = json.dumps(rng.choice(generated.NAMES), ensure_ascii=False)
            attributes.members.append((name, 0, texts.parse(rng.choice(texts.RAW))))
        attributes.members = [
            (texts.respelled(name, rng), begin, self.respelled(value)) for name, begin, value in attributes.members
        ]

    def respelled(self, value):
        if value.kind == "scalar" and value.raw.startswith('"'):
            value.raw = texts.respelled(value.raw, self.rng)
        return value

    def stored(self):
        """All stored documents. Those with an unchanged entity tag are not read again until the end."""
        listed = json.loads(done("GET", f"/store/{self.name}/?list=keys&limit=1000"))
        tags = {key.removeprefix(self.name + "/"): value["etag"] for key, value in zip(listed["keys"], listed["values"])}
        tags = {key: tag for key, tag in tags.items() if key.endswith(DOCUMENTS)}
        known = {key for key, tag in tags.items() if self.tags.get(key) == tag and key in self.documents}
        self.tags = tags
        return {key: self.documents[key] if key in known else done("GET", f"/store/{self.name}/{key}") for key in tags}

    def check_all(self):
        """Compares all stored documents with the expected ones."""
        self.tags = {}
        assert self.stored() == self.documents, self.name

    # Nodes, and the places of their properties in documents and consolidated copies.

    def nodes(self, kind):
        """The paths of the nodes of a kind in the hierarchy's own dialect."""
        ends = {"v2": f".z{kind}", "v3": "zarr.json", "draft": f".{kind}.json"}[self.dialect]
        found = [key.removesuffix(ends).rstrip("/") for key in self.documents if key.endswith(ends)]
        if self.dialect == "v3":
            return [path for path in found if self.text(f"{path}/zarr.json".lstrip("/"), ["node_type"]) == f'"{kind}"']
        return [path.removeprefix("meta/root/") for path in found]

    def text(self, key, path):
        """The text of a document at a path; None if it is absent."""
        text = self.documents.get(key)
        value = text and texts.parse(text).at(path)
        return value and text[value.begin : value.end]

    def meaning(self, key, path):
        text = self.text(key, path)
        return text and texts.meaning(texts.parse(text))

    def own(self, node, kind, member):
        """The (key, path) of a property in a node's own documents, in each of its dialects."""
        if self.dialect == "draft":
            return [(f"meta/root/{node}.{kind}.json", member)]
        below, places = f"{node}/" if node else "", []
        if f"{below}.z{kind}" in self.documents:
            places.append((f"{below}.zattrs", member[1:]) if member[0] == "attributes" else (f"{below}.z{kind}", member))
        if f"{below}zarr.json" in self.documents:
            places.append((f"{below}zarr.json", member))
        return places if self.dialect == "v2" else places[::-1]

    def places(self, node, kind, member):
        """The same including the copies in consolidated metadata."""
        places = self.own(node, kind, member)
        for key, path in list(places):
            if not key.endswith("zarr.json") and self.text(".zmetadata", ["metadata"]):
                places.append((".zmetadata", ["metadata", key, *path]))
            elif key.endswith("zarr.json") and node and self.text("zarr.json", ["consolidated_metadata", "metadata"]):
                places.append(("zarr.json", ["consolidated_metadata", "metadata", node, *path]))
        return places

    # Changes.

    def expect(self, what, places, is_new=lambda key: False):
        """Compares the stored documents with the previous ones: only the values at these places may differ, appear or
        disappear.
        """
        before, self.documents = self.documents, self.stored()
        self.changes += 1
        for key in before.keys() | self.documents.keys():
            pair = [documents.get(key) for documents in (before, self.documents)]
            if pair[0] == pair[1] or pair[0] is None and is_new(key):
                continue
            paths = [path for found, path in places if found == key]
            assert paths and (None not in pair or key.endswith(".zattrs")), f"{self.name}: {what} changed {key}: {pair}"
            # In v2, empty attributes are equivalent to none: no document, or one that is rewritten when attributes
            # are added.
            pair = [text or "{}" for text in pair]
            are_empty = key.endswith(".zattrs") and not all(texts.parse(text).members for text in pair)
            cuts = [[], []]
            for path in paths:
                for spans, found in zip(cuts, texts.difference(*pair, path)):
                    spans += found
            skeletons = [texts.without(text, spans) for text, spans in zip(pair, cuts)]
            if are_empty:
                skeletons = [skeleton.strip(" \t\r\n\ufeff") for skeleton in skeletons]
            assert skeletons[0] == skeletons[1], f"{self.name}: {what} changed {key}: " + texts.first_difference(*skeletons)

    def assert_value(self, places, wanted):
        """Checks that all places have this value."""
        for key, path in places:
            found = self.meaning(key, path)
            assert found == wanted, f"{self.name}: {key} has {found} at {path}, not {wanted}"

    def patch(self, node, body, places, wanted):
        """Patches a node: these places get the wanted value, and remain unchanged if they already have it."""
        said = {self.meaning(*place) for place in places}
        done("PATCH", "/node/" + "/".join(part for part in (self.name, node) if part), body.encode())
        self.expect(body, [] if said == {wanted} else places)
        self.assert_value(places, wanted)

    def set_attribute(self, node, kind, name, text):
        places = self.places(node, kind, ["attributes", name])
        wanted = texts.patched(self.meaning(*places[0]), texts.meaning(texts.parse(text)))
        self.patch(node, '{"attributes": {%s: %s}}' % (json.dumps(name), text), places, wanted)

    def set_attribute_again(self, node, kind, name):
        """Sets an attribute to its current value, spelled differently."""
        key, path = self.own(node, kind, ["attributes", name])[0]
        value = texts.parse(self.text(key, path))
        if texts.has_null(value):
            return
        done("PATCH", f"/node/{self.name}/{node}".rstrip("/"), '{"attributes": {%s: %s}}' % (json.dumps(name), texts.Style(self.rng).text(value, 0)))
        self.expect("setting what is so", [])

    def remove_attribute(self, node, kind, name):
        places = self.places(node, kind, ["attributes", name])
        gone = []
        for key, path in places:
            above = texts.parse(self.documents[key]).at(path[:-1]) if key in self.documents else None
            is_last = above and all(texts.plain(found) == name for found, _, _ in above.members)
            gone.append((key, path[:-1]) if is_last and path[-2:-1] and path[-2].endswith(".zattrs") else (key, path))
        self.patch(node, '{"attributes": {%s: null}}' % json.dumps(name), gone, None)

    def resize(self, node):
        shape = [extent + self.rng.randrange(3) for extent in self.shape(node)]
        places = self.places(node, "array", ["shape"])
        self.patch(node, json.dumps({"shape": shape}), places, texts.meaning(texts.parse(json.dumps(shape))))

    def append(self, node):
        shape, places = self.shape(node), self.places(node, "array", ["shape"])
        key, path = self.own(node, "array", ["dtype" if self.dialect == "v2" else "data_type"])[0]
        elements = False if "b1" in self.text(key, path) or "bool" in self.text(key, path) else 0
        for extent in reversed([1, *shape[1:]]):
            elements = [elements] * extent
        done("POST", f"/array/{self.name}/{node}?append=0", json.dumps(elements).encode())
        self.expect("append", places)
        shape[0] += 1
        self.assert_value(places, texts.meaning(texts.parse(json.dumps(shape))))

    def shape(self, node):
        return json.loads(self.text(*self.own(node, "array", ["shape"])[0]))

    def name_dimensions(self, node):
        names = json.dumps([f"axis {index}" for index in range(len(self.shape(node)))])
        places = [
            (key, [*path[:-1], "dimension_names"] if key.endswith("zarr.json") and self.dialect != "draft" else path)
            for key, path in self.places(node, "array", ["dimension_names"] if self.dialect == "v3" else ["attributes", "_ARRAY_DIMENSIONS"])
        ]
        self.patch(node, '{"dimension_names": %s}' % names, places, texts.meaning(texts.parse(names)))

    def convert(self):
        """Adds the documents of the other dialect, whose attributes are written with the same strings and numbers."""
        other = {"v2": "v3", "v3": "v2"}[self.dialect]
        nodes = [(kind, node) for kind in ("group", "array") for node in self.nodes(kind)]
        own = {node: self.attributes(node, kind, 0) for kind, node in nodes}
        done("POST", f"/node/{self.name}?convert={other}")
        is_new = lambda key: key.endswith("zarr.json") == (other == "v3")
        self.expect("convert", [], is_new)
        for kind, node in nodes:
            assert self.attributes(node, kind, 1) == own[node], f"{self.name}: {node} was converted with other attributes: {self.documents}"

    def attributes(self, node, kind, which):
        """The attributes in one of the dialects, without dimension names and missing values of arrays, which dialects
        store in different places.
        """
        key, path = self.own(node, kind, ["attributes"])[which]
        found = texts.parse(self.text(key, path) or "{}")
        members = [(name, value.tokens()) for name, _, value in found.members]
        others = {"_ARRAY_DIMENSIONS", *(["_FillValue"] if kind == "array" else [])}
        return [member for member in members if texts.plain(member[0]) not in others]


def with_members(value, members):
    copy = texts.Value(value.kind, value.begin)
    copy.members = members
    return copy


def run(path):
    """Applies every kind of change to one hierarchy; returns the number of its documents and of the changes."""
    hierarchy = Hierarchy(path)
    rng, count = hierarchy.rng, len(hierarchy.documents)
    arrays, groups = hierarchy.nodes("array"), hierarchy.nodes("group")

    def change_attributes():
        for kind, node in (("array", rng.choice(arrays)), ("group", rng.choice(groups))):
            # Dialects store missing values of arrays in different places.
            names = [name for name in generated.NAMES if kind == "group" or name != "_FillValue"]
            named = [name for name in names if hierarchy.text(*hierarchy.own(node, kind, ["attributes", name])[0])]
            if named:
                hierarchy.set_attribute_again(node, kind, rng.choice(named))
                hierarchy.set_attribute(node, kind, rng.choice(named), rng.choice(texts.RAW))
                hierarchy.remove_attribute(node, kind, rng.choice(named))
            hierarchy.set_attribute(node, kind, f"new {rng.randrange(9)}", rng.choice(texts.RAW))

    change_attributes()
    hierarchy.resize(rng.choice(arrays))
    hierarchy.append(rng.choice(arrays))
    hierarchy.name_dimensions(rng.choice(arrays))
    shares_chunks = all('"v2"' in (hierarchy.text(f"{node}/zarr.json", ["chunk_key_encoding"]) or "") for node in arrays)
    if hierarchy.dialect == "v2" or hierarchy.dialect == "v3" and shares_chunks:
        hierarchy.convert()
        change_attributes()
        hierarchy.append(rng.choice(arrays))
    hierarchy.check_all()
    return count, hierarchy.changes


def attempt(path):
    try:
        return run(path), None
    except Exception:
        return (0, 0), traceback.format_exc()


with concurrent.futures.ThreadPoolExecutor(4) as pool:
    results = list(pool.map(attempt, sorted(directory.iterdir())))
failures = [failure for _, failure in results if failure]
if failures:
    sys.exit("\n".join(failures[:5]) + f"\n{len(failures)} of {len(results)} hierarchies failed")
documents, changes = (sum(counts) for counts in zip(*(counts for counts, _ in results)))
print(f"{documents} documents, {changes} changes")
