"""Generates a client from openapi.yaml with openapi-python-client, and uses it like a user.

    python use_client.py openapi.yaml URL
"""

import importlib
import io
import os
import re
import struct
import subprocess
import sys
import tempfile
from http import HTTPStatus
from pathlib import Path

import yaml

CONFIG = Path(__file__).with_name("client.yaml")
PACKAGE = "zarrd_api"
METHODS = {"get", "head", "put", "post", "patch", "delete"}


def generate(document, directory):
    command = [str(Path(sys.executable).with_name("openapi-python-client")), "generate", "--fail-on-warning", "--meta", "none"]
    command += ["--path", document, "--config", str(CONFIG), "--output-path", str(Path(directory, PACKAGE))]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode or "WARNING" in made.stdout.upper():
        sys.exit(f"{made.stdout}{made.stderr}")
    # For a body with several media types, the generated code tests for a `list[Any]`, which Python rejects.
    for path in Path(directory, PACKAGE, "api", "array").glob("*.py"):
        code = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r"(isinstance\(body, [^)]*)list\[Any\]", r"\1list", code), encoding="utf-8")
    sys.path.insert(0, directory)


def modules(document):
    """The module of each operation by operationId; fails if one is missing."""
    found = {}
    for item in yaml.safe_load(Path(document).read_text(encoding="utf-8"))["paths"].values():
        for operation in (item[method] for method in METHODS & item.keys()):
            name = operation["operationId"]
            snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
            found[name] = importlib.import_module(f"{PACKAGE}.api.{operation['tags'][0]}.{snake}")
    return found


class Api:
    """The operations by name, each with the expected status."""

    def __init__(self, document, url):
        self.operations = modules(document)
        self.models = importlib.import_module(f"{PACKAGE}.models")
        self.types = importlib.import_module(f"{PACKAGE}.types")
        self.client = importlib.import_module(f"{PACKAGE}.client").Client(base_url=url, raise_on_unexpected_status=True)

    def call(self, name, *arguments, status=HTTPStatus.OK, **named):
        answer = self.operations[name].sync_detailed(*arguments, client=self.client, **named)
        assert answer.status_code == status, (name, answer)
        return answer.parsed

    def file(self, content):
        return self.types.File(payload=io.BytesIO(content))


def npy(values):
    header = str({"descr": "<f4", "fortran_order": False, "shape": (len(values),)}).ljust(118) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}f", *values)


def array(models, shape):
    return models.ArrayV3.from_dict({
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": "float32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 2]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0.0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, "crc32c"],
        "attributes": {"unit": "K"},
    })


def store(api):
    call, models = api.call, api.models
    call("setKey", "lab/notes.txt", body=api.file(b"forty-two mice"), status=HTTPStatus.CREATED)
    rejected = call("setKey", "lab/notes.txt", body=api.file(b"x"), if_none_match="*", status=HTTPStatus.PRECONDITION_FAILED)
    assert isinstance(rejected, models.Problem) and rejected.type_ is models.ProblemType.HTTPSZARRD_DEVPROBLEMSPRECONDITION_FAILED
    assert call("getKey", "lab/notes.txt").payload.read() == b"forty-two mice"
    assert call("getKey", "lab/notes.txt", range_="bytes=-4", status=HTTPStatus.PARTIAL_CONTENT).payload.read() == b"mice"
    call("headKey", "lab/notes.txt")
    missing = call("getKey", "lab/none", status=HTTPStatus.NOT_FOUND)
    assert missing.key == "lab/none"
    listed = call("listPrefix", "lab")
    assert isinstance(listed, models.DirListing) and listed.keys == ["lab/notes.txt"] and listed.values[0].size == 14
    listed = call("listRoot", list_=models.ListRootList.KEYS)
    assert isinstance(listed, models.KeyListing) and listed.keys == ["lab/notes.txt"] and listed.cursor is None
    call("eraseKey", "lab/notes.txt", status=HTTPStatus.NO_CONTENT)
    assert call("erasePrefix", "lab").erased == 0


