"""Makes `crates/cf/tests/data/decoding.jsonl`: arrays as stored, and as `xarray.open_zarr` decodes them.

    cf_decoding.py [FILE [ONE_IN]]

Each line is an object: `dialect`, `data_type` (v3), `fill_value`, `attributes` (JSON text), `stored` (hex), and of the
result `decoded_type` with `decoded` (hex), or `texts` for times that xarray makes objects of, or `error`.
"""

import itertools
import json
import pathlib
import random
import sys
import warnings

import numpy as np
import xarray as xr
import zarr

warnings.simplefilter("ignore")
FILE = pathlib.Path(__file__).parents[2] / "crates/cf/tests/data/decoding.jsonl"
NAMES = {"i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64", "u1": "uint8", "u2": "uint16", "u4": "uint32",
         "u8": "uint64", "f2": "float16", "f4": "float32", "f8": "float64", "b1": "bool"}  # fmt: skip
random.seed(20261123)


def case(dialect, data, attributes, fill_value=None):
    """One line; `attributes` is a dict, or a JSON text."""
    store = zarr.storage.MemoryStore()
    group = zarr.open_group(store, mode="w", zarr_format=int(dialect[1]))
    names = {"dimension_names": ["d"]} if dialect == "v3" else {}
    array = group.create_array("v", shape=data.shape, dtype=data.dtype, fill_value=fill_value, chunks=data.shape, **names)
    array[...] = data
    text = attributes if isinstance(attributes, str) else json.dumps(attributes)
    array.attrs.put(json.loads(text) | ({} if names else {"_ARRAY_DIMENSIONS": ["d"]}))
    stored_fill = array.metadata.to_dict()["fill_value"]
    line = {"dialect": dialect, "data_type": NAMES[data.dtype.str[1:]], "attributes": text, "stored": data.tobytes().hex(),
            "fill_value": None if stored_fill is None else np.array(stored_fill).astype(data.dtype).tobytes().hex()}  # fmt: skip
    try:
        values = xr.open_zarr(store, consolidated=False)["v"].values
    except Exception as error:
        return line | {"error": type(error).__name__}
    if values.dtype == object:
        return line | {"texts": ["NaT" if not hasattr(value, "isoformat") else value.isoformat() for value in values]}
    name = NAMES.get(values.dtype.str[1:])
    unit = values.dtype.str[3:].strip("[]") if values.dtype.kind in "mM" else None
    name = name or {"M": "numpy.datetime64", "m": "numpy.timedelta64"}[values.dtype.kind] + f"[{unit}]"
    return line | {"decoded_type": name, "decoded": values.tobytes().hex()}


def base64_of(value):
    return xr.backends.zarr.FillValueCoder.encode(value, np.dtype("f8"))


