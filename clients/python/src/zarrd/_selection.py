"""Indices of NumPy as selections of the server."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._types import NDArray


@dataclass
class Parsed:
    """An index. `items` has one item for each dimension of the array: an int, a slice, or a list of indices.

    The result has the shape of `items` with integers dropped; `finish` makes of it what NumPy would return.
    """

    items: list[int | slice | NDArray]
    lists: list[int]
    list_shape: tuple[int, ...]
    new_axes: list[int]
    separated: bool

    @property
    def text(self) -> str:
        """The selection as text."""
        return ",".join(map(_text, self.items))

    def shape(self, extents: Sequence[int]) -> tuple[int, ...]:
        """The shape of the selection before `finish`."""
        shape = []
        for item, extent in zip(self.items, extents, strict=True):
            if isinstance(item, slice):
                shape.append(len(range(*item.indices(extent))))
            elif not isinstance(item, int):
                shape.append(len(item))
        return tuple(shape)

    def finish(self, found: NDArray) -> NDArray:
        """The result in NumPy's shape."""
        if self.lists:
            at = sum(not isinstance(item, int) for item in self.items[: self.lists[0]])
            if len(self.list_shape) != 1:
                found = found.reshape(found.shape[:at] + self.list_shape + found.shape[at + 1 :])
            if self.separated:
                count = len(self.list_shape)
                found = np.moveaxis(found, range(at, at + count), range(count))
        for axis in self.new_axes:
            found = np.expand_dims(found, axis)
        return found

    def unfinish(self, value: NDArray, extents: Sequence[int]) -> NDArray:
        """Elements that are broadcast to the index's shape, in the shape of the selection: the inverse of `finish`."""
        shape = self.shape(extents)
        template = self.finish(np.empty(shape, "V0"))
        value = np.broadcast_to(value, template.shape)
        for axis in reversed(self.new_axes):
            value = np.squeeze(value, axis)
        if self.lists:
            at = sum(not isinstance(item, int) for item in self.items[: self.lists[0]])
            count = len(self.list_shape)
            if self.separated:
                value = np.moveaxis(value, range(count), range(at, at + count))
            value = value.reshape(shape)
        return value

    def unique(self, value: NDArray) -> NDArray:
        """Drops all except the last of repeated indices, as NumPy's assignment does; changes `items`."""
        axis = -1
        for dimension, item in enumerate(self.items):
            if isinstance(item, int):
                continue
            axis += 1
            if isinstance(item, slice):
                continue
            _, last = np.unique(item[::-1], return_index=True)
            chosen = np.sort(len(item) - 1 - last)
            if len(chosen) != len(item):
                self.items[dimension] = item[chosen]
                value = np.take(value, chosen, axis)
        return value


def _text(item: int | slice | NDArray) -> str:
    if isinstance(item, int):
        return str(item)
    if isinstance(item, slice):
        text = f"{'' if item.start is None else item.start}:{'' if item.stop is None else item.stop}"
        return text if item.step is None else f"{text}:{item.step}"
    return f"({','.join(map(str, item.tolist()))})"


def item_text(item: Any) -> str:
    """One item of `isel`: an integer, a slice or a list."""
    if isinstance(item, slice):
        return _text(slice(*map(_bound, (item.start, item.stop, item.step))))
    if isinstance(item, (list, tuple, np.ndarray)):
        return _text(_list(np.asarray(item), None, None))
    return str(operator.index(item))


def _bound(value: Any) -> int | None:
    return None if value is None else operator.index(value)


def parse_index(key: Any, extents: Sequence[int], *, orthogonal: bool = False) -> Parsed:
    """An index of an array of this shape.

    Without `orthogonal`, the result is NumPy's, and at most one dimension may have a list or mask, since NumPy takes
    several of them for points. With it, each list selects along its own dimension. Raises `IndexError`.
    """
    parts = list(key) if isinstance(key, tuple) else [key]
    if len(parts) == 1 and isinstance(parts[0], np.ndarray) and parts[0].dtype == bool and parts[0].ndim > 1:
        raise IndexError("a mask of several dimensions selects points: use .points[numpy.nonzero(mask)]")
    given = sum(part is not None and part is not Ellipsis for part in parts)
    if given > len(extents):
        raise IndexError(f"too many indices: the array has {len(extents)} dimensions, and {given} were indexed")
    dots = sum(part is Ellipsis for part in parts)
    if dots > 1:
        raise IndexError("an index can have only one ellipsis ('...')")
    if dots == 0:
        parts.append(Ellipsis)
    items: list[int | slice | NDArray] = []
    lists: list[int] = []
    new_axes: list[int] = []
    advanced: list[int] = []
    list_shape: tuple[int, ...] = ()
    place = axis = 0
    for part in parts:
        place += 1
        if part is None:
            new_axes.append(axis)
            axis += 1
            continue
        if part is Ellipsis:
            count = len(extents) - given
            items += [slice(None)] * count
            axis += count
            continue
        extent = extents[len(items)]
        if isinstance(part, slice):
            items.append(slice(*map(_bound, (part.start, part.stop, part.step))))
            if items[-1].step == 0:  # type: ignore[union-attr]
                raise ValueError("slice step cannot be zero")
            axis += 1
        elif isinstance(part, (list, tuple, np.ndarray, range)) and np.ndim(part) > 0:
            array = np.asarray(part)
            flat = _list(array, extent, len(items))
            lists.append(len(items))
            advanced.append(place)
            list_shape = (len(flat),) if array.dtype == bool else array.shape
            items.append(flat)
            axis += len(list_shape)
        else:
            items.append(_integer(part, extent, len(items)))
            advanced.append(place)
    if len(lists) > 1 and not orthogonal:
        raise IndexError(
            "NumPy takes several lists for points: use .points[…] for these, or .oindex[…] for each by itself"
        )
    if orthogonal and len(list_shape) > 1:
        raise IndexError("a list of an orthogonal index has one dimension")
    separated = bool(lists) and not orthogonal and advanced != list(range(advanced[0], advanced[-1] + 1))
    if separated and new_axes:
        raise IndexError("a list, an integer apart from it, and numpy.newaxis in one index are not supported")
    return Parsed(items, lists, list_shape, new_axes, separated)


def _integer(part: Any, extent: int, dimension: int) -> int:
    if isinstance(part, (bool, np.bool_)):
        raise IndexError("a single boolean is not an index")
    try:
        index = operator.index(part)
    except TypeError:
        raise IndexError(
            f"an index is an integer, a slice, a list, '...' or numpy.newaxis, and not {type(part).__name__}"
        ) from None
    if not -extent <= index < extent:
        raise IndexError(f"index {index} is out of bounds for dimension {dimension} with size {extent}")
    return index


def _list(array: NDArray, extent: int | None, dimension: int | None) -> NDArray:
    if array.dtype == bool:
        if array.ndim != 1 or (extent is not None and len(array) != extent):
            raise IndexError(f"a mask of shape {array.shape} does not fit dimension {dimension} with size {extent}")
        return np.flatnonzero(array)
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.dtype.kind not in "iu":
        raise IndexError(f"a list of indices has integers or booleans, and not {array.dtype}")
    flat = array.ravel()
    if extent is not None:
        wrong = (flat < -extent) | (flat >= extent)
        if np.any(wrong):
            raise IndexError(f"index {flat[wrong][0]} is out of bounds for dimension {dimension} with size {extent}")
        flat = np.where(flat < 0, flat + extent, flat)
    return flat
