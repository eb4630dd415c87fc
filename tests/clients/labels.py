"""Stores with coordinates by xarray, in v2 and v3, and answers of a server over them compared with xarray's own.

    labels.py write DIR
    labels.py compare DIR URL

The last line of the output counts the compared answers.
"""

import io
import json
import sys
import urllib.error
import urllib.parse
import urllib.request
import warnings

import numpy as np
import pandas as pd
import xarray as xr
import zarr

warnings.simplefilter("ignore")
# The number of faults that comparisons noticed.
FAULTS = 0
NAMES = ["my.time", "a b", "x+y", "v~", "p..q", "é"]


def dataset():
    """Dimensions with coordinates of every kind, and without."""
    time = pd.date_range("2019-12-30", periods=60, freq="12h")
    air = np.arange(60 * 5 * 4, dtype="<f4").reshape(60, 5, 4) / 8
    air[3, 2, 1] = np.nan
    coords = {"time": time, "lat": np.array([60, 57.5, 55, 52.5, 50], "<f4"), "lon": [0.1, 0.2, 0.3, 0.4],
              "station": ["a", "b,c", 'say "hi"', ""], "step": pd.to_timedelta([0, 6, 12], "h"),
              "obs": pd.date_range("2020-01-01", periods=4)}  # fmt: skip
    data = {
        "air": (("time", "lat", "lon"), air),
        "packed": (("time", "lat"), air[:, :, 0]),
        "at": (("station",), np.arange(4)),
        "ahead": (("step",), np.arange(3)),
        "plain": (("nothing", "lat"), np.arange(10).reshape(2, 5)),
        "flag": (("lon",), np.array([True, False, True, True])),
        "twice": (("again",), np.arange(4)),
    }
    coords["again"] = [1, 2, 2, 3]
    dataset = xr.Dataset(data, coords=coords)
    dataset["lat"].attrs["units"] = "degrees_north"
    dataset["air"].attrs["units"] = "K"
    # Bounds, whose units xarray leaves to the times.
    dataset["time"].attrs["bounds"] = "time_bnds"
    cells = np.stack([time, time + pd.Timedelta("12h")], axis=1)
    dataset["time_bnds"] = (("time", "edge"), cells)
    # A coordinate that is no dimension.
    valid = pd.date_range("2020-01-01", periods=3, freq="6h")
    dataset = dataset.assign_coords(valid=("step", valid, {"bounds": "valid_bounds"}))
    dataset["valid_bounds"] = (("step", "edge"), np.stack([valid, valid + pd.Timedelta("1h")], axis=1))
    encoding = {"packed": {"dtype": "<i2", "scale_factor": -0.25, "add_offset": 10.0, "_FillValue": -32768},
                "time": {"units": "hours since 1900-01-01"}}  # fmt: skip
    return dataset, encoding


def calendars(calendar):
    time = xr.date_range("2000-02-01", periods=400, freq="D", calendar=calendar, use_cftime=True)
    cells = np.stack([time[:-1], time[1:]], axis=1)
    variables = {"flow": (("time",), np.arange(399.0)), "cells": (("time", "edge"), cells)}
    return xr.Dataset(variables, coords={"time": ("time", time[:-1], {"bounds": "cells"})})


def write(directory):
    for dialect in (2, 3):
        data, encoding = dataset()
        if dialect == 3:
            # base64 in the attributes
            encoding["air"] = {"_FillValue": 17.5}
        data.to_zarr(f"{directory}/v{dialect}", zarr_format=dialect, consolidated=False, encoding=encoding)
        for calendar in ("noleap", "360_day"):
            path = f"{directory}/v{dialect}_{calendar}"
            calendars(calendar).to_zarr(path, zarr_format=dialect, consolidated=False)
        odd = {name: np.arange(3) * 10 for name in NAMES}
        cube = xr.Dataset({"cube": (tuple(NAMES), np.arange(3**6).reshape([3] * 6))}, coords=odd)
        cube.to_zarr(f"{directory}/v{dialect}_odd", zarr_format=dialect, consolidated=False)
        # Coordinates of a group above.
        group = zarr.open_group(f"{directory}/v{dialect}", mode="a", zarr_format=dialect)
        deep = group.create_group("deep")
        names = {"dimension_names": ["lat"]} if dialect == 3 else {}
        below = deep.create_array("below", shape=(5,), dtype="<i4", fill_value=0, **names)
        below[...] = np.arange(5)
        if dialect == 2:
            below.attrs["_ARRAY_DIMENSIONS"] = ["lat"]