def nodes(api):
    call, models = api.call, api.models
    members = {"foo": array(models, [4, 2]).to_dict()}
    group = models.GroupV3.from_dict({"zarr_format": 3, "node_type": "group", "attributes": {}, "members": members})
    created = call("declareNode", "lab/exp", body=group, status=HTTPStatus.CREATED)
    assert isinstance(created, models.GroupV3) and isinstance(created.members["foo"], models.ArrayV3)
    found = call("getNode", "lab/exp/foo")
    assert isinstance(found, models.ArrayV3) and found.shape == [4, 2] and found.attributes["unit"] == "K"
    source = call("getNode", "lab/exp", include=models.GetNodeInclude.SOURCE)
    assert isinstance(source, models.WithSource) and source.dialect is models.WithSourceDialect.V3
    assert isinstance(call("getNode", "lab/exp", flat=""), models.FlatZom)
    patch = models.NodePatch.from_dict({"attributes": {"unit": "degC"}, "dimension_names": ["y", None]})
    assert call("patchNode", "lab/exp/foo", body=patch).attributes["unit"] == "degC"
    report = call("validateOrConvertNode", "lab/exp", body=group, validate="")
    assert isinstance(report, models.ValidateReport) and not report.unchanged and report.differences
    # The generated code cannot omit a body that is a union; the body of a conversion is ignored.
    converted = call("validateOrConvertNode", "lab/exp", body=group, convert=models.ValidateOrConvertNodeConvert.DRAFT, target="/sketch")
    assert isinstance(converted, models.ConvertReport) and converted.nodes == 2
    assert call("eraseNode", "sketch").erased > 0
    call("headNode", "sketch", status=HTTPStatus.NOT_FOUND)


def elements(api):
    call, models = api.call, api.models
    written = call("writeElements", "lab/exp/foo", body=[[1, 2], [3, "NaN"]], select="1:3")
    assert written.shape == [4, 2] and written.chunks_written == 2
    assert call("getElements", "lab/exp/foo") == [[0, 0], [1, 2], [3, "NaN"], [0, 0]]
    call("writeElements", "lab/exp/foo", body=api.file(npy([7, 8])), select="3")
    assert call("getElements", "lab/exp/foo", select="-1,0") == 7
    appended = call("readOrAppendElements", "lab/exp/foo", body=[[9, 10]], append=0)
    assert isinstance(appended, models.WriteAnswer) and appended.shape == [5, 2]
    points = models.ReadRequest.from_dict({"points": [[4, 0], [1, -1]]})
    assert call("readOrAppendElements", "lab/exp/foo", body=points, read="") == [9, 2]
    stack = models.ReadRequest.from_dict({"stack": ["3:5, 0", "3:5, 1"]})
    assert call("readOrAppendElements", "lab/exp/foo", body=stack, read="") == [[7, 9], [8, 10]]
    rejected = call("getElements", "lab/exp/foo", select="5,0", status=HTTPStatus.BAD_REQUEST)
    assert rejected.index == 5 and rejected.extent == 5
    call("headElements", "lab/exp/foo")


def service(api):
    call = api.call
    assert call("health").version
    assert call("ready").writable is True
    assert "zarrd_http_requests" in call("metrics")
    assert call("getZomSchema", api.models.GetZomSchemaVersion.V3).additional_properties["title"]
    call("eraseRoot", confirm=api.models.EraseRootConfirm.ALL)


def main(document, url):
    os.environ["NO_PROXY"] = "127.0.0.1"
    with tempfile.TemporaryDirectory() as directory:
        generate(document, directory)
        api = Api(document, url)
        for use in store, nodes, elements, service:
            use(api)
        print(f"{len(api.operations)} operations were generated")


if __name__ == "__main__":
    main(*sys.argv[1:])
