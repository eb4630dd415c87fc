"""`LazyArray`: elements of the server as xarray's lazily indexed arrays."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
from xarray.backends import BackendArray
from xarray.core import indexing

from . import _elements
from ._http import Connection
from ._loop import run
from ._types import ElementType, NDArray

FEW = 4
"""How many times as many elements as points a box around them may have, to be read in place of the points."""


class LazyArray(BackendArray):
    """An array as it was when its dataset was opened: elements that others append later are not seen."""

    def __init__(
        self,
        connection: Connection,
        path: str,
        dialect: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        kind: ElementType,
    ) -> None:
        self.connection = connection
        self.path = path
        self.dialect = dialect
        self.shape = shape
        self.dtype = dtype
        self.kind = kind
        # What `open_dataset` decodes: see `_accessor`.
        self.decoding: tuple[str, ...] | None = None
        self.decodes_fully = False
        self._elements: NDArray | None = None

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        if not isinstance(key, indexing.VectorizedIndexer):
            return self._outer(key.tuple)
        empty = _vectorized_shape(key.tuple, self.shape)
        if 0 in empty:
            return np.empty(empty, self.dtype)
        if self._elements is None and self._points_are_few(key):
            return self._points(key)
        support = indexing.IndexingSupport.OUTER
        return indexing.explicit_indexing_adapter(key, self.shape, support, self._outer)

    async def async_getitem(self, key: indexing.ExplicitIndexer) -> Any:
        """`__getitem__` for `load_async`."""
        return await asyncio.to_thread(self.__getitem__, key)

    def _outer(self, key: tuple[Any, ...]) -> Any:
        if self._elements is not None:
            return _orthogonal(self._elements, key)
        return self._typed(run(self.read(key)))

    async def read(self, key: tuple[Any, ...]) -> NDArray:
        """The elements of an orthogonal index: an integer, a slice or an array for each dimension."""
        expected = result_shape(key, self.shape)
        if 0 in expected:
            return np.empty(expected, self.dtype)
        parameters = {"select": selection_text(key, self.shape), "dialect": self.dialect}
        if not key:
            del parameters["select"]
        found = await _elements.read(self.connection, self.path, parameters, self.kind.form)
        if found.shape != expected:
            raise ValueError(f"/{self.path} was made smaller after it was opened; open the dataset again")
        return found

    async def load(self) -> None:
        """Reads all elements, so that the array's index needs no requests."""
        self._elements = self._typed(await self.read((slice(None),) * len(self.shape)))

    def _typed(self, found: Any) -> Any:
        if self.dtype.kind == "T" or found.dtype != self.dtype:
            return np.asarray(found, self.dtype) if self.dtype != object else np.asarray(found, object)
        return found

    def _points_are_few(self, key: indexing.VectorizedIndexer) -> bool:
        arrays = [each for each in key.tuple if isinstance(each, np.ndarray)]
        rest = np.prod([len(range(*each.indices(size))) for each, size in zip(key.tuple, self.shape, strict=True)
                        if isinstance(each, slice)], dtype=float)  # fmt: skip
        points = np.broadcast_shapes(*(each.shape for each in arrays))
        box = np.prod([len(np.unique(each)) for each in arrays], dtype=float)
        count = np.prod(points, dtype=float)
        return bool(0 < count * rest <= 4 * _elements.POINTS and box > FEW * count)

    def _points(self, key: indexing.VectorizedIndexer) -> Any:
        full = indexing._arrayize_vectorized_indexer(key, self.shape)
        columns = np.broadcast_arrays(*full.tuple)
        rows = np.stack([each.ravel() for each in columns], axis=1)
        extents = np.asarray(self.shape)
        rows = np.where(rows < 0, rows + extents, rows)
        found = run(_elements.points(self.connection, self.path, rows, self.kind, dialect=self.dialect))
        return self._typed(found.reshape(columns[0].shape))

    def __repr__(self) -> str:
        return f"<zarrd.LazyArray /{self.path} of {self.connection.address.base}>"


def result_shape(key: tuple[Any, ...], extents: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of what an orthogonal index selects."""
    shape = []
    for each, extent in zip(key, extents, strict=True):
        if isinstance(each, slice):
            shape.append(len(range(*each.indices(extent))))
        elif isinstance(each, np.ndarray):
            shape.append(each.size)
    return tuple(shape)


def _vectorized_shape(key: tuple[Any, ...], extents: tuple[int, ...]) -> tuple[int, ...]:
    points = np.broadcast_shapes(*(each.shape for each in key if isinstance(each, np.ndarray)))
    rest = [len(range(*each.indices(size))) for each, size in zip(key, extents, strict=True) if isinstance(each, slice)]
    return (*points, *rest)


def selection_text(key: tuple[Any, ...], extents: tuple[int, ...]) -> str:
    """An orthogonal index with explicit ends, so that an array that has grown since gives the same elements."""
    items = []
    for each, extent in zip(key, extents, strict=True):
        if isinstance(each, slice):
            items.append(_range_text(range(*each.indices(extent))))
        elif isinstance(each, np.ndarray):
            flat = np.where(each < 0, each + extent, each).ravel()
            steps = np.diff(flat)
            if len(flat) > 1 and steps[0] != 0 and (steps == steps[0]).all():
                step = int(steps[0])
                items.append(_range_text(range(int(flat[0]), int(flat[-1]) + (1 if step > 0 else -1), step)))
            else:
                items.append(f"({','.join(map(str, flat.tolist()))})")
        else:
            index = int(each)
            items.append(str(index + extent if index < 0 else index))
    return ",".join(items)


def _range_text(span: range) -> str:
    if span.step > 0:
        return f"{span.start}:{span.stop}" + ("" if span.step == 1 else f":{span.step}")
    return f"{span.start}:{'' if span.stop < 0 else span.stop}:{span.step}"


def _orthogonal(elements: NDArray, key: tuple[Any, ...]) -> Any:
    for axis in reversed(range(len(key))):
        elements = elements[(slice(None),) * axis + (key[axis],)]
    return elements