class Server:
    def __init__(self, url):
        self.url, self.answers = url, 0

    def get(self, path, **query):
        text = urllib.parse.urlencode({name.replace("__", "."): value for name, value in query.items()})
        return self.open(f"{self.url}/array/{path}?{text}")

    def open(self, request):
        self.answers += 1
        try:
            with urllib.request.urlopen(request) as response:
                self.headers = response.headers
                return response.read()
        except urllib.error.HTTPError as error:
            self.headers = error.headers
            return json.loads(error.read())

    def array(self, path, **query):
        answer = self.get(path, format="npy", **query)
        assert isinstance(answer, bytes), answer
        return np.load(io.BytesIO(answer))

    def problem(self, path, **query):
        answer = self.get(path, format="json", **query)
        assert isinstance(answer, dict), answer
        return answer["type"].rsplit("/")[-1], answer


def equal(found, expected, what):
    """Compares an answer, and sees to it that another one would have been noticed."""
    global FAULTS
    compare_arrays(found, expected, what)
    for fault in faults(found):
        try:
            compare_arrays(fault, expected, what)
        except AssertionError:
            FAULTS += 1
        else:
            raise AssertionError(f"a fault was not noticed: {what}")


def faults(found):
    """The same elements with another type, another shape, and another value."""
    yield found.astype("S1") if found.dtype.kind in "U" else found.astype("f4" if found.dtype == "f8" else "f8")
    yield found[..., None]
    if found.size:
        other = found.reshape(-1).copy()
        if other.dtype.kind in "mM":
            other[-1] += 1
        elif other.dtype.kind == "f":
            other[-1] = np.nextafter(other[-1], np.inf) if np.isfinite(other[-1]) else 0
        elif other.dtype.kind in "biu":
            other[-1] ^= True
        else:
            other[-1] = "?"
        yield other.reshape(found.shape)


def compare_arrays(found, expected, what):
    expected = np.asarray(expected)
    assert found.dtype == expected.dtype and found.shape == expected.shape, (what, found, expected)
    np.testing.assert_array_equal(found, expected, err_msg=str(what))


