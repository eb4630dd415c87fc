"""The backend `engine="zarrd"` of xarray, and the accessor `.zarrd`.

>>> ds = xarray.open_dataset("zarrd://host:8000/lab/sea", engine="zarrd")
>>> ds.sel(time="2020").zarrd.mean("time")

A dataset is opened with one request for all its metadata, of one state of the store, and one for each index
coordinate, all at once. Elements are read when they are needed, and only those.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
import zarr
from xarray import Dataset, DataTree, Variable
from xarray.backends import BackendEntrypoint
from xarray.backends.common import datatree_from_dict_with_io_cleanup
from xarray.backends.store import StoreBackendEntrypoint
from xarray.backends.zarr import ZarrStore as XarrayZarrStore
from xarray.core import indexing
from zarr.core.buffer import Buffer, cpu
from zarr.storage import MemoryStore

from . import _elements
from ._accessor import DataArrayAccessor, DatasetAccessor, record_decoding
from ._address import join_path
from ._errors import InvalidRequestError
from ._html import is_array
from ._http import Connection
from ._lazy import LazyArray
from ._loop import run
from ._types import ElementType, element_type

COORDINATE_BYTES = 64 << 20
"""The size of an index coordinate up to which it is read when the dataset is opened."""

_DECODING = ("mask_and_scale", "decode_times", "concat_characters", "use_cftime", "decode_timedelta")


class ZarrdBackendEntrypoint(BackendEntrypoint):
    """Opens groups of a zarrd server by URL: `zarrd://host:port/path`, `zarrds://…`, or with `engine="zarrd"` `http://…`."""

    description: ClassVar[str] = "Open groups of a zarrd server, and compute there"
    url: ClassVar[str] = "https://zarrd.dev"
    supports_groups: ClassVar[bool] = True
    open_dataset_parameters: ClassVar[tuple[str, ...] | None] = (
        "filename_or_obj",
        "mask_and_scale",
        "decode_times",
        "concat_characters",
        "decode_coords",
        "drop_variables",
        "use_cftime",
        "decode_timedelta",
        "group",
        "token",
        "zarr_format",
        "storage_options",
    )

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """True of URLs that begin with `zarrd://` or `zarrds://`, and of nothing else."""
        return isinstance(filename_or_obj, str) and filename_or_obj.startswith(("zarrd://", "zarrds://"))

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        decode_coords: Any = True,
        group: str | None = None,
        token: str | None = None,
        zarr_format: int | None = None,
        storage_options: dict[str, Any] | None = None,
        **decoding: Any,
    ) -> Dataset:
        """Opens a group. `token` is by default that of `ZARRD_TOKEN` or `zarrd login`."""
        source = _Source(filename_or_obj, group, token, zarr_format, storage_options)
        return source.dataset("", source.fetch(1), drop_variables, decode_coords, decoding)

    def open_datatree(self, filename_or_obj: Any, **options: Any) -> DataTree:
        """Opens a group with all groups below it."""
        groups = self.open_groups_as_dict(filename_or_obj, **options)
        tree: DataTree = datatree_from_dict_with_io_cleanup(groups)
        return tree

    def open_groups_as_dict(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        decode_coords: Any = True,
        group: str | None = None,
        token: str | None = None,
        zarr_format: int | None = None,
        storage_options: dict[str, Any] | None = None,
        **decoding: Any,
    ) -> dict[str, Dataset]:
        """Opens a group and all groups below it, by their paths."""
        source = _Source(filename_or_obj, group, token, zarr_format, storage_options)
        documents = source.fetch("all")
        return {
            f"/{path}": source.dataset(path, document, drop_variables, decode_coords, decoding)
            for path, document in _groups("", documents)
        }


class _Source:
    """A group on the server, with the dialect that was asked for."""

    def __init__(
        self,
        url: Any,
        group: str | None,
        token: str | None,
        zarr_format: int | None,
        storage_options: dict[str, Any] | None,
    ) -> None:
        options = dict(storage_options or {})
        token = options.pop("token", token)
        if options:
            raise TypeError(f"storage_options has only token, and not {', '.join(options)}")
        if isinstance(url, Connection):
            self.connection = url
        elif hasattr(url, "_connection"):
            self.connection = url._connection
        else:
            self.connection = Connection.to(str(url), token)
        self.path = join_path(self.connection.address.path, group or "")
        self.zarr_format = zarr_format

    def fetch(self, depth: int | str) -> dict[str, Any]:
        dialect = None if self.zarr_format is None else f"v{self.zarr_format}"
        answer = run(_elements.node(self.connection, self.path, depth=depth, include="source", dialect=dialect))[0]
        document: dict[str, Any] = answer["node"]
        self.dialect = answer["dialect"]
        if is_array(document):
            raise InvalidRequestError(f"/{self.path} is an array; open the group that has it")
        return document

    def dataset(
        self, path: str, document: dict[str, Any], drop_variables: Any, decode_coords: Any, decoding: dict[str, Any]
    ) -> Dataset:
        store = _Store(self, join_path(self.path, path), document)
        dropped = {drop_variables} if isinstance(drop_variables, str) else set(drop_variables or ())
        run(store.load_coordinates(dropped))
        dataset = StoreBackendEntrypoint().open_dataset(
            store, drop_variables=drop_variables, decode_coords=decode_coords, **decoding
        )
        fully = all(decoding.get(name) in (None, True) for name in _DECODING if name != "use_cftime")
        record_decoding(dataset, fully and decoding.get("decode_timedelta") is None)
        return dataset


class _Store(XarrayZarrStore):
    """xarray's own store over metadata documents in memory, so that attributes and encodings are its own."""

    def __init__(self, source: _Source, path: str, document: dict[str, Any]) -> None:
        self._source = source
        self._node_path = path
        self._documents = document.get("members") or {}
        content = _documents(document, self._documents)
        zarr_format = document["zarr_format"]
        group = zarr.open_group(MemoryStore(content), mode="r", zarr_format=zarr_format, use_consolidated=False)
        self._lazy: dict[str, LazyArray] = {}
        super().__init__(group, mode="r", use_zarr_fill_value_as_mask=zarr_format == 2)
        for name, array in self.arrays():
            kind = element_type(self._documents[name])
            wrapped = self._variable(name)._data.array
            self._lazy[name] = LazyArray(
                source.connection,
                join_path(path, name),
                source.dialect,
                tuple(array.shape),
                np.dtype(wrapped.dtype),
                _with_dtype(kind, wrapped.dtype),
            )

    def _variable(self, name: str) -> Any:
        return super().open_store_variable(name)  # type: ignore[no-untyped-call]

    def open_store_variable(self, name: str) -> Variable:
        variable = self._variable(name)
        lazy = indexing.LazilyIndexedArray(self._lazy[name])
        return Variable(variable.dims, lazy, variable.attrs, variable.encoding, fastpath=True)

    async def load_coordinates(self, dropped: set[str]) -> None:
        """Reads all index coordinates at once, which xarray would read one after the other."""
        wanted = []
        for name, lazy in self._lazy.items():
            small = len(lazy.shape) == 1 and lazy.shape[0] * max(lazy.dtype.itemsize, 16) <= COORDINATE_BYTES
            if small and name not in dropped and self._variable(name).dims == (name,):
                wanted.append(lazy.load())
        await asyncio.gather(*wanted)


