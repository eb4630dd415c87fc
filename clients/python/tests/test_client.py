"""Groups and arrays: creating, reading, writing, labels, functions, errors."""

from __future__ import annotations

import pathlib
import pickle
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

import zarrd


@pytest.fixture
def group(server: zarrd.Server, path: str) -> zarrd.Group:
    return zarrd.connect(server.url).create_group(path, {"house": "B"})


def sea() -> xr.Dataset:
    time = np.datetime64("2020-01-31", "ns") + np.arange(4) * np.timedelta64(12, "h")
    data = np.array([[1, 2, 3], [4, 5, 6], [7, np.nan, 9], [8, 9, 10]]) * 0.5
    dataset = xr.Dataset(
        {"sst": (("time", "lat"), data, {"long_name": "temperature"})},
        coords={"time": time, "lat": [60.0, 55.0, 50.0]},
    )
    dataset.sst.encoding = {"dtype": "i2", "scale_factor": 0.5, "_FillValue": -1}
    return dataset


@pytest.fixture
def sst(group: zarrd.Group) -> zarrd.Array:
    group.put("sea", sea())
    array: zarrd.Array = group["sea/sst"]
    return array


def test_create_write_and_read(group: zarrd.Group) -> None:
    array = group.create_array("a/x", shape=(3, 4), dtype="i2", dims=("y", "x"), attrs={"units": "m"}, fill_value=-1)
    assert (array.shape, array.dtype, array.dims, array.chunks) == ((3, 4), np.dtype("i2"), ("y", "x"), (3, 4))
    assert (array[...] == -1).all() and array.attrs == {"units": "m"} and len(array) == 3 and array.size == 12
    array[1:, ::2] = [[1, 2], [3, 4]]
    assert array[1:, ::2].tolist() == [[1, 2], [3, 4]] and array[1, 0] == 1 and isinstance(array[1, 0], np.int16)
    assert array.append(np.ones(4)) == (4, 4) and array.append(np.ones((4, 2)), dim="x") == (4, 6)
    array.attrs["units"] = "cm"
    array.attrs.update({"a": 1, "b": [2]})
    del array.attrs["a"]
    assert dict(group["a/x"].attrs) == {"units": "cm", "b": [2]}
    array.resize(2, 6)
    assert zarr.open_array(array.url, mode="r").shape == (2, 6)
    assert pickle.loads(pickle.dumps(array))[1, 2] == 2


def test_documents_of_two_dialects_in_a_folder_are_resized_piecewise(tmp_path: pathlib.Path) -> None:
    for version, encoding in ((2, None), (3, {"name": "v2", "separator": "."})):
        form: dict[str, Any] = {"zarr_format": version, "chunk_key_encoding": encoding, "compressors": None}
        zarr.create_array(tmp_path / "a", shape=(8,), chunks=(4,), dtype="u1", **form)
    with zarrd.Server(f"dir:{tmp_path}?writes=yes") as server:
        array = zarrd.connect(server.url)["a"]
        with pytest.raises(zarrd.ZarrdError, match="piecewise"):
            array.resize(6)
        array.resize(6, piecewise=True)
        assert array.shape == (6,)
    for version in (2, 3):
        assert zarr.open_array(tmp_path / "a", mode="r", zarr_format=version).shape == (6,)


def test_groups(group: zarrd.Group) -> None:
    assert group.attrs == {"house": "B"} and group.keys() == [] and "x" not in group and group.get("x") is None
    group.create_array("x", data=np.arange(3.0))
    group.create_array("g/words", data=np.array(["zwei", "vierzig"], object))
    assert group.keys() == ["g", "x"] == list(group) and "g/words" in group and len(group) == 2
    assert list(group.arrays()) == ["x"] and list(group.groups()) == ["g"]
    assert repr(group.tree()) == f"/{group.path}\n├── g/\n│   └── words  (2,) text\n└── x  (3,) float64"
    assert "words" in group._repr_html_() and "float64" in group["x"]._repr_html_()
    assert repr(group["x"]) == f"<zarrd.Array /{group.path}/x (?: 3) float64>" and "g, x" in repr(group)
    with pytest.raises(zarrd.ConflictError, match="expected"):
        group.create_array("x", shape=3, dtype="i4")
    assert group.create_array("x", shape=3, dtype="i4", overwrite=True).dtype == "i4"
    del group["x"]
    with pytest.raises(zarrd.NotFoundError):
        del group["x"]
    assert group.delete("g") > 0 and group.keys() == []


@pytest.mark.parametrize(
    "data",
    [
        np.array([True, False]),
        np.array([1.5, np.nan, np.inf]),
        np.array([1 + 2j, np.nan]),
        np.array(["2020-01-31T06", "NaT"], "M8[h]"),
        np.array([5, -5], "m8[25s]"),
        np.array(["a", "bcd", ""]),
        np.array([b"a", b"bcd"]),
        np.array(["a", "", "ä" * 300], object),
        np.array(7, "u8"),
        np.zeros((0, 3), "f4"),
        np.arange(24, dtype=">i4").reshape(2, 3, 4),
    ],
    ids=lambda data: str(data.dtype),
)
def test_types(group: zarrd.Group, data: Any) -> None:
    array = group.create_array("a", data=data)
    found = np.asarray(array[...])
    assert found.dtype == data.dtype.newbyteorder("=") and np.array_equal(
        found, data, equal_nan=data.dtype.kind in "fcM"
    )
    opened = zarr.open_array(array.url, mode="r")[...]
    assert np.array_equal(opened, data, equal_nan=data.dtype.kind in "fcM")
    if data.ndim == 1:
        assert np.array_equal(array.points[[1, 0]], data[[1, 0]], equal_nan=data.dtype.kind in "fcM")