def compare_selections(server, path, data):
    """`sel` and `isel`, alone and together."""
    air = data["air"]
    for query, expected in [
        ({"sel__time": "2020-01-01T12:00:00"}, air.sel(time="2020-01-01T12")),
        ({"sel__time": "2020-01"}, air.sel(time=slice("2020-01", "2020-01"))),
        ({"sel__time": "2020-01-02"}, air.sel(time=slice("2020-01-02", "2020-01-02"))),
        ({"sel__time": "2019-12-31..2020-01-03"}, air.sel(time=slice("2019-12-31", "2020-01-03"))),
        ({"sel__time": "-P2D.."}, air.sel(time=slice(air.time[-1] - np.timedelta64(2, "D"), None))),
        ({"sel__time": "2020-01-05T07:00~"}, air.sel(time="2020-01-05T07:00", method="nearest")),
        ({"sel__time": "2020-01-05T06:00~"}, air.sel(time="2020-01-05T12:00")),
        ({"sel__time": "2020-01-05T02:00:00+02:00"}, air.sel(time="2020-01-05T00:00:00")),
        ({"sel__lat": "52.5"}, air.sel(lat=52.5)),
        ({"sel__lat": "50..56"}, air.sel(lat=slice(56, 50))),
        ({"sel__lat": "56.25~"}, air.sel(lat=57.5)),
        ({"sel__lat": "(60,50,60)"}, air.sel(lat=[60, 50, 60])),
        ({"sel__lon": "0.3", "sel__lat": "56~2"}, air.sel(lon=0.3).sel(lat=56, method="nearest")),
        ({"sel__lon": "0.2..0.3", "isel__time": "::7"}, air.isel(time=slice(None, None, 7)).sel(lon=slice(0.2, 0.3))),
        ({"isel__0": "3", "isel__lon": "(0,-1)"}, air.isel(time=3, lon=[0, -1])),
        ({"isel__lat": "::-1"}, air.isel(lat=slice(None, None, -1))),
        ({"sel__time": "1999..2000"}, air.isel(time=slice(0, 0))),
    ]:
        equal(server.array(f"{path}/air", decode="cf", **query), expected, query)
        names = json.loads(server.headers.get("Zarr-Dimension-Names", "[]"))
        assert tuple(names) == expected.dims, (query, names)
        assert set(json.loads(server.headers["Zarr-Selected"])) <= set(air.dims), query
        for dim in expected.dims:
            labels = server.array(f"{path}/air", labels=dim, **query)
            equal(labels, expected[dim], (query, dim))
    equal(server.array(f"{path}/at", sel__station='"say ""hi"""'), data["at"].sel(station='say "hi"'), "quotes")
    equal(server.array(f"{path}/at", sel__station='("b,c",a)'), data["at"].sel(station=["b,c", "a"]), "list")
    equal(server.array(f"{path}/ahead", sel__step="PT6H"), data["ahead"].sel(step="6h"), "timedelta")
    equal(server.array(f"{path}/ahead", sel__step="PT6H.."), data["ahead"].sel(step=slice("6h", None)), "timedelta")
    equal(server.array(f"{path}/ahead", sel__valid="2020-01-01T07:00~"), np.int64(1), "another coordinate")
    equal(server.array(f"{path}/twice", sel__again="2..2"), data["twice"].sel(again=2), "duplicates")
    equal(server.array(f"{path}/deep/below", sel__lat="60..56"), np.array([], "<i4"), "empty")
    equal(server.array(f"{path}/deep/below", sel__lat="56..60"), np.array([0, 1], "<i4"), "of the group above")
    body = json.dumps({"sel": {"time": "2020-01-02", "lat": [52.5, 60]}, "isel": {"lon": {"stop": 2}}}).encode()
    request = urllib.request.Request(f"{server.url}/array/{path}/air?read&format=npy&decode=cf", body,
                                     {"Content-Type": "application/json"}, method="POST")  # fmt: skip
    expected = air.sel(time="2020-01-02", lat=[52.5, 60]).isel(lon=slice(2))
    equal(np.load(io.BytesIO(server.open(request))), expected, "body")


def compare_decoding(server, path, data):
    for name in ["air", "packed", "flag", "time", "time_bnds", "valid_bounds", "lat", "step", "valid"]:
        equal(server.array(f"{path}/{name}", decode="cf"), data[name], name)
    stored = zarr.open(f"{sys.argv[2]}/{path}/packed", mode="r")[...]
    equal(server.array(f"{path}/packed"), stored, "as stored")
    assert stored.dtype == "<i2"


def compare_answers(server, path, data):
    """Answers with their labels."""
    expected = data["air"].sel(time="2020-01-02").isel(lat=2)
    answer = server.get(f"{path}/air", format="xarray", decode="cf", sel__time="2020-01-02", isel__lat="2")
    answer = json.loads(answer)
    found = xr.DataArray.from_dict(answer).astype(answer["dtype"])
    for name, coordinate in answer["coords"].items():
        found[name] = found[name].astype(coordinate["dtype"])
    xr.testing.assert_equal(found, expected)
    assert found.attrs == {"units": "K"} and found.name == "air" and found.lat.attrs["units"] == "degrees_north"
    csv = server.get(f"{path}/air", format="csv", header="labels", sel__time="2020-01-02", isel__lat="2")
    frame = pd.read_csv(io.BytesIO(csv), index_col=0)
    assert frame.index.name == "time" and list(frame.columns) == ["0.1", "0.2", "0.3", "0.4"], frame
    np.testing.assert_array_equal(pd.to_datetime(frame.index), expected.time)
    np.testing.assert_array_equal(frame.to_numpy("<f4"), expected)
    csv = server.get(f"{path}/at", format="csv", header="labels").decode()
    assert csv == 'station,at\r\na,0\r\n"b,c",1\r\n"say ""hi""",2\r\n"",3\r\n', csv


