"""`import_file`: NetCDF, HDF5, GRIB and CSV files as groups of Zarr."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count, product
from math import ceil, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _elements, _keys
from ._address import SCHEMES, Address, join_path
from ._declare import auto_chunks
from ._errors import ConflictError, ZarrdError
from ._http import Connection
from ._loop import run

if TYPE_CHECKING:
    from ._group import Group

SERVER = "http://127.0.0.1:8000"
"""The server of a prefix that is not a URL."""

BLOCK_BYTES = 64 << 20
"""The bytes of a variable that are in memory at once."""

_ENGINES = {
    ".nc": None,
    ".nc4": None,
    ".cdf": None,
    ".netcdf": None,
    ".h5": "h5netcdf",
    ".hdf5": "h5netcdf",
    ".he5": "h5netcdf",
    ".grib": "cfgrib",
    ".grib2": "cfgrib",
    ".grb": "cfgrib",
    ".grb2": "cfgrib",
}


def import_file(
    path: str | os.PathLike[str],
    prefix: str,
    *,
    server: str = SERVER,
    token: str | None = None,
    overwrite: bool = False,
    exclude: Iterable[str] = (),
    engine: str | None = None,
    progress: bool = True,
) -> Group:
    """Copies a NetCDF, HDF5, GRIB or CSV file to a group, and returns the group.

    `prefix` is a URL such as `zarrd://host:8000/lab/x`, or a path on `server`. Variables are copied in blocks of at
    most 64 MiB, as they are stored: with their attributes, packed and with the units of times, in the chunks of the
    file if it has some of a useful size. Groups of the file become groups; so do the kinds of levels of a GRIB file whose
    coordinates do not agree. All of it becomes visible in one commit at
    the end; if anything fails before, nothing is left.

    `exclude` names variables that are left out. `overwrite` erases what is at the prefix first; without it, that is a
    `ConflictError`. Raises `ValueError` for a file that cannot be read, and for a variable whose type Zarr lacks.
    """
    source = Path(path)
    if not source.is_file():
        raise FileNotFoundError(f"{source} is not a file" if source.exists() else f"there is no file {source}")
    url = prefix if prefix.partition("://")[0] in SCHEMES else ""
    connection = Connection.to(url or server, token)
    target = connection.address.path if url else join_path(connection.address.path, prefix)
    if not target:
        raise ValueError("name a prefix below which the file is imported; the root of the store is not one")
    with _opened(source, engine) as tree:
        return _copy(tree, connection, target, set(exclude), overwrite, progress)


@contextmanager
def _opened(source: Path, engine: str | None) -> Iterator[dict[str, Any]]:
    """The groups of a file as datasets by path, undecoded."""
    try:
        import xarray
    except ModuleNotFoundError as error:
        raise ImportError("importing files needs xarray: pip install 'zarrd[netcdf]'") from error
    suffix = source.suffix.lower()
    if engine is None and suffix in (".csv", ".tsv", ".txt"):
        yield {"/": _table(source, suffix)}
        return
    if engine is None and suffix not in _ENGINES:
        raise ValueError(
            f"{source.name} is not known as NetCDF, HDF5, GRIB or CSV by its name; pass engine=… of xarray"
        )
    engine = engine or _ENGINES[suffix]
    options: dict[str, Any] = dict.fromkeys(
        ("mask_and_scale", "decode_times", "decode_timedelta", "decode_coords"), False
    )
    if engine == "h5netcdf":
        options["phony_dims"] = "access"
    groups: dict[str, Any] = {}
    try:
        try:
            if engine == "cfgrib":
                groups = _grib(source, options)
            else:
                groups = xarray.open_groups(source, engine=engine, **options)
        except ZarrdError:
            raise
        except ImportError as error:
            extra = "grib" if engine == "cfgrib" else "netcdf"
            raise ImportError(
                f"reading {source.name} needs a package: pip install 'zarrd[{extra}]' ({error})"
            ) from error
        except Exception as error:
            if "unrecognized engine" in str(error) or "found the following matches" in str(error):
                raise ImportError(f"reading {source.name} needs a package that is not installed: {error}") from error
            raise ValueError(f"{source} cannot be read; it may be damaged or of another format: {error}") from error
        yield groups
    finally:
        for dataset in groups.values():
            dataset.close()


def _grib(source: Path, options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a GRIB file: one dataset, or a group for each kind of level if their coordinates do not agree."""
    try:
        import cfgrib
    except RuntimeError as error:
        # The library of ecCodes is missing.
        raise ImportError(str(error)) from error
    # No index is left next to the file, and messages that are damaged, or fit nowhere, are not left out.
    reading = {**options, "backend_kwargs": {"indexpath": "", "errors": "raise"}}
    try:
        return {"/": cfgrib.open_dataset(source, **reading)}
    except cfgrib.DatasetBuildError:
        # By its coordinates cfgrib decides what belongs together.
        datasets = cfgrib.open_datasets(str(source), **reading | {"decode_coords": True})
    groups: dict[str, Any] = {}
    for dataset in datasets:
        for variable in dataset.data_vars.values():
            variable.attrs["coordinates"] = " ".join(name for name in variable.coords if name not in variable.dims)
        level = next(iter(dataset.data_vars.values())).attrs.get("GRIB_typeOfLevel", "undef")
        names = (f"/{level}" if number == 1 else f"/{level}_{number}" for number in count(1))
        groups[next(name for name in names if name not in groups)] = dataset
    return groups


