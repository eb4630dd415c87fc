"""Reads arrays through /array and compares them with their writers' notes:

    compare.py URL NOTES [SELECTIONS]

URL is that of the prefix, such as http://127.0.0.1:8000/array/lab. Every array is read completely in each supported
format, and with SELECTIONS (default 3) random selections by GET and by POST each. Requires only NumPy.
"""

import http.client
import json
import pathlib
import re
import sys
import urllib.parse
from collections import Counter

import numpy as np

import expectation
import forms
import selections

TYPES = {"raw": "application/octet-stream", "json": "application/json"}


class Comparison:
    """The number of comparisons, and the differences."""

    def __init__(self, url, count):
        self.url = urllib.parse.urlsplit(url)
        self.count = count
        self.connection = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=60)
        self.done = Counter()
        self.differences = []
        self.at = 0

    def request(self, method, target, body=None, headers={}):
        try:
            self.connection.request(method, target, body, headers)
            answer = self.connection.getresponse()
            return answer.status, answer.headers, answer.read()
        except (http.client.HTTPException, OSError) as error:
            self.connection.close()
            return 0, {}, f"{type(error).__name__}: {error}".encode()

    def differs(self, entry, what, reason):
        self.differences.append((entry["name"], what, reason))

    def array(self, entry, wanted):
        """Compares one array in all ways."""
        generator = np.random.default_rng(self.at)
        path = urllib.parse.quote(f"{self.url.path}/{entry['name']}")
        kind = entry["kind"]
        before = len(self.differences)
        whole = [slice(None)] * wanted.ndim
        if entry["region"]:
            whole = [slice(*bounds) for bounds in entry["region"]]
        for form in forms.forms(kind):
            self.get(entry, path, wanted, whole, form, generator)
        # An array that cannot be read at all, or only in parts, needs no selections.
        if len(self.differences) == before and not entry["region"]:
            self.some(entry, path, wanted, generator)
        self.done["arrays"] += 1
        same = len(self.differences) == before
        print(f"{'same' if same else 'DIFFERS'} {entry['name']} {entry['dtype']} {tuple(entry['shape'])}")

    def some(self, entry, path, wanted, generator):
        """Compares random selections."""
        ways = [self.orthogonal, self.points, self.stack]
        for _ in range(self.count):
            if wanted.ndim:
                self.get(entry, path, wanted, selections.items(generator, wanted.shape), self.form(entry), generator)
            ways[self.at % len(ways)](entry, path, wanted, generator)
            self.at += 1
        self.rejected(entry, path, wanted)

    def form(self, entry):
        """The formats in turn."""
        self.at += 1
        choice = forms.forms(entry["kind"])
        return choice[self.at % len(choice)]

    def get(self, entry, path, wanted, items, form, generator):
        query = {"format": form}
        if not all(map(selections.is_whole, items)):
            query["select"] = selections.selection_text(items, generator)
        target = f"{path}?{urllib.parse.urlencode(query, safe=':,()', quote_via=urllib.parse.quote)}"
        answer = self.request("GET", target)
        self.answer(entry, f"GET {urllib.parse.unquote(target.split('?')[1])}", answer, selections.select(wanted, items), form)

    def post(self, entry, path, body, wanted):
        form = self.form(entry)
        answer = self.request("POST", f"{path}?read&format={form}", json.dumps(body), {"Content-Type": "application/json"})
        self.answer(entry, f"POST format={form} {json.dumps(body)[:200]}", answer, wanted, form)

    def orthogonal(self, entry, path, wanted, generator):
        items = selections.items(generator, wanted.shape)
        body = [selections.item_json(item, generator) for item in items]
        self.post(entry, path, {"select": body}, selections.select(wanted, items))

    def points(self, entry, path, wanted, generator):
        count = int(generator.integers(1, 12)) if 0 not in wanted.shape else 0
        points = [[int(generator.integers(-extent, extent)) for extent in wanted.shape] for _ in range(count)]
        found = np.empty(count, wanted.dtype)
        for index, point in enumerate(points):
            # One by one into the bytes of one field, since an array of objects would unpack inner arrays.
            found[index : index + 1] = selections.select(wanted, point).reshape(1)
        self.post(entry, path, {"points": points}, found)

    def stack(self, entry, path, wanted, generator):
        """Windows of one size, as for training."""
        sizes = [int(generator.integers(0, extent + 1)) for extent in wanted.shape]
        starts = [[int(generator.integers(0, extent - size + 1)) for extent, size in zip(wanted.shape, sizes)] for _ in range(3)]
        windows = [[slice(start, start + size) for start, size in zip(corner, sizes)] for corner in starts]
        texts = [",".join(selections.item_text(item, generator) for item in items) for items in windows]
        found = np.stack([selections.select(wanted, items) for items in windows])
        self.post(entry, path, {"stack": texts}, found)

    def rejected(self, entry, path, wanted):
        """Selections that NumPy rejects are answered with a problem document."""
        extents = wanted.shape
        bad = [",".join(["0"] * (len(extents) + 1)), "x", "..., ..."]
        if extents:
            bad += [str(extents[0]), str(-extents[0] - 1), f"[{extents[0]}]", "::0"]
        text = bad[self.at % len(bad)]
        status, headers, body = self.request("GET", f"{path}?select={urllib.parse.quote(text)}&format=raw")
        self.done["rejections"] += 1
        if status != 400 or headers.get("Content-Type") != "application/problem+json":
            self.differs(entry, f"GET select={text}", f"status {status} instead of a problem: {body[:80]!r}")

    def answer(self, entry, what, answer, wanted, form):
        status, headers, body = answer
        self.done["answers"] += 1
        self.done["elements"] += wanted.size
        if status != 200:
            self.differs(entry, what, f"status {status}: {problem(body)}")
            return
        if reason := wrong_headers(headers, body, entry, wanted, form):
            self.differs(entry, what, reason)
        try:
            reason = forms.check(form, body, wanted, entry["kind"])
        except Exception as error:  # Regardless of NumPy's changes to the bytes.
            reason = f"{type(error).__name__}: {error}"
        if reason:
            self.differs(entry, what, reason)


