"""`Group` and `connect`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from . import _elements
from ._address import join_path
from ._array import Array, _Node
from ._declare import array_document
from ._errors import NotFoundError, ZarrdError
from ._html import is_array, tree_html, tree_text
from ._http import Connection, Retries
from ._loop import run
from ._types import cast


def connect(url: str, token: str | None = None, *, retries: Retries | None = None) -> Group:
    """The group at a URL: the root of a server's store, or a group below it, also behind a share link.

    `token` is by default that of `ZARRD_TOKEN` or `zarrd login`. `retries` says how long requests are tried.

    Raises `NotZarrdError` if something else answers, `ServerTooOldError` for a zarrd that is too old, and
    `ConnectionFailed` if nothing does.
    """
    connection = Connection.to(url, token, retries)
    run(_elements.ready(connection))
    return Group(connection, connection.address.path)


class Group(_Node):
    """A group on the server: `group["lab/x"]` is the array or group at that path below it."""

    def __getitem__(self, path: str) -> Any:
        full = join_path(self.path, path)
        document = run(_elements.node(self._connection, full, depth=0))[0]
        return self._node(full, document)

    def _node(self, path: str, document: dict[str, Any]) -> Array | Group:
        kind = Array if is_array(document) else Group
        return kind(self._connection, path, document)

    def __contains__(self, path: object) -> bool:
        try:
            self[str(path)]
        except NotFoundError:
            return False
        return True

    def get(self, path: str, default: Any = None) -> Any:
        """The array or group at a path, or `default` if there is none."""
        try:
            return self[path]
        except NotFoundError:
            return default

    def members(self) -> dict[str, Array | Group]:
        """The arrays and groups directly below, by name, of one state of the store."""
        document = run(_elements.node(self._connection, self.path))[0]
        found = sorted((document.get("members") or {}).items())
        return {name: self._node(join_path(self.path, name), each) for name, each in found}

    def arrays(self) -> dict[str, Array]:
        """The arrays directly below."""
        return {name: each for name, each in self.members().items() if isinstance(each, Array)}

    def groups(self) -> dict[str, Group]:
        """The groups directly below."""
        return {name: each for name, each in self.members().items() if isinstance(each, Group)}

    def keys(self) -> list[str]:
        """The names of the members."""
        return list(self.members())

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.members())

    def tree(self, depth: int | None = None) -> Tree:
        """The hierarchy below, to a depth, as text and in notebooks as HTML."""
        document = run(_elements.node(self._connection, self.path, depth="all" if depth is None else depth))[0]
        return Tree(self.path, document)

    def create_group(self, path: str, attrs: Mapping[str, Any] | None = None, *, overwrite: bool = False) -> Group:
        """Creates a group, and those above it. Raises `ConflictError` if something else is there."""
        document = {"zarr_format": 3, "node_type": "group", "attributes": dict(attrs or {})}
        full = join_path(self.path, path)
        created = run(_elements.declare(self._connection, full, document, overwrite=overwrite))
        return Group(self._connection, full, created)

    def create_array(
        self,
        path: str,
        shape: Sequence[int] | int | None = None,
        dtype: Any = None,
        *,
        data: Any = None,
        chunks: Sequence[int] | str = "auto",
        shards: Sequence[int] | None = None,
        dims: Sequence[str | None] | None = None,
        attrs: Mapping[str, Any] | None = None,
        fill_value: Any = None,
        compressor: str | None = "zstd",
        overwrite: bool = False,
    ) -> Array:
        """Creates an array of Zarr v3, and the groups above it.

        Shape and type are given, or those of `data`, which is written in a second commit. Chunks are by default of
        about 1 MiB. `overwrite` replaces what is there; without it, a different node is a `ConflictError`.
        """
        elements = None
        if data is not None:
            elements = np.asarray(data)
            shape = elements.shape if shape is None else shape
            dtype = elements.dtype if dtype is None else dtype
        if shape is None or dtype is None:
            raise ValueError("an array needs shape and dtype, or data")
        extents = (shape,) if isinstance(shape, int) else tuple(shape)
        document = array_document(
            extents,
            dtype,
            chunks=chunks,
            shards=shards,
            dims=dims,
            attrs=attrs,
            fill_value=fill_value,
            compressor=compressor,
        )
        full = join_path(self.path, path)
        created = run(_elements.declare(self._connection, full, document, overwrite=overwrite))
        array = Array(self._connection, full, created)
        if elements is not None and elements.size:
            array[...] = cast(elements, array.element_type)
        return array

    def put(self, path: str, value: Any, *, overwrite: bool = False, **options: Any) -> Any:
        """Stores an array of NumPy, in one commit, or an object of xarray.

        The server chooses the chunks and codecs of an array of NumPy. A Dataset, DataArray or DataTree is written by
        its `to_zarr`, which gets the options; readers may see it before it is complete. Returns the node.
        """
        full = join_path(self.path, path)
        if hasattr(value, "to_zarr") and hasattr(value, "dims"):
            from ._store import ZarrStore

            address = type(self._connection.address)(self._connection.address.base, full)
            store = ZarrStore(Connection(address, self._connection.token, self._connection.retries))
            dataset = (
                value.to_dataset(name=value.name or full.rpartition("/")[2])
                if hasattr(value, "to_dataset") and not (hasattr(value, "data_vars"))
                else value
            )
            dataset.to_zarr(store, **{"mode": "w" if overwrite else "w-", **options})
            return self[path]
        elements = np.asarray(value)
        if elements.dtype.hasobject:
            raise TypeError("an array of objects has no type that can be stored; use create_array(…, dtype=str)")
        run(_elements.create_from(self._connection, full, elements, {"overwrite": overwrite, **options}))
        return self[path]

    def delete(self, path: str) -> int:
        """Erases an array or group with everything below it; returns the number of keys."""
        full = join_path(self.path, path)
        if full == self.path:
            raise ValueError("name what is erased; an empty path would erase the group itself")
        return run(_elements.erase(self._connection, full))

    def __delitem__(self, path: str) -> None:
        run(_elements.node(self._connection, join_path(self.path, path), depth=0))
        self.delete(path)

    def __repr__(self) -> str:
        try:
            members = ", ".join(self.keys())
            return f"<zarrd.Group /{self.path} at {self._connection.address.base}: {members or 'empty'}>"
        except NotFoundError:
            return f"<zarrd.Group /{self.path} at {self._connection.address.base}: does not exist>"
        except ZarrdError as error:
            return f"<zarrd.Group /{self.path} at {self._connection.address.base}: {error}>"

    def _repr_html_(self) -> str:
        try:
            return self.tree(2)._repr_html_()
        except ZarrdError as error:
            return f"<b>/{self.path}</b>: {error}"


class Tree:
    """A hierarchy as it was when it was read. `documents` has the metadata documents, with `members`."""

    def __init__(self, path: str, documents: dict[str, Any]) -> None:
        self.path = path
        self.documents = documents

    def __repr__(self) -> str:
        return tree_text(self.path, self.documents)

    def _repr_html_(self) -> str:
        return tree_html(self.path, self.documents)


__all__ = ["Group", "Tree", "connect"]
