"""The accessor `.zarrd` of datasets: functions that the server computes, and appends in one commit."""

from __future__ import annotations

import asyncio
import io
import warnings
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from xarray.coding.common import _ElementwiseFunctionArray
from xarray.coding.variables import NativeEndiannessArray
from xarray.conventions import decode_cf_variable, encode_cf_variable
from xarray.core import indexing

from . import _elements
from ._errors import NotLazyError
from ._lazy import LazyArray, selection_text
from ._loop import run

_Key = tuple[Any, ...]


@dataclass(frozen=True)
class _Stored:
    """A variable whose data is what an index selects of a stored array, and how that is decoded."""

    array: LazyArray
    key: _Key
    decode: str

    @property
    def axes(self) -> list[int]:
        """The dimension of the stored array for each of the variable's."""
        return [axis for axis, item in enumerate(self.key) if isinstance(item, (slice, np.ndarray))]


def record_decoding(dataset: xr.Dataset, fully: bool) -> None:
    """Notes how `open_dataset` decodes each variable, with which later states of it are compared."""
    for variable in dataset.variables.values():
        found = _unwrapped(variable)
        if found is not None:
            array, functions, _ = found
            array.decoding = functions
            array.decodes_fully = fully


def _unwrapped(variable: xr.Variable) -> tuple[LazyArray, tuple[str, ...], list[_Key]] | None:
    """The stored array below a variable, the decoding functions and the indices in between; None if it is not lazy."""
    data: Any = variable._data
    functions: list[str] = []
    keys: list[_Key] = []
    while not isinstance(data, LazyArray):
        if isinstance(data, indexing.LazilyIndexedArray):
            keys.append(data.key.tuple)
        elif isinstance(data, _ElementwiseFunctionArray):
            function = getattr(data.func, "func", data.func)
            functions.append(f"{function.__module__}.{function.__qualname__}")
        elif not isinstance(
            data,
            (
                indexing.MemoryCachedArray,
                indexing.CopyOnWriteArray,
                indexing.ImplicitToExplicitIndexingAdapter,
                NativeEndiannessArray,
            ),
        ):
            return None
        data = data.array
    return data, tuple(functions), keys


def _stored(name: Hashable, variable: xr.Variable, instead: str) -> _Stored:
    found = _unwrapped(variable)
    if found is None:
        state = "is chunked with dask" if variable.chunks is not None else "was computed, loaded or changed"
        raise NotLazyError(f"{name!r} {state}, so that the server does not have its values: use {instead}")
    array, functions, keys = found
    chosen = [key for key in keys if not all(isinstance(item, slice) and item == slice(None) for item in key)]
    if functions != array.decoding or (functions and not array.decodes_fully) or len(chosen) > 1:
        raise NotLazyError(f"{name!r} is decoded in a way that the server does not have: use {instead}")
    if array.dtype.kind not in "biufc" or variable.dtype.kind not in "biufc":
        raise NotLazyError(
            f"{name!r} has elements of {variable.dtype}, which the server does not compute with here: use {instead}"
        )
    key = chosen[0] if chosen else (slice(None),) * len(array.shape)
    return _Stored(array, key, "cf" if functions else "none")


_FUNCTIONS = ("mean", "sum", "min", "max", "std", "var", "count")


async def _reduced(stored: _Stored, function: str, axes: list[int], skipna: bool, ddof: int) -> Any:
    name = f"nan{function}" if skipna and function != "count" else function
    parameters = {
        "select": selection_text(stored.key, stored.array.shape) if stored.key else None,
        "dialect": stored.array.dialect,
        "decode": stored.decode,
        "reduce": name,
        "axis": ",".join(map(str, axes)),
        "ddof": ddof or None,
    }
    return await _elements.read(stored.array.connection, stored.array.path, parameters)


