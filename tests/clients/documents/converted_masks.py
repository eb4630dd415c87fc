"""Converts datasets that xarray wrote, in place and to copies, and opens them with xarray before and after: values,
missing ones, types and the attributes that CF names are the same, or the difference is among the losses.

    converted_masks.py URL
"""

import itertools
import json
import os
import random
import sys
import tempfile
import warnings
from urllib.request import Request, urlopen

import numpy as np
import xarray as xr
import zarr

url = sys.argv[1]
warnings.simplefilter("ignore")
SEED = 33
OPEN = {"consolidated": False, "chunks": None}
#: Attributes of CF; those with a missing value are compared by their effect.
CF = ["scale_factor", "add_offset", "units", "calendar", "_Unsigned", "dtype", "missing_value"]
TYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]


def request(method, path, body=None):
    with urlopen(Request(f"{url}{path}", body, method=method)) as answer:
        return answer.read()


def upload(directory, prefix):
    for root, _, files in os.walk(directory):
        for name in files:
            path = os.path.join(root, name)
            with open(path, "rb") as file:
                request("PUT", f"/store/{prefix}/{os.path.relpath(path, directory)}", file.read())


def download(prefix, directory):
    keys = json.loads(request("GET", f"/store/{prefix}/?list=keys&limit=10000"))["keys"]
    for key in keys:
        path = os.path.join(directory, os.path.relpath(key, prefix))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(request("GET", f"/store/{key}"))


def variable(randomness, dims, shape):
    """Stored numbers with a fill value, a missing value, packing, or times."""
    dtype = np.dtype(randomness.choice(TYPES))
    values = randomness.choices([0, 1, 2, 3, 5, 7], k=int(np.prod(shape, dtype=int)))
    values = np.array(values, dtype).reshape(shape)
    attributes, null = {}, object()
    fill = randomness.choice([null, 0, 3, 9] + ([np.nan] if dtype.kind == "f" else []))
    mask = randomness.choice([null, null, 0, 3, 7] + ([np.nan] if dtype.kind == "f" else []))
    kind = randomness.choice(["plain", "plain", "packed", "time", "missing", "unsigned"])
    if kind == "packed":
        attributes |= {"scale_factor": 0.5, "add_offset": 1.0}
    elif kind == "time" and dtype.itemsize >= 4:
        attributes |= {"units": "days since 2000-01-01", "calendar": "proleptic_gregorian"}
    elif kind == "missing" and dtype.kind != "f":
        attributes["missing_value"] = 1
    elif kind == "unsigned" and dtype.kind == "i":
        attributes["_Unsigned"] = "true"
    return dims, values, attributes, None if fill is null else fill, None if mask is null else mask


def write(directory, version, variables, stores_all):
    """Writes variables by zarr-python in the notation of xarray, whose writer makes some of them impossible."""
    group = zarr.open_group(directory, mode="w", zarr_format=version)
    group.attrs["Conventions"] = "CF-1.11"
    for name, (dims, values, attributes, fill, mask) in variables.items():
        attributes = dict(attributes)
        dtype = values.dtype
        if mask is not None:
            if version == 3:
                mask = xr.backends.zarr.FillValueCoder.encode(dtype.type(mask), dtype)
            attributes["_FillValue"] = mask if isinstance(mask, str) else np.array(mask, dtype).item()
        options = {"dimension_names": dims} if version == 3 and dims else {}
        if version == 3 and fill is None:
            fill = 0
        array = group.create_array(
            name, shape=values.shape, dtype=dtype, chunks=tuple(max(1, -(-n // 2)) for n in values.shape), fill_value=fill,
            chunk_key_encoding={"name": "v2", "separator": "."}, config={"write_empty_chunks": stores_all}, **options,
        )
        # Chunks that are missing, and with `null` have no elements.
        if stores_all or fill is None or not values.ndim:
            array[...] = values
        else:
            array[: values.shape[0] // 2] = values[: values.shape[0] // 2]
        if version == 2:
            attributes["_ARRAY_DIMENSIONS"] = list(dims)
        array.attrs.update(attributes)


def opened(directory, version):
    with xr.open_zarr(directory, zarr_format=version, **OPEN) as dataset:
        return dataset.load()


def compared(found, expected):
    """The variables that differ."""
    assert set(found.variables) == set(expected.variables), (found, expected)
    assert found.attrs == expected.attrs
    different = {}
    for name, before in expected.variables.items():
        after = found.variables[name]
        attributes = [[{**one.encoding, **one.attrs}.get(of) for of in CF] for one in (before, after)]
        same = after.dtype == before.dtype and after.dims == before.dims and after.equals(before)
        if not same or str(attributes[0]) != str(attributes[1]):
            different[name] = (before, after, attributes)
    return different


def generated(number):
    randomness = random.Random(SEED + number)
    variables = {
        "x": (("x",), np.arange(6, dtype=randomness.choice(["i4", "f8"])), {}, randomness.choice([None, 0]), None),
        "time": (("time",), np.arange(4, dtype="i8"), {"units": "hours since 2020-01-01"}, randomness.choice([None, 0]), None),
        "height": variable(randomness, (), ()),
        "flag": ((), np.array(randomness.random() < 0.5), {}, False, None),
    }
    for index in range(4):
        variables[f"v{index}"] = variable(randomness, ("time", "x"), (4, 6))
    return variables, randomness.random() < 0.6


def check(number, version):
    """The numbers of variables, and of those with a loss."""
    variables, stores_all = generated(number)
    to = 5 - version
    with tempfile.TemporaryDirectory() as home:
        write(f"{home}/before", version, variables, stores_all)
        before = opened(f"{home}/before", version)
        lost = 0
        for place in ("in-place", "copy"):
            at = f"{place}-{version}-{number}"
            upload(f"{home}/before", at)
            target = "" if place == "in-place" else f"&target=/{at}-to"
            report = json.loads(request("POST", f"/node/{at}?convert=v{to}{target}"))
            assert report["nodes"] == len(variables) + 1, report
            losses = {loss["path"].split("/")[-1]: loss for loss in report["losses"]}
            download(at if not target else f"{at}-to", f"{home}/{place}")
            after = opened(f"{home}/{place}", to)
            different = compared(after, before)
            unnamed = {name: it for name, it in different.items() if name not in losses}
            assert not unnamed, f"{at}: {variables} {unnamed} {losses}"
            if place == "in-place":
                assert not compared(opened(f"{home}/{place}", version), before), "the original has changed"
            if stores_all and version == 3:
                # Everything can be expressed but booleans.
                assert set(losses) <= {"flag"}, f"{at}: {losses}"
            lost = len(losses)
        return len(variables), lost


counts = [check(number, version) for number, version in itertools.product(range(20), (2, 3))]
count, lost = (sum(column) for column in zip(*counts))
assert 0 < lost < count
print(f"{len(counts)} datasets with {count} variables, of which {lost} have a loss")
