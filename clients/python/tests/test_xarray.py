"""The backend against xarray's own, on generated datasets, and functions on the server against xarray's."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import hypothesis.extra.numpy as npst
import hypothesis.strategies as st
import numpy as np
import pytest
import xarray as xr
from conftest import CASES
from hypothesis import assume, given

import zarrd
from zarrd import NotLazyError

pytestmark = pytest.mark.filterwarnings("ignore")

KINDS = ["f4", "f8", "i2", "packed", "masked", "time", "cftime", "delta", "text", "fixed", "bool", "complex", "big"]


@pytest.fixture(scope="module")
def url(server: zarrd.Server) -> str:
    return f"{server.url.replace('http', 'zarrd')}/generated"


def values(draw: Any, kind: str, shape: tuple[int, ...]) -> tuple[Any, dict[str, Any]]:
    """Elements of a variable, and its encoding."""
    size = int(np.prod(shape))
    integers = np.asarray(draw(st.lists(st.integers(-100, 100), min_size=size, max_size=size)), "i8").reshape(shape)
    floats = integers / 4
    holes = integers % 7 == 0
    if kind in ("f4", "f8"):
        return np.where(holes, np.nan, floats).astype(kind), {}
    if kind == "i2":
        return integers.astype("i2"), {}
    if kind == "big":
        return integers.astype(">i4"), {}
    if kind == "packed":
        scale, offset = draw(st.sampled_from([0.25, 0.5, 1.0])), draw(st.sampled_from([None, 0.0, 20.0]))
        encoding = {"dtype": "i2", "scale_factor": scale, "_FillValue": -999}
        return np.where(holes, np.nan, floats), encoding if offset is None else {**encoding, "add_offset": offset}
    if kind == "masked":
        return np.where(holes, np.nan, floats).astype("f4"), {"_FillValue": np.float32(-1)}
    if kind == "time":
        start = np.datetime64("2001-02-03", "ns")
        times = start + integers.astype("m8[h]")
        unit = draw(st.sampled_from(["hours since 2001-01-01", "seconds since 1970-01-01T00:00:00"]))
        return times, {"units": unit, "calendar": "standard", "dtype": "i8"}
    if kind == "cftime":
        calendar = draw(st.sampled_from(["noleap", "360_day"]))
        start = xr.date_range("2001-01-01", periods=1, calendar=calendar, use_cftime=True)[0]
        import datetime

        flat = [start + datetime.timedelta(days=int(each)) for each in integers.ravel()]
        found = np.empty(size, object)
        found[:] = flat
        return found.reshape(shape), {"units": "days since 2000-01-01", "calendar": calendar, "dtype": "i8"}
    if kind == "delta":
        return integers.astype("m8[m]").astype("m8[ns]"), {}
    if kind == "text":
        return np.array([f"w{each}" for each in integers.ravel()], object).reshape(shape), {}
    if kind == "fixed":
        return np.array([f"w{each}" for each in integers.ravel()], "U5").reshape(shape), {}
    return (integers > 0, {}) if kind == "bool" else (floats + 1j * integers, {})


@st.composite
def datasets(draw: Any) -> xr.Dataset:
    sizes = {name: draw(st.integers(1, 5)) for name in ("time", "lat", "x")}
    variables: dict[str, Any] = {}
    for number in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(KINDS))
        dims = tuple(draw(st.lists(st.sampled_from(sorted(sizes)), unique=True, max_size=3)))
        data, encoding = values(draw, kind, tuple(sizes[name] for name in dims))
        attributes = draw(st.sampled_from([{}, {"units_": "m"}, {"a": [1, 2], "b": "ä"}]))
        variables[f"v{number}_{kind}"] = xr.Variable(dims, data, attributes, encoding)
    coordinates: dict[str, Any] = {}
    if draw(st.booleans()):
        hours = np.arange(sizes["time"])
        coordinates["time"] = ("time", np.datetime64("2020-01-01", "ns") + hours * np.timedelta64(6, "h"))
    if draw(st.booleans()):
        coordinates["lat"] = ("lat", np.linspace(60, 50, sizes["lat"]))
    if draw(st.booleans()):
        coordinates["height"] = 7.5
    return xr.Dataset(variables, coordinates, draw(st.sampled_from([{}, {"title": "t"}])))


def written(draw: Any, dataset: xr.Dataset, url: str, zarr_format: Any, **more: Any) -> None:
    encoding: dict[str, Any] = {}
    for name, variable in dataset.data_vars.items():
        if variable.ndim and draw(st.booleans()):
            chunks = tuple(draw(st.integers(1, size)) for size in variable.shape)
            encoding[name] = {"chunks": chunks}
            if zarr_format == 3 and draw(st.booleans()):
                encoding[name]["shards"] = tuple(2 * each for each in chunks)
    dataset.to_zarr(url, mode="w", zarr_format=zarr_format, encoding=encoding, consolidated=draw(st.booleans()), **more)


def equal(first: Any, second: Any) -> bool:
    if isinstance(first, dict):
        return (
            isinstance(second, dict)
            and first.keys() == second.keys()
            and all(equal(first[k], second[k]) for k in first)
        )
    if isinstance(first, (float, np.floating)) and first != first:
        return bool(type(first) is type(second) and second != second)
    return bool(np.all(first == second)) and type(first) is type(second)


def same(found: xr.Dataset, expected: xr.Dataset) -> None:
    assert {**found.encoding, "source": 0} == {**expected.encoding, "source": 0}
    for name, variable in expected.variables.items():
        assert found.variables[name].dtype == variable.dtype, name
        assert equal(found.variables[name].encoding, variable.encoding), (
            found.variables[name].encoding,
            variable.encoding,
        )
    xr.testing.assert_identical(found.load(), expected.load())


@given(st.data())
def test_datasets(url: str, data: Any) -> None:
    dataset, zarr_format = data.draw(datasets()), data.draw(st.sampled_from([2, 3]))
    written(data.draw, dataset, url, zarr_format)
    options = data.draw(
        st.sampled_from([{}, {}, {"decode_times": False}, {"mask_and_scale": False}, {"decode_timedelta": True}])
    )
    expected = xr.open_zarr(url, chunks=None, **options)
    same(xr.open_dataset(url, engine="zarrd", **options), expected)
    same(xr.open_dataset(url.replace("zarrd:", "http:").replace("/generated", "/store/generated"), engine="zarrd", **options),
         xr.open_zarr(url, chunks=None, **options))  # fmt: skip
    dropped = data.draw(st.sampled_from(sorted(map(str, dataset.variables))))
    same(
        xr.open_dataset(url, drop_variables=dropped, engine="zarrd"),
        xr.open_zarr(url, chunks=None, drop_variables=dropped),
    )


@given(st.data())
def test_trees(url: str, data: Any) -> None:
    zarr_format = data.draw(st.sampled_from([2, 3]))
    groups = {"/": data.draw(datasets()), "/a": data.draw(datasets()), "/a/b": data.draw(datasets())}
    for number, (path, dataset) in enumerate(groups.items()):
        prefixed = dataset.rename({name: f"{name}{number}" for name in (*dataset.dims, *dataset.variables)})
        prefixed.to_zarr(url, group=path, mode="w" if path == "/" else "a", zarr_format=zarr_format, consolidated=False)
    expected = xr.open_datatree(url, engine="zarr", consolidated=False)
    found = xr.open_datatree(url, engine="zarrd")
    assert [node.path for node in found.subtree] == [node.path for node in expected.subtree]
    for node in expected.subtree:
        same(found[node.path].to_dataset(inherit=False), node.to_dataset(inherit=False))
    by_path = xr.open_groups(url, engine="zarrd")
    assert sorted(by_path) == sorted(node.path for node in expected.subtree)
    same(
        xr.open_dataset(url, engine="zarrd", group="a/b"),
        xr.open_zarr(url, group="a/b", chunks=None, consolidated=False),
    )


@given(st.data())
def test_lazy_indexing(url: str, data: Any) -> None:
    dataset, zarr_format = data.draw(datasets()), data.draw(st.sampled_from([2, 3]))
    written(data.draw, dataset, url, zarr_format)
    found, expected = xr.open_dataset(url, engine="zarrd"), xr.open_zarr(url, chunks=None).load()
    for _ in range(3):
        change = data.draw(st.sampled_from(["isel", "isel", "vectorized", "outer", "transpose", "rename"]))
        dims = sorted(map(str, expected.dims))
        if not dims:
            break
        if change == "transpose":
            order = data.draw(st.permutations(dims))
            found, expected = found.transpose(*order), expected.transpose(*order)
        elif change == "rename":
            found, expected = found.rename({dims[0]: f"{dims[0]}_"}), expected.rename({dims[0]: f"{dims[0]}_"})
        else:
            chosen = data.draw(st.lists(st.sampled_from(dims), min_size=1, unique=True))
            count = data.draw(st.integers(1, 4))
            indexers: dict[str, Any] = {}
            for name in chosen:
                size = expected.sizes[name]
                if size == 0:
                    continue
                if change == "isel":
                    indexers[name] = data.draw(st.one_of(st.integers(-size, size - 1), st.slices(size)))
                else:
                    picks = data.draw(npst.arrays("i8", count, elements=st.integers(-size, size - 1)))
                    indexers[name] = ("point", picks) if change == "vectorized" and "point" not in dims else picks
            found, expected = found.isel(indexers), expected.isel(indexers)
    # xarray cannot decode an empty array of another calendar.
    assume(0 not in expected.sizes.values() or not any("cftime" in str(name) for name in expected.variables))
    xr.testing.assert_identical(found.load(), expected.load())


FUNCTIONS = ["mean", "sum", "min", "max", "std", "var", "count"]
STEPS = ["isel", "sel", "rename", "arithmetic", "mask", "chunk", "load", "astype", "transpose", "copy", "assign", "drop",
         "fillna", "list", "attrs", "decode", "squeeze"]  # fmt: skip


def step(draw: Any, dataset: xr.Dataset) -> Callable[[xr.Dataset], xr.Dataset]:
    """One step of what a user does with a dataset like this one."""
    kind = draw(st.sampled_from(STEPS))
    dims = sorted(map(str, dataset.dims))
    if not dims or not dataset.data_vars:
        return lambda ds: ds
    name = draw(st.sampled_from(sorted(map(str, dataset.data_vars))))
    dim = draw(st.sampled_from(dims))
    size, letter = dataset.sizes[dim], dataset[name].dtype.kind

    def on_copy(ds: xr.Dataset, act: Callable[[xr.DataArray], Any]) -> xr.Dataset:
        other = ds.copy()
        act(other[name])
        return other

    if kind == "isel" and size:
        item = draw(st.one_of(st.integers(-size, size - 1), st.slices(size)))
        return lambda ds: ds.isel({dim: item})
    if kind == "list" and size:
        items = draw(st.lists(st.integers(-size, size - 1), min_size=1, max_size=4))
        return lambda ds: ds.isel({dim: items})
    if kind == "sel" and dim in dataset.indexes and size > 1 and dataset.indexes[dim].is_unique:
        return lambda ds: ds.sel({dim: [ds.indexes[dim][1]]})
    if kind == "rename" and f"{dim}_" not in dataset.variables and f"{dim}_" not in dims:
        return lambda ds: ds.rename({dim: f"{dim}_"})
    if kind == "arithmetic" and letter in "fic":
        return lambda ds: ds.assign({name: ds[name] * 2})
    if kind == "mask":
        return lambda ds: ds.where(ds[name] == ds[name])
    if kind == "chunk" and all(each.dtype.kind not in "OT" for each in dataset.variables.values()):
        return lambda ds: ds.chunk({dim: 1})
    if kind == "load":
        return lambda ds: on_copy(ds, lambda each: each.load())
    if kind == "astype" and letter in "fib":
        return lambda ds: ds.assign({name: ds[name].astype("f8")})
    if kind == "transpose":
        order = draw(st.permutations(dims))
        return lambda ds: ds.transpose(*order)
    if kind == "copy":
        deep = draw(st.sampled_from(["pickle", True, False]))
        return lambda ds: pickle.loads(pickle.dumps(ds)) if deep == "pickle" else ds.copy(deep=deep)
    if kind == "assign" and letter in "fi":
        return lambda ds: on_copy(ds, lambda each: setattr(each, "values", np.ones(each.shape, each.dtype)))
    if kind == "drop" and len(dataset.data_vars) > 1:
        return lambda ds: ds.drop_vars(name)
    if kind == "fillna" and letter == "f":
        return lambda ds: ds.assign({name: ds[name].fillna(0)})
    if kind == "attrs" and letter in "fi":
        return lambda ds: on_copy(ds, lambda each: each.attrs.update(scale_factor=2.0, _FillValue=3))
    if kind == "decode":
        return lambda ds: xr.decode_cf(ds)
    if kind == "squeeze":
        return lambda ds: ds.squeeze(drop=True)
    return lambda ds: ds


@given(st.data())
def test_functions_equal_or_raise(url: str, data: Any) -> None:
    dataset, zarr_format = data.draw(datasets()), data.draw(st.sampled_from([2, 3]))
    written(data.draw, dataset, url, zarr_format)
    decode = data.draw(
        st.sampled_from([{}, {}, {}, {"decode_cf": False}, {"mask_and_scale": False}, {"decode_times": False}])
    )
    found = xr.open_dataset(url, engine="zarrd", **decode)
    expected = xr.open_dataset(url, engine="zarr", **decode).load()
    for _ in range(data.draw(st.integers(0, 4))):
        act = step(data.draw, expected)
        try:
            after = act(expected)
        except (AttributeError, KeyError, NotImplementedError, TypeError, ValueError):
            continue
        found, expected = act(found), after
    try:
        loaded = found.copy(deep=True).compute()
    except ValueError as error:
        # xarray cannot decode no dates at all of a calendar, whatever the engine.
        assert "empty sequence" in str(error) and any(not each.size for each in expected.variables.values())
        return
    xr.testing.assert_identical(loaded, expected.compute())
    function = data.draw(st.sampled_from(FUNCTIONS))
    dims = data.draw(
        st.one_of(st.none(), st.lists(st.sampled_from(sorted(map(str, expected.dims)) or ["none"]), unique=True))
    )
    options = data.draw(st.sampled_from([{}, {}, {"skipna": False}, {"skipna": True}, {"keep_attrs": False}]))
    if function == "count":
        options = {key: value for key, value in options.items() if key != "skipna"}
    try:
        computed = getattr(found.zarrd, function)(dims, **options)
    except (TypeError, ValueError, zarrd.ZarrdError) as error:
        if isinstance(error, NotLazyError):
            assert f"ds.{function}(" in str(error)
        CASES["raised"] += 1
        return
    CASES["equal"] += 1
    wanted = getattr(expected, function)(dims, **options)
    assert list(computed.variables) == list(wanted.variables) or set(computed.variables) == set(wanted.variables)
    for name, variable in wanted.variables.items():
        got = computed.variables[name]
        assert got.dims == variable.dims and got.dtype == variable.dtype, (name, got, variable)
        assert got.attrs.keys() == variable.attrs.keys()
        if variable.dtype.kind in "fc":
            # Sums of xarray have rounding errors, those of the server have not.
            tolerance = {2: 2e-2, 4: 1e-4, 8: 1e-4 if variable.dtype.kind == "c" else 1e-10}.get(
                variable.dtype.itemsize, 1e-9
            )
            assert np.allclose(got.values, variable.values, rtol=tolerance, atol=tolerance, equal_nan=True), (
                name,
                got,
                variable,
            )
        else:
            assert np.array_equal(got.values, variable.values), (name, got, variable)


def test_datasets_grow_in_one_commit(server: zarrd.Server, path: str) -> None:
    url = f"{server.url}/store/{path}"

    def weather(start: int, hours: int) -> xr.Dataset:
        time = np.datetime64("2020-01-01", "ns") + np.arange(start, start + hours) * np.timedelta64(1, "h")
        rain = np.arange(start * 3.0, (start + hours) * 3).reshape(hours, 3) / 2
        return xr.Dataset({"rain": (("time", "x"), rain), "hour": ("time", np.arange(start, start + hours)),
                           "name": ("time", [f"h{each}" for each in range(start, start + hours)])},
                          coords={"time": time, "x": [1, 2, 3]})  # fmt: skip

    first = weather(0, 24)
    first.rain.encoding = {"dtype": "i2", "scale_factor": 0.5, "_FillValue": -1}
    first.time.encoding = {"units": "hours since 2020-01-01", "dtype": "i4"}
    first.to_zarr(zarrd.ZarrStore(url))
    opened = xr.open_dataset(url, engine="zarrd")
    more = weather(24, 5)
    more.rain[0, 0] = np.nan
    with pytest.raises(ValueError, match=r"it lacks \['hour'\]"):
        opened.zarrd.append(more.drop_vars("hour"), dim="time")
    with pytest.raises(ValueError, match="'depth'"):
        opened.zarrd.append(more.assign(depth=more.hour), dim="time")
    odd = more.assign_coords(time=more.time + np.timedelta64(1, "s"))
    with pytest.raises(ValueError, match="cannot be stored exactly"):
        opened.zarrd.append(odd, dim="time")
    try:
        grown = opened.zarrd.append(more, dim="time")
    except zarrd.ServerTooOldError:
        assert opened.sizes["time"] == 24
        pytest.skip("the server is too old")
    xr.testing.assert_identical(grown.drop_attrs().load(), xr.concat([first.drop_attrs(), more], "time").load())
    with pytest.raises(zarrd.ConflictError, match="does not continue"):
        opened.zarrd.append(more, dim="time")
    assert xr.open_dataset(url, engine="zarrd").sizes["time"] == 29