def _with_dtype(kind: ElementType, dtype: np.dtype[Any]) -> ElementType:
    return kind if kind.form != "npy" else ElementType(dtype, "npy")


def _documents(document: dict[str, Any], members: dict[str, Any]) -> dict[str, Buffer]:
    """The stored documents of a group and its arrays, by key."""
    found = _keys("", document)
    for name, member in members.items():
        if is_array(member):
            found.update(_keys(f"{name}/", member))
    return {key: cpu.Buffer.from_bytes(json.dumps(value).encode()) for key, value in found.items()}


def _keys(prefix: str, document: dict[str, Any]) -> dict[str, Any]:
    own = {name: value for name, value in document.items() if name not in ("members", "other_dialects")}
    if "_members" in own:
        own["members"] = own.pop("_members")
    if document["zarr_format"] == 3:
        # A copy of documents below, which may be older than these.
        own.pop("consolidated_metadata", None)
        return {f"{prefix}zarr.json": own}
    attributes = own.pop("attributes", None) or {}
    own.pop("node_type", None)
    kind = ".zarray" if is_array(document) else ".zgroup"
    return {f"{prefix}{kind}": own, f"{prefix}.zattrs": attributes}


def _groups(path: str, document: dict[str, Any]) -> Iterable[tuple[str, dict[str, Any]]]:
    yield path, document
    for name, member in sorted((document.get("members") or {}).items()):
        if not is_array(member):
            yield from _groups(join_path(path, name), member)


__all__ = ["DataArrayAccessor", "DatasetAccessor", "ZarrdBackendEntrypoint"]
