"""Programs that write by URL, as their users call them, with nothing of zarrd but the installed file system."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

import zarrd

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.parametrize("zarr_format", [2, 3]),
]


@pytest.fixture
def url(server: zarrd.Server, path: str) -> str:
    return f"{server.url.replace('http', 'zarrd')}/{path}/x.zarr"


def weather(start: int = 0, hours: int = 6) -> xr.Dataset:
    hour = np.arange(start, start + hours)
    return xr.Dataset(
        {"rain": (("hour", "x"), np.add.outer(hour * 10.0, np.arange(4.0)))}, coords={"hour": hour, "x": np.arange(4)}
    )


def read(url: str, zarr_format: int) -> xr.Dataset:
    return xr.open_zarr(url, chunks=None, zarr_format=zarr_format).load()


def test_xarray_writes_twice(url: str, zarr_format: Any) -> None:
    weather().to_zarr(url, mode="w", zarr_format=zarr_format)
    weather(7, 3).to_zarr(url, mode="w", zarr_format=zarr_format)
    xr.testing.assert_identical(read(url, zarr_format), weather(7, 3))


def test_xarray_adds(url: str, zarr_format: Any) -> None:
    weather().to_zarr(url, mode="a", zarr_format=zarr_format)
    weather().rename(rain="snow")[["snow"]].to_zarr(url, mode="a", zarr_format=zarr_format)
    xr.testing.assert_identical(read(url, zarr_format), weather().assign(snow=weather().rain))


def test_xarray_appends(url: str, zarr_format: Any) -> None:
    weather().to_zarr(url, zarr_format=zarr_format)
    weather(6, 3).to_zarr(url, append_dim="hour")
    xr.testing.assert_identical(read(url, zarr_format), weather(0, 9))


def test_xarray_writes_regions(url: str, zarr_format: Any) -> None:
    (weather() * 0).to_zarr(url, zarr_format=zarr_format)
    weather().isel(hour=slice(2, 4)).to_zarr(url, region="auto")
    found = read(url, zarr_format).rain
    assert np.array_equal(found[2:4], weather().rain[2:4]) and not found[:2].any()


def test_dask_overwrites(url: str, zarr_format: Any) -> None:
    da = pytest.importorskip("dask.array")
    with zarr.config.set({"default_zarr_format": zarr_format}):
        for factor in (1, 2):
            da.to_zarr(da.arange(100, chunks=10) * factor, url, overwrite=True)
    assert np.array_equal(da.from_zarr(url).compute(), np.arange(100) * 2)


def test_zarr_deletes(url: str, zarr_format: Any) -> None:
    group = zarr.open_group(url, mode="a", zarr_format=zarr_format)
    group.create_array("below/a", data=np.ones(5))
    group.create_array("b", data=np.ones(5))
    del group["below"]
    assert sorted(zarr.open_group(url, mode="r").keys()) == ["b"]


def test_zarr_shrinks(url: str, zarr_format: Any) -> None:
    array = zarr.create_array(url, shape=(10, 10), chunks=(5, 5), dtype="i4", zarr_format=zarr_format)
    array[...] = 7
    array.resize((5, 5))
    array.resize((10, 10))
    assert zarr.open_array(url, mode="r")[...].sum() == 25 * 7


def test_zarr_fills(url: str, zarr_format: Any) -> None:
    array = zarr.create_array(url, shape=(10,), chunks=(5,), dtype="i4", zarr_format=zarr_format)
    array[...] = 7
    array[0:5] = 0
    assert array.nchunks_initialized == 1 and zarr.open_array(url, mode="r")[...].sum() == 35


def test_zarr_opens_anew(url: str, zarr_format: Any) -> None:
    zarr.open_group(url, mode="w", zarr_format=zarr_format).create_array("a", data=np.ones(5))
    zarr.open_group(url, mode="w", zarr_format=zarr_format).create_array("b", data=np.ones(5))
    assert sorted(zarr.open_group(url, mode="r").keys()) == ["b"]


def test_anndata(url: str, zarr_format: Any) -> None:
    anndata = pytest.importorskip("anndata")
    scipy = pytest.importorskip("scipy.sparse")
    if zarr_format == 2:
        anndata.settings.zarr_write_format = 2
    counts = scipy.csr_matrix(np.eye(5, 3, dtype="f4"))
    for factor in (1, 2):
        table = anndata.AnnData(counts * factor)
        table.obs["cell"] = [f"cell{i}" for i in range(5)]
        table.write_zarr(url)
    found = anndata.read_zarr(url)
    assert (found.X.toarray() == np.eye(5, 3) * 2).all() and list(found.obs["cell"]) == [f"cell{i}" for i in range(5)]
    anndata.settings.reset("zarr_write_format")


def test_ome_zarr(url: str, zarr_format: Any) -> None:
    writer = pytest.importorskip("ome_zarr.writer")
    format_module = pytest.importorskip("ome_zarr.format")
    image = np.random.default_rng(1).integers(0, 255, (2, 64, 64), dtype="u1")
    fmt = format_module.FormatV04() if zarr_format == 2 else format_module.FormatV05()
    writer.write_image(image, url, axes="cyx", fmt=fmt)
    multiscales = zarr.open_group(url, mode="r")
    attributes = dict(multiscales.attrs)
    listed = attributes["multiscales"] if zarr_format == 2 else attributes["ome"]["multiscales"]
    assert np.array_equal(multiscales[listed[0]["datasets"][0]["path"]][...], image)
