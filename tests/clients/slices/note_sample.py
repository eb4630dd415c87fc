"""Unpacks the sample of the 2020 draft, and notes its elements as the other writers do:

    note_sample.py ARCHIVE STORE NOTES
"""

import json
import pathlib
import sys
import tarfile

import numpy as np

import expectation

archive, store, notes = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), expectation.Notes(sys.argv[3], "the sample")
with tarfile.open(archive) as members:
    members.extractall(store, filter="data")
(expected,) = store.glob("*.expected")
hierarchy = expected.name.removesuffix(".expected")
for name, entry in json.loads((expected / "manifest.json").read_text()).items():
    found = np.load(expected / entry["file"], allow_pickle=False)
    # A type of the manifest that `.npy` cannot represent, with its shape.
    assert found.dtype == np.dtype(entry["dtype"]) and list(found.shape) == entry["shape"], name
    notes.note(f"{hierarchy}/{name}", found, region=entry.get("compare_only"))
notes.close()
