"""Copies the data of write_zarr_python.py, through /node and /array alone:

    rewrite.py URL FROM TO DIR OUT

The hierarchies are read from /node/FROM and declared at /node/TO, the elements of DIR are written in regions, and OUT
gets a manifest for the readers of the other libraries. Both groups have consolidated metadata before the arrays
exist.
"""

import json
import pathlib
import shutil
import sys

import numpy as np

import writing
from api import Api

url, source, target, directory, out = sys.argv[1], sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4]), pathlib.Path(sys.argv[5])
api = Api(url)
writer = writing.Writer(api, np.random.default_rng(20261123))
manifest = json.loads((directory / "manifest.json").read_text())


def consolidate(format):
    """Adds consolidated metadata to the empty group, as other libraries do: by writing the key."""
    root = f"{target}/v{format}.zarr"
    if format == 2:
        read = lambda key: json.loads(api.expect("GET", f"/store/{root}/{key}")[2])
        metadata = {"zarr_consolidated_format": 1, "metadata": {key: read(key) for key in (".zgroup", ".zattrs")}}
        api.expect("PUT", f"/store/{root}/.zmetadata", json.dumps(metadata))
    else:
        document = json.loads(api.expect("GET", f"/store/{root}/zarr.json")[2])
        document["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": {}}
        api.expect("PUT", f"/store/{root}/zarr.json", json.dumps(document))


nodes = 0
for format in (2, 3):
    zom = api.node(f"{source}/v{format}.zarr", depth="all")
    members = zom.pop("members")
    more = zom["attributes"].pop("more")
    api.declare(f"{target}/v{format}.zarr", zom)
    consolidate(format)
    for name, member in members.items():
        status, canonical = api.declare(f"{target}/v{format}.zarr/{name}", member)
        assert status == 201 and api.node(f"{target}/v{format}.zarr/{name}", depth="all") == canonical
        nodes += json.dumps(member).count('"zarr_format"')
    api.patch(f"{target}/v{format}.zarr", {"attributes": {"more": more}})
    again = api.node(f"{target}/v{format}.zarr", depth="all")
    wanted = zom | {"attributes": zom["attributes"] | {"more": more}, "members": members}
    assert again == wanted, format

mirrored = []
for entry in manifest:
    shape, dtype = entry["shape"], np.dtype(entry["dtype"]).newbyteorder("<")
    elements = np.frombuffer((directory / entry["file"]).read_bytes(), dtype).reshape(shape)
    path = entry["url"].partition("/store/")[2].replace(source, target, 1)
    writer.whole(path, elements, "fixed")
    shutil.copy(directory / entry["file"], out / entry["file"])
    mirrored.append(entry | {"url": f"{api.url}/store/{path}"})

(out / "manifest.json").write_text(json.dumps(mirrored, indent=1))
done = " ".join(f"{count} {what}" for what, count in writer.done.items())
print(f"declared {nodes} nodes and wrote {len(mirrored)} arrays: {done}")