def compare_calendars(server, dialect):
    for calendar in ("noleap", "360_day"):
        path = f"{dialect}_{calendar}"
        data = xr.open_zarr(f"{sys.argv[2]}/{path}", consolidated=False)["flow"]
        for text in ("2000-02", "2000-03-01", "2001"):
            equal(server.array(f"{path}/flow", sel__time=text), data.sel(time=slice(text, text)), (calendar, text))
        cells = xr.open_zarr(f"{sys.argv[2]}/{path}", consolidated=False)["cells"]
        found = json.loads(server.get(f"{path}/cells", decode="cf", isel__time=":3", format="json"))
        assert found == [[edge.isoformat() for edge in cell] for cell in cells[:3].values], found
        labels = json.loads(server.get(f"{path}/flow", labels="time", isel__time=":3", format="json"))
        assert labels == [time.isoformat() for time in data.time[:3].values], labels
        assert server.get(f"{path}/flow", labels="time", format="npy")["status"] == 406
        assert server.get(f"{path}/time", decode="cf", format="raw")["type"].endswith("/unsuitable-format")


def compare_names(server, dialect):
    cube = xr.open_zarr(f"{sys.argv[2]}/{dialect}_odd", consolidated=False)["cube"]
    for name in NAMES:
        equal(server.array(f"{dialect}_odd/cube", **{f"sel__{name}": "10"}), cube.sel({name: 10}), name)
        equal(server.array(f"{dialect}_odd/cube", **{f"isel__{name}": "::2"}), cube.isel({name: [0, 2]}), name)


def compare_problems(server, path):
    for kind, name, query in [
        ("no-coordinate", "plain", {"sel__nothing": "1"}),
        ("unknown-dimension", "plain", {"isel__height": "1"}),
        ("unknown-dimension", "plain", {"sel__height": "1"}),
        ("dimension-repeated", "plain", {"isel__lat": "1", "sel__1": "50"}),
        ("selection-conflict", "plain", {"isel__lat": "1", "select": "0"}),
        ("invalid-label", "air", {"sel__time": "yesterday"}),
        ("invalid-label", "air", {"sel__lat": "north"}),
        ("invalid-label", "air", {"sel__lat": "1...2"}),
        ("invalid-label", "air", {"sel__lat": "x" * 5000}),
        ("label-not-found", "air", {"sel__time": "2031"}),
        ("label-not-found", "air", {"sel__lat": "56~0.5"}),
        ("ambiguous-label", "twice", {"sel__again": "2"}),
        ("index-out-of-bounds", "air", {"isel__lat": "7"}),
        ("invalid-selection", "air", {"isel__lat": "..."}),
        ("invalid-parameter", "air", {"decode": "CF"}),
    ]:
        found, problem = server.problem(f"{path}/{name}", **query)
        assert found == kind, (query, problem)
    _, problem = server.problem(f"{path}/air", sel__lat="51")
    assert (problem["nearest"], problem["first"], problem["last"]) == (50.0, 60.0, 50.0), problem


def compare(directory, url):
    server = Server(url)
    for dialect in ("v2", "v3"):
        data = xr.open_zarr(f"{directory}/{dialect}", consolidated=False)
        compare_selections(server, dialect, data)
        compare_decoding(server, dialect, data)
        compare_answers(server, dialect, data)
        compare_calendars(server, dialect)
        compare_names(server, dialect)
        compare_problems(server, dialect)
    print(f"{server.answers} answers are those of xarray, {FAULTS} faults were noticed")


if sys.argv[1] == "write":
    write(sys.argv[2])
else:
    compare(sys.argv[2], sys.argv[3])
