"""Files that are imported, compared with what xarray reads from the file itself."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import zarrd

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def url(server: zarrd.Server, path: str) -> str:
    return f"{server.url.replace('http', 'zarrd')}/{path}/x"


def weather(hours: int = 50) -> xr.Dataset:
    time = np.datetime64("2020-01-01", "ns") + np.arange(hours) * np.timedelta64(1, "h")
    rain = np.where(
        np.arange(hours * 12).reshape(hours, 3, 4) % 5 == 0, np.nan, np.arange(hours * 12).reshape(hours, 3, 4) / 2
    )
    dataset = xr.Dataset(
        {
            "rain": (("time", "lat", "lon"), rain, {"units": "mm", "valid_range": [0.0, 500.0]}),
            "station": ("lat", np.array(["Bern", "Zürich", ""], object)),
            "code": ("lat", np.array(["a1", "b2", "c3"], "S2")),
            "crs": ((), np.int32(0), {"grid_mapping_name": "latitude_longitude", "radius": 6.371e6}),
            "plain": (("time",), np.arange(hours, dtype="f4"), {"_FillValue_": 3}),
        },
        coords={"time": time, "lat": [60.0, 55.0, 50.0], "lon": np.arange(4, dtype="f4")},
        attrs={"title": "test", "levels": np.array([1, 2, 3], "i4")},
    )
    dataset.rain.encoding = {
        "dtype": "i2",
        "scale_factor": 0.5,
        "_FillValue": -1,
        "chunksizes": (10, 3, 4),
        "zlib": True,
    }
    dataset.time.encoding = {"units": "hours since 2020-01-01", "dtype": "i4"}
    return dataset


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
def test_netcdf(url: str, tmp_path: Path, engine: Any) -> None:
    pytest.importorskip({"netcdf4": "netCDF4"}.get(engine, engine))
    file = tmp_path / "weather.nc"
    tree = xr.DataTree.from_dict({"/": weather(), "/sub/deep": weather().drop_vars("crs")})
    tree.to_netcdf(file, engine=engine, unlimited_dims={"/": ["time"]})
    group = zarrd.import_file(file, url)
    found, expected = xr.open_datatree(url, engine="zarrd"), xr.open_datatree(file, engine=engine)
    for node in expected.subtree:
        got, wanted = found[node.path].to_dataset(), node.to_dataset().load()
        for name in wanted.variables:
            if wanted[name].dtype.kind in "OSTU":
                texts = [each.decode() if isinstance(each, bytes) else each for each in wanted[name].values.ravel()]
                assert [str(each) for each in got[name].values.ravel()] == texts
            else:
                assert got[name].dtype == wanted[name].dtype
                xr.testing.assert_identical(got[name].load().variable, wanted[name].variable)
        assert got.attrs.keys() == wanted.attrs.keys()
    for key in ("scale_factor", "_FillValue", "dtype"):
        assert found["rain"].encoding[key] == expected["rain"].encoding[key]
    assert found["time"].encoding["units"] == expected["time"].encoding["units"]
    assert group["rain"].dtype == "i2" and group["rain"].chunks == (50, 3, 4)


def test_readers_see_all_or_nothing(url: str, tmp_path: Path) -> None:
    pytest.importorskip("netCDF4")
    file = tmp_path / "weather.nc"
    weather(2000).to_netcdf(file)
    seen: list[int] = []
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            try:
                seen.append(len(xr.open_dataset(url, engine="zarrd").variables))
            except zarrd.NotFoundError:
                seen.append(0)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        zarrd.import_file(file, url)
    finally:
        done.set()
        watcher.join()
    assert set(seen) <= {0, 8} and 0 in seen


def test_nothing_is_left_of_what_failed(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("netCDF4")
    file = tmp_path / "weather.nc"
    weather().to_netcdf(file)
    from zarrd import _elements

    async def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("stopped")

    monkeypatch.setattr(_elements, "declare", fails)
    with pytest.raises(RuntimeError, match="stopped"):
        zarrd.import_file(file, url)
    monkeypatch.undo()
    assert not _keys(url)
    zarrd.import_file(file, url)
    with pytest.raises(zarrd.ConflictError, match="--overwrite"):
        zarrd.import_file(file, url)
    zarrd.import_file(file, url, overwrite=True, exclude=["plain"])
    assert "plain" not in xr.open_dataset(url, engine="zarrd")
    with pytest.raises(ValueError, match="no variable 'nothing'"):
        zarrd.import_file(file, url, overwrite=True, exclude=["nothing"])


def _keys(url: str) -> list[str]:
    import fsspec

    fs, root = fsspec.url_to_fs(url)
    found: list[str] = fs.find(root)
    return found


def test_damaged_files_and_types_of_users(url: str, tmp_path: Path) -> None:
    netcdf4 = pytest.importorskip("netCDF4")
    file = tmp_path / "weather.nc"
    weather().to_netcdf(file)
    whole = file.read_bytes()
    for name, content in {
        "cut.nc": whole[: len(whole) // 2],
        "zero.nc": b"",
        "text.nc": b"hello",
        "head.nc": whole[:100],
    }.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match="damaged|cannot be read"):
            zarrd.import_file(tmp_path / name, url)
    with netcdf4.Dataset(tmp_path / "user.nc", "w") as dataset:
        dataset.createDimension("x", 2)
        kind = dataset.createCompoundType(np.dtype([("a", "i4"), ("b", "f8")]), "pair")
        dataset.createVariable("pairs", kind, ("x",))
        dataset.createVariable("plain", "f4", ("x",))[:] = 1
    with pytest.raises(ValueError, match="'pairs' has the user-defined type.*--exclude pairs"):
        zarrd.import_file(tmp_path / "user.nc", url)
    zarrd.import_file(tmp_path / "user.nc", url, exclude=["pairs"])
    assert list(xr.open_dataset(url, engine="zarrd").data_vars) == ["plain"]
    with pytest.raises(FileNotFoundError):
        zarrd.import_file(tmp_path / "none.nc", url)
    with pytest.raises(ValueError, match="by its name"):
        zarrd.import_file(Path(__file__), url)
    with pytest.raises(ValueError, match="name a prefix"):
        zarrd.import_file(file, url.rpartition("/")[0].rpartition("/")[0])


def test_csv(url: str, tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    file = tmp_path / "table.csv"
    file.write_text("when,x,n,name\n2020-01-01T06:00,1.5,1,a\n2020-01-02,,2,ä\n")
    zarrd.import_file(file, url)
    found = xr.open_dataset(url, engine="zarrd").load()
    assert found.when.values.astype("M8[h]").tolist() == np.array(["2020-01-01T06", "2020-01-02T00"], "M8[h]").tolist()
    assert np.array_equal(found.x, [1.5, np.nan], equal_nan=True) and found.n.dtype == "i8"
    assert list(map(str, found.name.values)) == ["a", "ä"]
    (tmp_path / "bad.csv").write_bytes(b'a,b\n"1,2\n3,4,5,6\n')
    with pytest.raises(ValueError, match="table"):
        zarrd.import_file(tmp_path / "bad.csv", url, overwrite=True)


def test_missing_packages_are_named(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "forecast.grib2"
    file.write_bytes(b"GRIB")
    monkeypatch.setitem(sys.modules, "cfgrib", None)
    with pytest.raises(ImportError, match=r"forecast\.grib2 needs a package: pip install 'zarrd\[grib\]'"):
        zarrd.import_file(file, url)
    assert not _keys(url)


def test_command(server: zarrd.Server, path: str, tmp_path: Path) -> None:
    pytest.importorskip("netCDF4")
    file = tmp_path / f"{path}.nc"
    weather(5).to_netcdf(file)
    command = [sys.executable, "-m", "zarrd", "import", str(file), "--server", server.url]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"imported {file} to {server.url}/store/{path}\n"), done.stderr
    again = subprocess.run(command, capture_output=True, text=True)
    assert again.returncode == 1 and "--overwrite" in again.stderr
