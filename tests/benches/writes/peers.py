"""Writes arrays and hierarchies with tensorstore and zarr-python: peers.py SIDE FIELD

Reads one JSON object per line and answers each with one. `{"do": "field"}` puts the elements that are written into the file FIELD. `{"do": "write", "peer", "where",
"document"}` writes them into a new directory, as an array with that document. `{"do": "create", "where", "zom"}` creates a hierarchy in a new directory with
zarr-python, and `{"do": "list", …}` lists it. The answers have the seconds that it took.
"""

import importlib.util
import json
import pathlib
import shutil
import sys
import time
import warnings

import numpy as np

side, file = int(sys.argv[1]), pathlib.Path(sys.argv[2])
warnings.simplefilter("ignore")

# The field is the one whose slices are measured.
spec = importlib.util.spec_from_file_location("slices", pathlib.Path(__file__).parent.parent / "slices/peers.py")
slices = importlib.util.module_from_spec(spec)
spec.loader.exec_module(slices)
slices.SIDE = side
data = slices.field() if side else None


def field(ask):
    data.tofile(file)
    return {"bytes": data.nbytes}


def write(ask):
    where = pathlib.Path(ask["where"])
    shutil.rmtree(where, ignore_errors=True)
    begin = time.perf_counter()
    if ask["peer"] == "tensorstore":
        import tensorstore as ts

        document = {name: value for name, value in ask["document"].items() if name not in ("zarr_format", "node_type")}
        kvstore = {"driver": "file", "path": f"{where}/"}
        array = ts.open({"driver": "zarr3", "kvstore": kvstore, "metadata": document}, create=True).result()
        array.write(data).result()
    else:
        import zarr

        where.mkdir()
        (where / "zarr.json").write_text(json.dumps(ask["document"]))
        zarr.open_array(where, mode="r+")[...] = data
    return {"seconds": time.perf_counter() - begin}


def flat(node, path=""):
    yield path, node
    for name, member in node.get("members", {}).items():
        yield from flat(member, f"{path}/{name}" if path else name)


def create(ask):
    import zarr
    from zarr.core.group import GroupMetadata
    from zarr.core.metadata import ArrayV3Metadata

    shutil.rmtree(ask["where"], ignore_errors=True)
    begin = time.perf_counter()
    nodes = {}
    for path, node in flat(ask["zom"]):
        document = {name: value for name, value in node.items() if name != "members"}
        is_group = document["node_type"] == "group"
        nodes[path] = GroupMetadata.from_dict(document) if is_group else ArrayV3Metadata.from_dict(document)
    count = sum(1 for _ in zarr.create_hierarchy(store=zarr.storage.LocalStore(ask["where"]), nodes=nodes))
    assert count == len(nodes), (count, len(nodes))
    return {"seconds": time.perf_counter() - begin}


def listed(ask):
    import zarr

    begin = time.perf_counter()
    members = zarr.open_group(ask["where"], mode="r").members(max_depth=None)
    documents = [member.metadata.to_dict() for _, member in members]
    assert len(documents) + 1 == sum(1 for _ in flat(ask["zom"]))
    return {"seconds": time.perf_counter() - begin}


does = {"field": field, "write": write, "create": create, "list": listed}
for line in sys.stdin:
    ask = json.loads(line)
    print(json.dumps(does[ask["do"]](ask)), flush=True)