def problem(body):
    try:
        document = json.loads(body)
        return f"{document.get('type', '')} {document.get('detail', '')}"
    except (ValueError, AttributeError):
        return repr(body[:120])


def wrong_headers(headers, body, entry, wanted, form):
    shape = [int(extent) for extent in re.findall(r"\d+", headers.get("Zarr-Shape", "none"))]
    if "Zarr-Shape" not in headers or shape != list(wanted.shape):
        return f"Zarr-Shape: {headers.get('Zarr-Shape')} instead of {wanted.shape}"
    data_type = headers.get("Zarr-Data-Type")
    if not data_type or (entry["data_type"] and data_type != entry["data_type"]):
        return f"Zarr-Data-Type: {data_type} instead of {entry['data_type']}"
    if form in TYPES and headers.get("Content-Type") != TYPES[form]:
        return f"Content-Type: {headers.get('Content-Type')}"
    if form != "json" and forms.is_fixed(entry["kind"]) and headers.get("Content-Length") != str(len(body)):
        return f"Content-Length: {headers.get('Content-Length')} of {len(body)}"
    return None


def main():
    url, notes = sys.argv[1], pathlib.Path(sys.argv[2])
    comparison = Comparison(url, int(sys.argv[3]) if len(sys.argv) > 3 else 3)
    for entry in json.loads((notes / "manifest.json").read_text()):
        comparison.array(entry, expectation.load(notes, entry))
    arrays = {name for name, _, _ in comparison.differences}
    printed = Counter()
    for name, what, reason in comparison.differences:
        printed[name] += 1
        if printed[name] <= 2:
            print(f"{name}\n    {what}\n    {reason}", file=sys.stderr)
    done = comparison.done
    print(
        f"compared {done['arrays']} arrays, {done['answers']} answers with {done['elements']} elements, "
        f"{done['rejections']} rejections; {len(arrays)} arrays differ"
    )
    sys.exit(1 if arrays or not done["arrays"] else 0)


main()