class DatasetAccessor:
    """`ds.zarrd`: what the server does with the stored elements of a dataset that `engine="zarrd"` opened.

    Functions are computed there while a variable is as it was opened, or was selected with `sel` and `isel` since;
    a variable that was computed, masked, chunked or loaded raises `NotLazyError`, which names the function of xarray
    to use. The results are those of xarray, except that sums are exact and rounded once.
    """

    def __init__(self, dataset: xr.Dataset) -> None:
        self._dataset = dataset

    def mean(self, dim: Any = None, **options: Any) -> xr.Dataset:
        """`ds.mean(dim)`, on the server."""
        return self._reduce("mean", dim, **options)

    def sum(self, dim: Any = None, **options: Any) -> xr.Dataset:
        """`ds.sum(dim)`, on the server."""
        return self._reduce("sum", dim, **options)

    def min(self, dim: Any = None, **options: Any) -> xr.Dataset:
        """`ds.min(dim)`, on the server."""
        return self._reduce("min", dim, **options)

    def max(self, dim: Any = None, **options: Any) -> xr.Dataset:
        """`ds.max(dim)`, on the server."""
        return self._reduce("max", dim, **options)

    def std(self, dim: Any = None, **options: Any) -> xr.Dataset:
        """`ds.std(dim)`, on the server."""
        return self._reduce("std", dim, **options)

    def var(self, dim: Any = None, **options: Any) -> xr.Dataset:
        """`ds.var(dim)`, on the server."""
        return self._reduce("var", dim, **options)

    def count(self, dim: Any = None, **options: Any) -> xr.Dataset:
        """`ds.count(dim)`, on the server."""
        return self._reduce("count", dim, **options)

    def _reduce(
        self,
        function: str,
        dim: Any,
        *,
        skipna: bool | None = None,
        ddof: int = 0,
        keep_attrs: bool | None = None,
        _name: str = "ds",
    ) -> xr.Dataset:
        dataset = self._dataset
        dims = set(dataset.dims) if dim is None or dim is ... else {dim} if isinstance(dim, str) else set(dim)
        unknown = dims - set(dataset.dims)
        if unknown:
            raise ValueError(f"dimensions {sorted(map(str, unknown))} are not among {tuple(dataset.dims)}")
        instead = f"{_name}.{function}({'' if dim is None else repr(dim)})"
        # xarray decides on a copy with one element along each reduced dimension which variables, coordinates and
        # attributes the result has; then the values take their places.
        small = dataset.isel({each: slice(0, 1) for each in dims})
        work: dict[Hashable, tuple[_Stored, list[int]]] = {}
        others: list[Hashable] = []
        for name, variable in dataset.data_vars.items():
            if not dims & set(variable.dims):
                continue
            if variable.dtype.kind not in "biufcmM":
                others.append(name)
                continue
            shown = name if isinstance(name, str) else "the array"
            stored = _stored(shown, variable.variable, instead)
            axes = [axis for each, axis in zip(variable.dims, stored.axes, strict=True) if each in dims]
            work[name] = stored, axes
            zeros = np.zeros(small[name].shape, variable.dtype)
            small[name] = xr.Variable(variable.dims, zeros, variable.attrs)
        options: dict[str, Any] = {"keep_attrs": keep_attrs}
        if function != "count":
            options["skipna"] = skipna
        if function in ("std", "var"):
            options["ddof"] = ddof
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result: xr.Dataset = getattr(small, function)(dim, **options)
        for name in others:
            # What xarray leaves out of the result, such as texts, is of no concern.
            if name in result.data_vars:
                _stored(name, dataset[name].variable, instead)
                raise NotLazyError(f"{name!r} is of a type that the server does not compute with here: use {instead}")
        for name, values in run(_all(work, dataset, function, skipna, ddof)).items():
            if name in result.data_vars:
                expected = result[name].variable
                result[name] = expected.copy(data=np.asarray(values).astype(expected.dtype, copy=False))
        return result

    def append(self, other: xr.Dataset, dim: str) -> xr.Dataset:
        """Appends a dataset along a dimension: all variables over it, with its coordinate, in one commit.

        `other` has the variables over `dim` that this one has. They are encoded as the stored ones are: times in
        their units, packed numbers by their attributes. Labels that do not continue the coordinate are refused by the
        server. Returns the dataset as it is now; this one stays as it was.
        """
        first = next((found for each in self._dataset.variables.values() if (found := _unwrapped(each))), None)
        origin = getattr(self, "_origin", None) or _origin(self._dataset, first)
        opened, connection, path = origin
        over = {name for name, variable in opened.variables.items() if dim in variable.dims}
        if not over:
            raise ValueError(f"no variable of the stored dataset is over {dim!r}")
        given = {name for name, variable in other.variables.items() if dim in variable.dims}
        if over != given:
            parts = [f"it lacks {sorted(map(str, over - given))}"] if over - given else []
            parts += [f"it has {sorted(map(str, given - over))}, which is not stored"] if given - over else []
            raise ValueError(f"what is appended along {dim!r} has to have the variables over it: {' and '.join(parts)}")
        members = {str(name): _encoded(str(name), other.variables[name], opened.variables[name]) for name in over}
        file = io.BytesIO()
        np.savez(file, allow_pickle=False, **members)
        run(_elements.append_dataset(connection, path, dim, file.getvalue()))
        return xr.open_dataset(_group_url(connection, path), engine="zarrd", token=connection.token)