def _table(source: Path, suffix: str) -> Any:
    """A table as a dataset with a one-dimensional variable for each column."""
    try:
        import pandas
        import xarray
    except ModuleNotFoundError as error:
        raise ImportError(f"importing CSV needs {error.name}: pip install 'zarrd[netcdf]'") from error
    try:
        table = pandas.read_csv(source, sep="\t" if suffix == ".tsv" else ",")
    except (ValueError, UnicodeDecodeError) as error:
        raise ValueError(f"{source} cannot be read as a table: {error}") from error
    variables: dict[str, Any] = {}
    for name in table.columns:
        column = table[name]
        values = column.to_numpy()
        if values.dtype.kind not in "biufM":
            texts = column.dropna()
            times = None
            if len(texts):
                with suppress(ValueError, TypeError):
                    times = pandas.to_datetime(column, format="ISO8601", utc=True).dt.tz_localize(None)
            if times is not None:
                values = times.to_numpy().astype("M8[ns]")
            else:
                values = column.astype(object).where(column.notna(), "").astype(str).to_numpy(object)
        variables[str(name)] = ("row", values)
    return xarray.Dataset(variables)


def _copy(
    tree: dict[str, Any], connection: Connection, target: str, exclude: set[str], overwrite: bool, progress: bool
) -> Group:
    import zarr

    from ._group import Group
    from ._staging import StagingStore

    names = {name for dataset in tree.values() for name in map(str, dataset.variables)}
    if exclude - names:
        raise ValueError(f"there is no variable {sorted(exclude - names)[0]!r} to exclude; there are {sorted(names)}")
    plans = [
        (join_path(path, name), variable, _storable(str(name), variable))
        for path, dataset in tree.items()
        for name, variable in ((str(each), dataset.variables[each]) for each in dataset.variables)
        if name not in exclude
    ]
    run(_make_room(connection, target, overwrite))
    address = Address(connection.address.base, target)
    store = StagingStore(Connection(address, connection.token, connection.retries))
    try:
        root = zarr.open_group(store, mode="w", zarr_format=3)
        for path, dataset in tree.items():
            group = root.require_group(path.strip("/")) if path.strip("/") else root
            group.update_attributes({str(key): _plain(value) for key, value in dataset.attrs.items()})
        total = sum(variable.size * max(dtype.itemsize, 1) for _, variable, dtype in plans)
        with _bar(total, progress) as advance:
            for path, variable, dtype in plans:
                _copy_variable(root, path, variable, dtype, advance)
        run(_elements.declare(connection, target, store.tree(), adopt=True))
    except BaseException:
        with suppress(ZarrdError):
            run(_keys.delete_prefix(connection, target))
        raise
    return Group(connection, target)


async def _make_room(connection: Connection, target: str, overwrite: bool) -> None:
    async for entry in _keys.keys(connection, target, limit=1):
        if not overwrite:
            raise ConflictError(
                f"there is something at /{target}, such as {entry.key}; overwrite=True (--overwrite) erases it first",
                status=409,
            )
        await _keys.delete_prefix(connection, target)


def _storable(name: str, variable: Any) -> np.dtype[Any]:
    """The type in which a variable is stored; of texts `object`."""
    dtype: np.dtype[Any] = variable.dtype
    metadata: dict[str, Any] = dict(dtype.metadata or {})
    # Of texts of variable length, as xarray and h5py mark them.
    marked = metadata.get("vlen", metadata.get("element_type"))
    if dtype.kind in "SUT" or marked in (str, bytes):
        return np.dtype(object)
    if dtype.kind in "biufcmM":
        return dtype.newbyteorder("=")
    if dtype.kind == "O" and variable.size <= 1 << 20 and all(isinstance(each, str) for each in variable.values.flat):
        return np.dtype(object)
    raise ValueError(
        f"the variable {name!r} has the user-defined type {dtype}, which Zarr does not have; leave it out with "
        f"exclude=[{name!r}] (--exclude {name})"
    )


