"""Writes to a server with NumPy's own files, and compares what it stores with NumPy and xarray.

Usage: datasets.py URL CASES SEED cast|pack|append

`cast` writes random arrays of one type into arrays of another and compares with `astype`; `pack` writes decoded elements
with `decode=cf` and compares with `encode_cf_variable`; `append` grows a dataset by `savez` and `savez_compressed`. Each
prints counts as JSON.
"""

import collections
import io
import json
import random
import sys
import urllib.error
import urllib.request
import warnings

import numpy as np
import xarray as xr
from xarray.conventions import encode_cf_variable

TYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
NPY, NPZ, JSON = "application/x-npy", "application/x-npz", "application/json"


def call(method, url, body, kind):
    request = urllib.request.Request(url, body, {"Content-Type": kind}, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def created(base, path, **document):
    status, answer = call("PUT", f"{base}node/{path}?overwrite", json.dumps(document).encode(), JSON)
    assert status in (200, 201), answer


def stored(base, path):
    with urllib.request.urlopen(f"{base}array/{path}?format=npy&decode=none") as answer:
        return np.load(io.BytesIO(answer.read()))


def npy(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def cast(base, cases, rng):
    counts = collections.Counter()
    np_rng = np.random.default_rng(rng.getrandbits(32))
    for case in range(cases):
        source, target = np.dtype(rng.choice(TYPES)), np.dtype(rng.choice(TYPES))
        rule = rng.choice(["safe", "same_kind", "unsafe"])
        shape = (rng.randrange(1, 5), rng.randrange(1, 5))
        scale = rng.choice([1, 100, 300, 70_000, 2.0**40, 1e39])
        numbers = np_rng.normal(size=shape) * scale
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            array = (numbers + 1j * numbers[::-1] if source.kind == "c" else np.trunc(numbers)).astype(source)
        if rng.random() < 0.3:
            array = np.asfortranarray(array)
        if rng.random() < 0.3:
            array = array.astype(array.dtype.newbyteorder(">"))
        created(base, "cast", shape=shape, dtype=target.name)
        status, answer = call("PUT", f"{base}array/cast?casting={rule}", npy(array), NPY)
        if not np.can_cast(source, target, rule):
            assert status == 400 and answer["type"].endswith("body-shape-mismatch"), (source, target, rule, answer)
            counts["not allowed"] += 1
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = array.astype(target, casting=rule)
        changes = changed(array, expected, rule)
        if changes.any():
            assert status == 400 and answer["type"].endswith("invalid-element"), (source, target, rule, array, answer)
            first = tuple(int(index) for index in np.argwhere(changes)[0])
            assert tuple(answer["element"]) == first, (answer, array)
            counts["not in range"] += 1
            continue
        assert status == 200, (source, target, rule, array, answer)
        found = stored(base, "cast")
        assert found.dtype == target and found.tobytes() == expected.tobytes(), (array, found, expected)
        counts["equal"] += 1
    return counts


def changed(array, expected, rule):
    """The elements that NumPy makes another number, or an arbitrary one."""
    real = array.real.astype(np.longdouble)
    if expected.dtype.kind in "iu":
        info = np.iinfo(expected.dtype)
        beyond = ~((np.trunc(real) >= info.min) & (np.trunc(real) <= info.max))
        return np.zeros_like(beyond) if rule == "unsafe" and array.dtype.kind in "biu" else beyond
    if rule == "unsafe":
        return np.zeros(array.shape, bool)
    return np.isfinite(array) & ~np.isfinite(expected)


def pack(base, cases, rng):
    counts = collections.Counter()
    np_rng = np.random.default_rng(rng.getrandbits(32))
    for case in range(cases):
        dtype = np.dtype(rng.choice("int8 int16 int32 uint8 uint16 float32 float64".split()))
        attributes = {}
        if rng.random() < 0.8:
            attributes["scale_factor"] = rng.choice([0.1, 0.01, 2.5, 1 / 3])
        if rng.random() < 0.6:
            attributes["add_offset"] = rng.choice([273.15, -10.0, 0.5])
        if rng.random() < 0.7 or not attributes:
            attributes["_FillValue"] = -9 if dtype.kind != "u" else 250
        packed = np_rng.integers(0, 120, 40)
        values = packed * attributes.get("scale_factor", 1) + attributes.get("add_offset", 0)
        values = values + np_rng.choice([0, 0.5, 0.25, 1e-7], 40) * attributes.get("scale_factor", 1)
        values = values.astype(rng.choice(["float32", "float64"]))
        if "_FillValue" in attributes:
            values[np_rng.random(40) < 0.2] = np.nan
        typed = {name: dtype.type(value) if name == "_FillValue" else value for name, value in attributes.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            variable = xr.Variable(("x",), values, encoding={**typed, "dtype": dtype})
            expected = encode_cf_variable(variable).values
        declared = dict(attributes)
        if dtype.kind == "f" and "_FillValue" in declared:
            # As xarray writes it in v3.
            declared["_FillValue"] = __import__("base64").b64encode(np.float64(declared["_FillValue"]).tobytes()).decode()
        created(base, "pack", shape=[40], dtype=dtype.name, attributes=declared)
        status, answer = call("PUT", f"{base}array/pack?decode=cf", npy(values), NPY)
        assert status == 200, (attributes, dtype, values, answer)
        found = stored(base, "pack")
        assert found.dtype == dtype and found.tobytes() == expected.tobytes(), (attributes, values, found, expected)
        counts["numbers"] += 40
    for case in range(cases):
        unit = rng.choice(["days", "hours", "minutes", "seconds"])
        units = f"{unit} since {rng.choice(['1970-01-01', '2001-02-03T04:05:06', '1899-12-31 12:00'])}"
        dtype = np.dtype(rng.choice(["int64", "float64"]))
        code = {"days": "D", "hours": "h", "minutes": "m", "seconds": "s"}[unit]
        reference = np.datetime64(units.split(" since ")[1].replace(" ", "T"), "s")
        steps = np_rng.integers(-30_000, 60_000, 20).astype(f"m8[{code}]")
        values = reference + steps.astype("m8[s]")
        if dtype.kind == "f":
            values = values + np_rng.integers(0, 3, 20).astype("m8[s]")
        values = values.astype(rng.choice(["M8[s]", "M8[ns]", "M8[us]"]))
        attributes = {"units": units, "calendar": "proleptic_gregorian"}
        variable = xr.Variable(("x",), values, encoding={**attributes, "dtype": dtype})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = encode_cf_variable(variable).values
        created(base, "pack", shape=[20], dtype=dtype.name, attributes=attributes)
        status, answer = call("PUT", f"{base}array/pack", npy(values), NPY)
        assert status == 200, (units, values, answer)
        found = stored(base, "pack")
        assert np.allclose(found, expected, rtol=1e-15, atol=0) and found.dtype == dtype, (units, found, expected)
        counts["times"] += 20
        texts = json.dumps([str(value) for value in values.astype("M8[s]")]).encode()
        status, answer = call("PUT", f"{base}array/pack", texts, JSON)
        assert status == 200 and stored(base, "pack").tobytes() == found.tobytes(), answer
    return counts


def append(base, cases, rng):
    counts = collections.Counter()
    dims = {"time": ["time"], "rain": ["time", "y"], "wind": ["y", "time"], "sun": ["time"], "code": ["time", "y"]}
    types = {"time": "int32", "rain": "float32", "wind": "int16", "sun": "bool", "code": "string"}
    shapes = {name: [0 if dim == "time" else 3 for dim in of] for name, of in dims.items()}
    members = {
        name: {"shape": shapes[name], "dtype": types[name], "dimension_names": dims[name]} for name in dims
    }
    members["time"]["attributes"] = {"units": "days since 2020-01-01"}
    members["y"] = {"shape": [3], "dtype": "float64", "dimension_names": ["y"]}
    created(base, "w", zarr_format=3, node_type="group", members=members)
    whole = {name: [] for name in dims}
    extent = 0
    for case in range(cases):
        count = rng.randrange(1, 4)
        part = {
            "time": np.arange(extent, extent + count) + np.datetime64("2020-01-01"),
            "rain": np.random.default_rng(case).random((count, 3)),
            "wind": np.asfortranarray(np.arange(3 * count, dtype=rng.choice(["i1", ">i4", "i8"])).reshape(3, count)),
            "sun": np.arange(count) % 2 == 0,
            "code": np.array([[f"{case}é", "", "x"]] * count),
        }
        file = io.BytesIO()
        names = rng.sample(list(part), len(part))
        rng.choice([np.savez, np.savez_compressed])(file, **{name: part[name] for name in names})
        wrong = dict(part)
        del wrong[rng.choice(names)]
        bad = io.BytesIO()
        np.savez(bad, **wrong)
        status, answer = call("POST", f"{base}node/w?append=time", bad.getvalue(), NPZ)
        assert status == 409 and len(answer["missing"]) == 1, answer
        status, answer = call("POST", f"{base}node/w?append=time", file.getvalue(), NPZ)
        assert status == 200, answer
        extent += count
        assert json.loads(answer)["after"] == extent
        status, answer = call("POST", f"{base}node/w?append=time", file.getvalue(), NPZ)
        assert status == 409 and answer["type"].endswith("discontinuous-coordinate"), answer
        for name, array in part.items():
            whole[name].append(array)
        counts["appended"] += 1
    for name, parts in whole.items():
        expected = np.concatenate(parts, axis=dims[name].index("time"))
        if name == "time":
            expected = np.arange(extent, dtype="i4")
        if name == "code":
            with urllib.request.urlopen(f"{base}array/w/code?format=json") as answer:
                assert json.loads(answer.read()) == expected.tolist()
            continue
        found = stored(base, f"w/{name}")
        assert np.array_equal(found, expected.astype(types[name])), (name, found, expected)
        counts["equal"] += 1
    return counts


def main():
    base, cases, seed, mode = sys.argv[1:]
    counts = {"cast": cast, "pack": pack, "append": append}[mode](base, int(cases), random.Random(int(seed)))
    print(json.dumps(dict(sorted(counts.items()))))


main()