def test_types_that_others_wrote(group: zarrd.Group, server: zarrd.Server) -> None:
    store = zarrd.ZarrStore(group.url)
    record = np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")])
    for zarr_format in (2, 3):
        written = zarr.open_group(store, path=f"v{zarr_format}", mode="w", zarr_format=zarr_format)
        for name, data in {
            "big": np.arange(3, dtype=">f8"),
            "record": record,
            "raw": np.array([b"ab", b"cd"], "V2"),
            "text": np.array(["a", "bcd"], dtype="T"),
            "bytes": np.array([b"a", b"bcd"]),
        }.items():
            written.create_array(name, data=data)
            found = group[f"v{zarr_format}/{name}"][...]
            assert found.tolist() == data.tolist(), (zarr_format, name)


def test_labels(sst: zarrd.Array) -> None:
    assert sst.sel(time="2020-02").read().tolist() == [[7, -1, 9], [8, 9, 10]]
    assert sst.sel(time="2020-02", lat=55).read("cf").tolist()[1] == 4.5
    assert sst.sel(lat=51, method="nearest").isel(time=slice(None, None, 2)).values.tolist() == [3, 9]
    assert sst.sel(lat=slice(49, 56)).labels("lat").tolist() == [55.0, 50.0]
    assert sst.sel(lat=[50, 60]).read().shape == (4, 2)
    assert sst.sel(time=slice(np.datetime64("2020-01-31T12"), None)).read().shape == (3, 3)
    assert np.asarray(sst.isel(lat=[0, 2])).shape == (4, 2)
    with pytest.raises(zarrd.InvalidRequestError, match="nearest label is 50") as caught:
        sst.sel(lat=52).read()
    assert caught.value.nearest == 50.0 and caught.value.type == "label-not-found" and caught.value.status == 400
    assert pickle.loads(pickle.dumps(caught.value)).nearest == 50.0
    with pytest.raises(ValueError, match="selected twice"):
        sst.sel(lat=50).sel(lat=55)
    many = sst.isel(time=[0] * 4000)
    assert many.read().shape == (4000, 3)
    assert sst.sel(lat=[50.0] * 4000).read().shape == (4, 4000)


def test_functions(sst: zarrd.Array) -> None:
    expected = sea().sst
    assert np.allclose(sst.mean("time", decode="cf", skipna=True), expected.mean("time"))
    assert sst.mean(decode="none") == sst[...].mean()
    assert sst.sel(time="2020-02").max(decode="cf", skipna=True) == 5.0
    assert sst.coarsen(time=2).max(decode="none").tolist() == [[4, 5, 6], [8, 9, 10]]
    assert sst.reduce("min,max", "time", decode="none").shape == (2, 3)
    assert sst.std(("time", "lat"), ddof=1, decode="none") == sst[...].std(ddof=1)
    statistics = sst.stats(decode="cf", quantiles=[0.5], bins=4)
    assert (statistics["count"], statistics["missing"], statistics["max"]) == (11, 1, 5.0)
    with pytest.raises(zarrd.InvalidRequestError, match="decode"):
        sst.mean()


def test_to_xarray(sst: zarrd.Array) -> None:
    xr.testing.assert_allclose(sst.to_xarray(), sea().sst)
    xr.testing.assert_allclose(sst.sel(lat=55).to_xarray(), sea().sst.sel(lat=55, drop=True))


def test_castings_name_the_element(group: zarrd.Group) -> None:
    array = group.create_array("a", shape=(2, 2), dtype="u1")
    array[...] = [[1, 2], [3, 255]]
    for wrong, message in [
        ([[1, 2], [3, 256]], r"element \(1, 1\) is 256, which uint8"),
        (-1, r"element \(\) is -1"),
        ([1.5, 2], r"element \(0,\) is 1.5"),
        (np.nan, "nan"),
    ]:
        with pytest.raises(ValueError, match=message):
            array[...] = wrong
    for value in (1j, "x", np.datetime64("2020")):
        with pytest.raises(TypeError):
            array[...] = value
    with pytest.raises(ValueError):
        array[...] = [1, 2, 3]
    assert array[...].tolist() == [[1, 2], [3, 255]]
    half = group.create_array("b", shape=2, dtype="f2")
    half[...] = [1 / 3, 2]
    with pytest.raises(ValueError, match=r"element \(1,\)"):
        half[...] = [1, 1e9]
    text = group.create_array("t", shape=2, dtype=str)
    with pytest.raises(TypeError, match=r"element \(1,\) is 5"):
        text[...] = ["a", 5]


def test_changes_by_others(group: zarrd.Group) -> None:
    array, other = group.create_array("a", data=np.arange(4)), group["a"]
    array.resize(2)
    with pytest.raises(IndexError, match="another program"):
        other[3]
    other.refresh()
    assert other.shape == (2,)


def test_arrays_are_created_from_elements(group: zarrd.Group) -> None:
    data = np.arange(6, dtype="i2").reshape(2, 3)
    try:
        array = group.put("a", data, dims=["y", "x"])
    except zarrd.ServerTooOldError:
        pytest.skip("the server is too old")
    assert (array.dtype, array.dims, array[...].tolist()) == ("i2", ("y", "x"), data.tolist())
    with pytest.raises(zarrd.ConflictError):
        group.put("a", np.arange(3))
    assert group.put("a", np.arange(3), overwrite=True).shape == (3,)