def _chunks(variable: Any, itemsize: int) -> tuple[int, ...]:
    """The file's chunks, joined along the first dimension up to about 1 MiB; without any, those of new arrays."""
    shape = variable.shape
    stored = variable.encoding.get("chunksizes") or ()
    if len(stored) != len(shape) or not all(stored) or prod(stored) * itemsize > 1 << 26:
        return auto_chunks(shape, itemsize)
    chunks = [min(chunk, max(extent, 1)) for chunk, extent in zip(stored, shape, strict=True)]
    for axis in range(len(chunks)):
        most = max(1, (1 << 20) // max(prod(chunks) * itemsize, 1))
        chunks[axis] = min(chunks[axis] * most, chunks[axis] * ceil(max(shape[axis], 1) / chunks[axis]))
    return tuple(chunks)


def _copy_variable(root: Any, path: str, variable: Any, dtype: np.dtype[Any], advance: Callable[[int], None]) -> None:
    from xarray.backends.zarr import FillValueCoder

    itemsize = max(dtype.itemsize, 1)
    attributes = {str(key): _plain(value) for key, value in variable.attrs.items()}
    if "_FillValue" in attributes and dtype.kind in "fcbiu":
        value = np.asarray(variable.attrs["_FillValue"]).astype(dtype).reshape(-1)[0]
        attributes["_FillValue"] = FillValueCoder.encode(value, dtype)
    elif dtype.kind == "O":
        attributes.pop("_FillValue", None)
    values = variable
    if dtype.kind in "mM":
        # Times of a table, in the notation of the CF conventions.
        from xarray.conventions import encode_cf_variable

        values = encode_cf_variable(variable)
        attributes.update({str(key): _plain(value) for key, value in values.attrs.items()})
        dtype = values.dtype
    chunks = _chunks(variable, itemsize)
    array = root.create_array(
        path,
        shape=variable.shape,
        dtype="string" if dtype.kind == "O" else dtype,
        chunks=tuple(max(each, 1) for each in chunks),
        dimension_names=[str(each) for each in variable.dims],
        attributes=attributes,
    )
    for region in _blocks(variable.shape, chunks, itemsize):
        block = np.asarray(values[region].values if region else values.values)
        if dtype.kind == "O":
            block = np.vectorize(_text, otypes=[object])(block) if block.size else block.astype(object)
        array[region if region else ...] = block.astype(dtype, copy=False) if dtype.kind != "O" else block
        advance(int(block.size) * itemsize)


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _blocks(shape: tuple[int, ...], chunks: tuple[int, ...], itemsize: int) -> Iterator[tuple[slice, ...]]:
    """Regions of whole chunks that have at most 64 MiB together, if a chunk has no more."""
    sizes = list(chunks)
    for axis in reversed(range(len(shape))):
        room = max(1, BLOCK_BYTES // max(prod(sizes) * itemsize, 1))
        sizes[axis] = min(sizes[axis] * room, max(shape[axis], 1))
        if sizes[axis] < shape[axis]:
            sizes[axis] = max(sizes[axis] // chunks[axis], 1) * chunks[axis]
            break
    starts = [range(0, extent, size) for extent, size in zip(shape, sizes, strict=True)]
    for corner in product(*starts):
        yield tuple(
            slice(start, min(start + size, extent)) for start, size, extent in zip(corner, sizes, shape, strict=True)
        )


def _plain(value: Any) -> Any:
    """An attribute as JSON has it."""
    if isinstance(value, np.ndarray):
        return [_plain(each) for each in value.ravel()] if value.size != 1 else _plain(value.reshape(-1)[0])
    if isinstance(value, np.generic):
        return _plain(value.item()) if not isinstance(value, (np.datetime64, np.timedelta64)) else str(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)


@contextmanager
def _bar(total: int, shown: bool) -> Iterator[Callable[[int], None]]:
    """A progress bar, if tqdm is installed and the output is a terminal or a notebook."""
    if shown:
        with suppress(ModuleNotFoundError):
            from tqdm.auto import tqdm

            with tqdm(total=total, unit="B", unit_scale=True, unit_divisor=1024, disable=None, delay=1) as bar:

                def advance(count: int) -> None:
                    bar.update(count)

                yield advance
            return
    yield lambda _: None
