"""Converts to v3 what mirror.py created, so that compare.py can read it as that: convert.py URL NOTES [draft]

Arrays of v2 are converted where they are, over the same chunks, one by one, since v3 has not all of their data types and codecs. A hierarchy of the draft is copied as a whole, to
/converted. NOTES/mirrored.json lists what was converted, as it is now.
"""

import json
import pathlib
import sys
from collections import Counter

from api import Api, Refused

url, notes = sys.argv[1], pathlib.Path(sys.argv[2])
api = Api(url)
entries = json.loads((notes / "mirrored.json").read_text())
refused, done = Counter(), Counter()


def convert(path, **query):
    """Converts a node; whether it was."""
    try:
        report = json.loads(api.expect("POST", f"/node/{path}", convert="v3", **query)[2])
    except Refused as refusal:
        refused[refusal.kind] += 1
        return False
    done.update(nodes=report["nodes"], chunks=report["chunks"])
    return True


if "draft" in sys.argv[3:]:
    assert convert("draft", to="/converted"), refused
    converted = entries
else:
    converted = [entry for entry in entries if convert(entry["name"])]
    assert done["chunks"] == 0, done
(notes / "mirrored.json").write_text(json.dumps([entry | {"format": 3} for entry in converted]))
print(f"refused {json.dumps(refused)}")
print(f"converted {len(converted)} of {len(entries)} arrays with {done['nodes']} nodes and {done['chunks']} chunks copied")