async def _all(
    work: dict[Hashable, tuple[_Stored, list[int]]], dataset: xr.Dataset, function: str, skipna: bool | None, ddof: int
) -> dict[Hashable, Any]:
    async def one(name: Hashable) -> Any:
        stored, axes = work[name]
        skips = skipna if skipna is not None else dataset[name].dtype.kind in "fc"
        return await _reduced(stored, function, axes, bool(skips), ddof)

    return dict(zip(work, await asyncio.gather(*map(one, work)), strict=True))


def _group_url(connection: Any, path: str) -> str:
    url: str = connection.address.url("store", path)
    return url


def _origin(dataset: xr.Dataset, first: Any) -> tuple[xr.Dataset, Any, str]:
    if first is None:
        source = dataset.encoding.get("source", "")
        raise NotLazyError(
            "the dataset has no variable of the server any more; open it again with engine='zarrd', and append to that"
            + (f": xarray.open_dataset({source!r}, engine='zarrd')" if source else "")
        )
    array: LazyArray = first[0]
    path = array.path.rpartition("/")[0]
    connection = array.connection
    opened = xr.open_dataset(_group_url(connection, path), engine="zarrd", token=connection.token, decode_coords=False)
    return opened, connection, path


def _encoded(name: str, new: xr.Variable, stored: xr.Variable) -> Any:
    """New values in the stored form: as `to_zarr(append_dim=…)` encodes them."""
    if set(new.dims) != set(stored.dims):
        raise ValueError(f"{name!r} has the dimensions {new.dims}, and the stored variable {stored.dims}")
    variable = new.transpose(*stored.dims).copy(deep=False)
    kept = ("dtype", "_FillValue", "missing_value", "scale_factor", "add_offset", "units", "calendar", "_Unsigned")
    variable.encoding = {key: stored.encoding[key] for key in kept if key in stored.encoding}
    variable.attrs = {}
    encoded = encode_cf_variable(variable, name=name)
    wanted, used = stored.encoding.get("units"), encoded.attrs.get("units")
    if wanted is not None and used is not None:
        # xarray takes other units if the stored ones cannot hold the times, and spells the same ones in its own way.
        attributes = {**encoded.attrs, "units": wanted}
        again: Any = decode_cf_variable(name, xr.Variable(encoded.dims, encoded.values, attributes))
        if not again.equals(variable):
            raise ValueError(f"the times of {name!r} cannot be stored exactly in {wanted!r}; xarray would use {used!r}")
    values = np.asarray(encoded.values)
    if values.dtype.kind in "OT":
        values = values.astype("U")
    return values


class DataArrayAccessor:
    """`da.zarrd`: the same for one array."""

    def __init__(self, array: xr.DataArray) -> None:
        self._array = array

    def __getattr__(self, function: str) -> Any:
        if function not in _FUNCTIONS:
            raise AttributeError(
                f"the server computes {', '.join(_FUNCTIONS)} of an xarray.DataArray, and not {function!r}"
            )

        def reduce(dim: Any = None, **options: Any) -> xr.DataArray:
            dataset = self._array._to_temp_dataset()
            found = DatasetAccessor(dataset)._reduce(function, dim, **{"_name": "da", **options})
            result: xr.DataArray = self._array._from_temp_dataset(found)
            return result

        return reduce


_register: Any = xr.register_dataset_accessor
_register("zarrd")(DatasetAccessor)
_register = xr.register_dataarray_accessor
_register("zarrd")(DataArrayAccessor)