def numbers():
    """Every type with every combination of attributes."""
    for kind, dialect in itertools.product(["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"], ["v2", "v3"]):
        dtype = np.dtype("<" + kind)
        if dtype.kind == "f":
            data = np.array([0, 1, -2.5, 100.25, np.nan, np.inf, 9999, 1e4, 1e38], dtype=dtype)
            fill, other = 9999.0, 100.25
        else:
            info = np.iinfo(dtype)
            data = np.array([0, 1, 2, 100, info.min, info.max, info.max // 2, 99], dtype=dtype)
            fill, other = int(info.min if dtype.kind == "i" else info.max), 100
        fills = [{}, {"missing_value": other}, {"missing_value": [1, other]}]
        if dialect == "v3":
            fills += [{"_FillValue": base64_of(fill) if dtype.kind == "f" else fill}]
            fills += [{"_FillValue": base64_of(fill) if dtype.kind == "f" else fill, "missing_value": other}]
            if dtype.kind == "f":
                fills += [{"_FillValue": base64_of(float("nan"))}]
        scales = [{}, {"scale_factor": 0.1}, {"scale_factor": -0.5, "add_offset": 273.15}, {"add_offset": 10.5},
                  {"scale_factor": 2}, {"scale_factor": 0.01, "add_offset": 100}, {"add_offset": 3}]  # fmt: skip
        unsigned = [{}, {"_Unsigned": "true"}, {"_Unsigned": "false"}] if dtype.kind in "iu" else [{}]
        stored_fills = [None, fill, 0] if dialect == "v2" else [0]
        for parts in itertools.product(fills, scales, unsigned, stored_fills):
            if dtype.kind == "f" and isinstance(parts[1].get("scale_factor"), int):
                continue  # cut off to int64 by xarray, NaN and infinities too
            yield dialect, data, parts[0] | parts[1] | parts[2], parts[3]
        for attributes in [{"dtype": "bool"}, {"dtype": "bool", "missing_value": other}, {"missing_value": "none"},
                           {"units": "m"}, {"units": "days"}, {"valid_range": [0, 1]}]:  # fmt: skip
            yield dialect, data, attributes, None if dialect == "v2" else 0


def times():
    """Units, calendars and references of every kind."""
    units = ["days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "Hours", "day", "hr", "s", "h", "min"]
    references = ["2000-01-01", "1970-01-01 00:00:00", "1850-1-1", "2001-02-28T23:59:59Z", "1-1-1 00:00:0.0", "0001-01-01",
                  "2000-01-01 06:30:15.25", "2000-01-01 00:00 +02:00", "1582-10-04", "1582-10-15", "2000-01-01 12:00:00 UTC",
                  "1900-01-01 00:00:0.0", "1990-12-31 00:00:00 -05:30"]  # fmt: skip
    calendars = [None, "standard", "gregorian", "proleptic_gregorian", "noleap", "365_day", "360_day", "all_leap", "366_day",
                 "julian", "GREGORIAN", "martian"]  # fmt: skip
    for _ in range(900):
        unit, reference, calendar = random.choice(units), random.choice(references), random.choice(calendars)
        # Around the references, around today, and anywhere.
        scale = {"d": 1, "h": 24, "m": 1440, "s": 86400}.get(unit[0].lower(), 1)
        if unit.startswith(("milli", "micro")):
            scale = 86_400_000 * (1000 if unit.startswith("micro") else 1)
        span = random.choice([30, 40_000, 760_000]) * scale
        kind = random.choice(["i4", "i8", "f4", "f8", "u4"])
        low = 0 if kind == "u4" else -span // 10
        values = [random.uniform(low, span) for _ in range(8)]
        if kind[0] != "f" or random.random() < 0.3:
            values = [float(round(value)) for value in values]
        if kind in ("i4", "u4"):
            values = [min(value, 2**31 - 1) for value in values]
        data = np.array(values).astype("<" + kind)
        attributes = {"units": f"{unit} since {reference}"} | ({"calendar": calendar} if calendar else {})
        dialect, fill = random.choice(["v2", "v3"]), None
        # With cftime, xarray fails for missing times, or decodes what is below the mask.
        pandas = reference[:2] in ("19", "20") and len(unit) > 2 and unit != "min" and "_" not in (calendar or "")
        if random.random() < 0.5 and kind[0] != "f" and pandas and calendar not in ("noleap", "julian"):
            data[3] = 77
            attributes["missing_value"] = 77
        if random.random() < 0.15 and "missing_value" not in attributes:
            attributes |= {"scale_factor": 0.5, "add_offset": 1.5}
        yield dialect, data, attributes, fill if dialect == "v2" else 0
    yield "v3", np.array([1.5, np.nan, 3]), {"units": "days since 2000-01-01"}, 0
    yield "v3", np.array([1, -(2**63), 3]), {"units": "days since 2000-01-01"}, 0
    yield "v2", np.array([1, 0, 3], "<i4"), {"units": "days since 2000-01-01"}, 0
    yield "v3", np.array([1, 60, 90], "<i4"), {"units": "months since 2000-01-01", "calendar": "360_day"}, 0
    yield "v3", np.array([1, 60, 90], "<i4"), {"units": "common_years since 2000-01-01", "calendar": "noleap"}, 0
    yield "v3", np.array([1, 60, 90], "<i4"), {"units": "fortnights since 2000-01-01"}, 0
    yield "v3", np.array([1, 60, 90], "<i4"), {"units": "days since yesterday"}, 0
    yield "v3", np.array([1, 60, 90], "<i4"), {"units": "days since"}, 0
    yield "v3", np.array([1, 60, 90], "<i4"), {"units": "nanoseconds since 2000-01-01"}, 0
    # Julian references of Gregorian times.
    for calendar in (None, "gregorian"):
        attributes = {"units": "hours since 1-1-1 00:00:0.0"} | ({"calendar": calendar} if calendar else {})
        yield "v3", np.array([17067072, 17500000.5, 17876304.25]), attributes, 0
        yield "v3", np.array([17067072, 17500001], "<i4"), attributes, 0
        yield "v3", np.array([700000, 730000], "<i4"), attributes | {"units": "days since 1500-02-29"}, 0
        yield "v3", np.array([40000, 150000], "<i4"), attributes | {"units": "days since 1582-10-04"}, 0
    for unit, dtype in itertools.product(["days", "hours", "minutes", "seconds", "milliseconds", "microseconds",
                                          "nanoseconds", "day"], ["s", "ms", "us", "ns", "D"]):  # fmt: skip
        attributes = {"units": unit, "dtype": f"timedelta64[{dtype}]"}
        yield "v3", np.array([1, -5, 1000, 0], "<i4"), attributes, 0
        yield "v3", np.array([1, -5, 1000, -9], "<i8"), attributes | {"missing_value": -9}, 0
        yield "v3", np.array([2.0, -5, np.nan, 0], "<f8"), attributes, 0
        if dtype == "ns":
            yield "v3", np.array([1.5, -0.1, np.nan, 0.3], "<f8"), attributes, 0


def main():
    file = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else FILE
    one_in = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    cases = itertools.islice(itertools.chain(numbers(), times()), 0, None, one_in)
    lines = [case(dialect, data, attributes, fill) for dialect, data, attributes, fill in cases]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    print(f"{len(lines)} arrays, {sum('error' in line for line in lines)} of them errors")


main()
