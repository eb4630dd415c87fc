"""`Array`: elements of a stored array, indexed as in NumPy, by label, or by points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import suppress
from typing import Any, SupportsIndex

import numpy as np

from . import _elements
from ._errors import InvalidRequestError, ZarrdError
from ._html import array_html
from ._http import Connection
from ._labels import label_text
from ._loop import run
from ._reductions import Reductions, windows
from ._selection import item_text, parse_index
from ._types import ElementType, NDArray, cast, element_type


class Attributes(MutableMapping[str, Any]):
    """The attributes of a node. Each change is one commit; `update` changes several in one."""

    def __init__(self, node: _Node) -> None:
        self._node = node

    def _stored(self) -> dict[str, Any]:
        found: dict[str, Any] = self._node.document.get("attributes") or {}
        return found

    def __getitem__(self, name: str) -> Any:
        return self._stored()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored())

    def __len__(self) -> int:
        return len(self._stored())

    def __setitem__(self, name: str, value: Any) -> None:
        if value is None:
            raise ValueError("an attribute cannot be set to None, which removes it: use del")
        self._node._patch({"attributes": {name: value}})

    def __delitem__(self, name: str) -> None:
        if name not in self._stored():
            raise KeyError(name)
        self._node._patch({"attributes": {name: None}})

    def update(self, *others: Any, **more: Any) -> None:
        """Changes several attributes in one commit."""
        self._node._patch({"attributes": dict(*others, **more)})

    def __repr__(self) -> str:
        return f"Attributes({self._stored()!r})"


class _Node:
    """What arrays and groups have in common: a path, and a document that was read."""

    def __init__(self, connection: Connection, path: str, document: dict[str, Any] | None = None) -> None:
        self._connection = connection
        self.path = path
        self._document = document

    @property
    def document(self) -> dict[str, Any]:
        """The metadata document, as it was when it was first needed or last refreshed."""
        if self._document is None:
            self.refresh()
        assert self._document is not None
        return self._document

    def refresh(self) -> None:
        """Reads the document again, after another program may have changed it."""
        self._document = run(_elements.node(self._connection, self.path, depth=0))[0]

    def _patch(self, change: Mapping[str, Any], *, piecewise: bool = False) -> None:
        self._document = run(_elements.patch(self._connection, self.path, change, piecewise=piecewise))

    @property
    def name(self) -> str:
        """The last segment of the path."""
        return self.path.rpartition("/")[2]

    @property
    def url(self) -> str:
        """The URL under which other Zarr clients open this node."""
        return self._connection.address.url("store", self.path)

    @property
    def attrs(self) -> Attributes:
        """The attributes. What is set here is stored at once."""
        return Attributes(self)

    def __getstate__(self) -> tuple[Any, ...]:
        return self._connection, self.path, self._document

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._connection, self.path, self._document = state


class Selection(Reductions):
    """What was selected of an array by name. Nothing is read before it is indexed, converted or reduced."""

    def __init__(self, array: Array, parameters: dict[str, Any]) -> None:
        self._array = array
        self._connection = array._connection
        self.path = array.path
        self._selected = parameters

    def _parameters(self) -> dict[str, Any]:
        return self._selected

    def _kind(self) -> ElementType:
        return self._array.element_type

    def isel(self, **items: Any) -> Selection:
        """Selects by position: an integer, a slice or a list for each dimension."""
        return self._with({f"isel.{name}": item_text(item) for name, item in items.items()})

    def sel(self, method: str | None = None, tolerance: Any = None, **labels: Any) -> Selection:
        """Selects by label: see `Array.sel`."""
        return self._with({f"sel.{name}": label_text(each, method, tolerance) for name, each in labels.items()})

    def coarsen(self, *, edge: str | None = None, **sizes: int) -> Selection:
        """Divides dimensions into windows, each of which the next function reduces to one element."""
        return self._with({**windows(sizes), "edge": edge})

    def _with(self, more: Mapping[str, Any]) -> Selection:
        twice = next((name for name in more if self._selected.get(name) is not None), None)
        if twice is not None:
            raise ValueError(f"{twice.partition('.')[2] or twice} is selected twice")
        return Selection(self._array, {**self._selected, **more})

    def read(self, decode: str | None = None) -> NDArray:
        """The elements; with `decode="cf"` by the CF conventions, as xarray shows them."""
        kind = self._kind()
        return run(_elements.read(self._connection, self.path, {**self._selected, "decode": decode}, kind.form))

    def labels(self, dim: str) -> NDArray:
        """The labels of a dimension for what is selected."""
        return run(_elements.read(self._connection, self.path, {**self._selected, "labels": dim}))

    @property
    def values(self) -> NDArray:
        """The elements as they are stored."""
        return self.read()

    def __getitem__(self, key: Any) -> Any:
        return self.read()[key]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        found = self.read()
        return found if dtype is None else found.astype(dtype)

    def to_xarray(self) -> Any:
        """The elements as an `xarray.DataArray` with coordinates and attributes."""
        return _to_xarray(self)

    def __repr__(self) -> str:
        chosen = ", ".join(f"{name}={value}" for name, value in self._selected.items() if value is not None)
        return f"<zarrd.Selection of /{self.path}: {chosen}>"


class Array(_Node, Reductions):
    """An array on the server.

    Indexing reads: `array[0, :, ::2]` is an array of NumPy, of one state of the array. Assignment writes, in one
    commit. `sel` and `isel` select by name; functions such as `mean` are computed on the server.
    """

    def _parameters(self) -> dict[str, Any]:
        return {}

    def _kind(self) -> ElementType:
        return self.element_type

    @property
    def element_type(self) -> ElementType:
        """How elements are sent, and as what they are returned."""
        return element_type(self.document)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents, as of the last refresh or write."""
        return tuple(self.document["shape"])

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.document["shape"])

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=object))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of elements; `object` for texts and other elements of variable length."""
        return self.element_type.dtype

    @property
    def dims(self) -> tuple[str | None, ...]:
        """The names of the dimensions, None for those without one."""
        document = self.document
        names = document.get("dimension_names")
        if names is None and document.get("zarr_format") == 2:
            names = (document.get("attributes") or {}).get("_ARRAY_DIMENSIONS")
        return tuple(names) if names else (None,) * self.ndim

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """The shape of a chunk, of a sharded array that of a shard; None for chunks of different shapes."""
        document = self.document
        if document.get("zarr_format") == 2:
            return tuple(document["chunks"])
        shape = (document["chunk_grid"].get("configuration") or {}).get("chunk_shape")
        return tuple(shape) if shape is not None and all(isinstance(each, int) for each in shape) else None

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        """Reads as NumPy would index: integers, slices, one list or mask, `...` and `numpy.newaxis`."""
        return self._read(key, orthogonal=False)

    def _read(self, key: Any, orthogonal: bool) -> Any:
        parsed = parse_index(key, self.shape, orthogonal=orthogonal)
        parameters = {"select": parsed.text} if parsed.items else {}
        try:
            found = run(_elements.read(self._connection, self.path, parameters, self.element_type.form))
        except InvalidRequestError as error:
            if error.type in ("index-out-of-bounds", "selection-rank-mismatch"):
                raise IndexError(f"{error}; another program has changed the array's shape") from error
            raise
        found = parsed.finish(found)
        return found[()] if found.ndim == 0 else found

    def __setitem__(self, key: Any, value: Any) -> None:
        """Writes elements in one commit. They are broadcast, and cast where no number changes by more than rounding."""
        self._write(key, value, orthogonal=False)

    def _write(self, key: Any, value: Any, orthogonal: bool) -> None:
        parsed = parse_index(key, self.shape, orthogonal=orthogonal)
        elements = parsed.unique(parsed.unfinish(cast(value, self.element_type), self.shape))
        if elements.size == 0:
            return
        self._elements_written(parsed.text if parsed.items else None, elements)

    def _elements_written(self, select: str | None, elements: NDArray) -> None:
        report = run(_elements.write(self._connection, self.path, {"select": select}, elements, self.element_type))
        self._grown(report)

    def _grown(self, report: Mapping[str, Any]) -> None:
        if self._document is not None:
            self._document = {**self._document, "shape": list(report["shape"])}

    @property
    def oindex(self) -> Orthogonal:
        """Orthogonal indexing: each list selects along its own dimension, for reads and writes."""
        return Orthogonal(self)

    @property
    def points(self) -> Points:
        """Single elements: `array.points[[0, 5], [1, 2]]` are those at (0, 1) and (5, 2)."""
        return Points(self)

    def isel(self, **items: Any) -> Selection:
        """Selects by position: an integer, a slice or a list for each named dimension."""
        return Selection(self, {}).isel(**items)

    def sel(self, method: str | None = None, tolerance: Any = None, **labels: Any) -> Selection:
        """Selects by the labels of coordinates: the one-dimensional arrays of the dimensions' names.

        A label, a slice of labels with both ends included, or a list; with `method="nearest"` the nearest ones. Times
        may be texts such as `"2020-02"`, which selects all of that month.
        """
        return Selection(self, {}).sel(method, tolerance, **labels)

    def coarsen(self, *, edge: str | None = None, **sizes: int) -> Selection:
        """Divides dimensions into windows: `array.coarsen(time=24).mean()`. `edge` is `partial`, `exact` or `trim`."""
        return Selection(self, {}).coarsen(edge=edge, **sizes)

    def read(self, decode: str | None = None) -> NDArray:
        """All elements; with `decode="cf"` by the CF conventions, as xarray shows them."""
        return Selection(self, {}).read(decode)

    def labels(self, dim: str) -> NDArray:
        """The labels of a dimension."""
        return Selection(self, {}).labels(dim)

    def append(self, elements: Any, dim: str | SupportsIndex = 0) -> tuple[int, ...]:
        """Grows the array along a dimension by these elements, in one commit; returns the new shape.

        Elements with one dimension less than the array are one step. Raises `ConnectionFailed` if the connection was
        lost after the elements were sent: then they may have been appended.
        """
        axis = self._axis(dim)
        array = cast(elements, self.element_type)
        if array.ndim == self.ndim - 1:
            array = np.expand_dims(array, axis)
        report = run(_elements.append(self._connection, self.path, axis, array, self.element_type))
        self._grown(report)
        return self.shape

    def _axis(self, dim: str | SupportsIndex) -> int:
        if isinstance(dim, str):
            if dim not in self.dims:
                raise ValueError(f"/{self.path} has no dimension {dim!r}; it has {self.dims}")
            return self.dims.index(dim)
        axis = dim.__index__()
        if not -self.ndim <= axis < self.ndim:
            raise ValueError(f"/{self.path} has {self.ndim} dimensions, so there is no dimension {axis}")
        return axis % self.ndim

    def resize(self, *shape: int, piecewise: bool = False) -> None:
        """Changes the shape in one commit. Chunks outside of a smaller shape are erased with it.

        A folder or bucket is written key by key. There an array that has documents of both v2 and v3 needs
        `piecewise=True`: they are changed one after the other, and a change that was cut is completed by repeating it.
        """
        self._patch({"shape": [int(each) for each in shape]}, piecewise=piecewise)

    def to_xarray(self) -> Any:
        """The array as an `xarray.DataArray` with coordinates and attributes, decoded."""
        return Selection(self, {}).to_xarray()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        found = self.read()
        return found if dtype is None else found.astype(dtype)

    def __repr__(self) -> str:
        try:
            dims = ", ".join(f"{name or '?'}: {extent}" for name, extent in zip(self.dims, self.shape, strict=True))
            return f"<zarrd.Array /{self.path} ({dims}) {self.dtype}>"
        except ZarrdError as error:
            return f"<zarrd.Array /{self.path}: {error}>"

    def _repr_html_(self) -> str:
        return array_html(self)


class Orthogonal:
    """`array.oindex`: each list selects along its own dimension."""

    def __init__(self, array: Array) -> None:
        self._array = array

    def __getitem__(self, key: Any) -> Any:
        return self._array._read(key, orthogonal=True)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._array._write(key, value, orthogonal=True)


class Points:
    """`array.points`: arrays of indices, one for each dimension, that are broadcast to each other."""

    def __init__(self, array: Array) -> None:
        self._array = array

    def __getitem__(self, key: Any) -> Any:
        array = self._array
        rows, shape = self._rows(key)
        if not len(rows):
            return np.empty(shape, array.dtype)
        found = run(_elements.points(array._connection, array.path, rows, array.element_type)).reshape(shape)
        return found[()] if found.ndim == 0 else found

    def __setitem__(self, key: Any, value: Any) -> None:
        """Writes elements in one commit, as NumPy would: they are broadcast, and the last of repeated points counts."""
        array = self._array
        rows, shape = self._rows(key)
        elements = cast(value, array.element_type)
        while elements.ndim > len(shape) and elements.shape[0] == 1:
            elements = elements[0]
        elements = np.broadcast_to(elements, shape).reshape(-1)
        if len(rows) > _elements.WRITTEN_POINTS:
            raise ValueError(
                f"{len(rows)} points are more than the {_elements.WRITTEN_POINTS} that are written in one commit; "
                "write parts of them, or a region"
            )
        if len(rows):
            run(_elements.write_points(array._connection, array.path, rows, elements, array.element_type))

    def _rows(self, key: Any) -> tuple[NDArray, tuple[int, ...]]:
        """A row of indices for each point, and the shape of the points."""
        array = self._array
        parts = key if isinstance(key, tuple) else (key,)
        if len(parts) != array.ndim:
            raise IndexError(f"a point needs {array.ndim} indices, one for each dimension, and has {len(parts)}")
        if not parts:
            return np.empty((1, 0), np.int64), ()
        columns = np.broadcast_arrays(*map(np.asarray, parts))
        for dimension, (column, extent) in enumerate(zip(columns, array.shape, strict=True)):
            if column.dtype.kind not in "iu" and column.size:
                raise IndexError(f"indices of points are integers, and not {column.dtype}")
            wrong = (column < -extent) | (column >= extent)
            if np.any(wrong):
                raise IndexError(
                    f"index {column[wrong][0]} is out of bounds for dimension {dimension} with size {extent}"
                )
        return np.stack([column.ravel().astype(np.int64) for column in columns], axis=1), columns[0].shape


def _to_xarray(selection: Selection) -> Any:
    try:
        import xarray
    except ModuleNotFoundError as error:
        raise ImportError("to_xarray needs xarray: pip install 'zarrd[xarray]'") from error
    array, parameters = selection._array, selection._selected
    values = selection.read("cf")
    dropped = {
        name.partition(".")[2]
        for name, text in parameters.items()
        if text is not None and name.partition(".")[0] in ("isel", "sel") and _drops(name, text)
    }
    dims = [name or f"dim_{at}" for at, name in enumerate(array.dims) if name not in dropped]
    if len(dims) != values.ndim:
        dims = [f"dim_{at}" for at in range(values.ndim)]
    coordinates = {}
    for name in dims:
        with suppress(InvalidRequestError):
            coordinates[name] = (name, selection.labels(name))
    attributes = {name: value for name, value in array.attrs.items() if name not in _ENCODING}
    return xarray.DataArray(values, coordinates, dims, array.name, attributes)


_ENCODING = {"_ARRAY_DIMENSIONS", "_FillValue", "missing_value", "scale_factor", "add_offset", "units", "calendar"}


def _drops(name: str, text: str) -> bool:
    """True if an item of `isel` or `sel` selects a single index, which drops the dimension."""
    if name.startswith("isel."):
        return ":" not in text and "(" not in text
    return ".." not in text and "(" not in text
