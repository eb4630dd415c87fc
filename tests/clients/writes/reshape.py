"""Patches the attributes of the arrays of mirror.py, and makes them larger:

    reshape.py URL NOTES

NOTES is the output of mirror.py, which is changed so that compare.py compares what was there before. Arrays whose elements
change when a chunk is encoded again, and those of irregular chunks, get other attributes only. The last line has the counts,
as JSON.
"""

import json
import pathlib
import sys

import writing
from api import Api

url, notes = sys.argv[1], pathlib.Path(sys.argv[2]) / "mirrored.json"
api = Api(url)
entries = json.loads(notes.read_text())
grown = 0
for entry in entries:
    name, document = entry["name"], entry["document"]
    attributes = (document.get("attributes") or {}) | {"patched": name}
    found = api.patch(name, {"attributes": {"patched": name}})
    assert found["attributes"] == attributes, (name, found["attributes"])
    document["attributes"] = attributes
    shape = document["shape"]
    if not shape or not writing.is_regular(document) or writing.is_lossy(document):
        continue
    larger = [shape[0] + 3, *shape[1:]]
    found = api.patch(name, {"shape": larger})
    assert found["shape"] == larger, (name, found["shape"])
    entry["region"] = entry["region"] or [[0, extent] for extent in shape]
    document["shape"] = larger
    grown += 1
notes.write_text(json.dumps(entries))
print(json.dumps({"patched": len(entries), "grown": grown}))
