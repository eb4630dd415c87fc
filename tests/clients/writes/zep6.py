"""Declares the examples of ZEP 6 verbatim, and opens the created nodes with zarr-python and tensorstore:

    zep6.py URL
"""

import json
import pathlib
import sys

import numpy as np
import tensorstore as ts
import zarr

from api import Api

url = sys.argv[1]
api = Api(url)
here = pathlib.Path(__file__).parent
elements = np.random.default_rng(6).integers(1, 256, (1000, 1000), "u1")
for name, array, file, driver in (("three", "array", "zep6.json", "zarr3"), ("two", "foo", "zep6-v2.json", "zarr")):
    text = (here / file).read_bytes()
    sent = json.loads(text)
    status, _, answer = api.expect("PUT", f"/node/{name}/example", text, {"Content-Type": "application/json"})
    assert status == 201, status
    group = zarr.open_group(f"{url}/store/{name}/example", mode="r")
    assert group.metadata.zarr_format == sent["zarr_format"]
    assert dict(group.attrs) == sent["attributes"] and list(group.keys()) == [array]
    assert dict(group[array].attrs) == sent["members"][array]["attributes"]
    api.write(f"{name}/example/{array}", "application/octet-stream", elements.tobytes())
    assert np.array_equal(group[array][...], elements) and group[array].dtype == "uint8"
    kvstore = {"driver": "http", "base_url": f"{url}/store/", "path": f"{name}/example/{array}/"}
    found = ts.open({"driver": driver, "kvstore": kvstore}, read=True, open=True).result()
    assert np.array_equal(found.read().result(), elements)
    # The same text again describes the existing nodes, and so does its canonical form.
    for body in (text, answer):
        status, _, _ = api.expect("PUT", f"/node/{name}/example", body, {"Content-Type": "application/json"})
        assert status == 200, status
print(f"zarr-python {zarr.__version__} and tensorstore opened both examples of ZEP 6")
