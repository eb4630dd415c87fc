"""The first hour with zarrd, step by step, each timed: serve, import, look, create, append, read, share, remove."""

from __future__ import annotations

import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
from conftest import TIMES

import zarrd
from zarrd._server import find_program

VARIABLES = ("t2m", "rain", "wind", "snow", "cloud")


@contextmanager
def step(name: str) -> Iterator[None]:
    begun = time.perf_counter()
    yield
    TIMES.append((name, time.perf_counter() - begun))


def day(number: int) -> xr.Dataset:
    hours = np.datetime64("2024-01-01", "ns") + (24 * number + np.arange(24)) * np.timedelta64(1, "h")
    shape = (24, 30, 60)
    values = {name: (("time", "lat", "lon"), np.full(shape, number, "f4")) for name in VARIABLES}
    return xr.Dataset(values, {"time": hours, "lat": np.linspace(60, 40, 30), "lon": np.linspace(0, 30, 60)})


@pytest.mark.filterwarnings("ignore")
def test_newcomer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("netCDF4")
    program = str(find_program())

    def command(*arguments: str) -> str:
        done = subprocess.run([program, *arguments], capture_output=True, text=True, check=True)
        return done.stdout

    zarr.create_array(tmp_path / "folder.zarr", name="mice", data=np.arange(12.0))
    (day(0) * 2).to_netcdf(tmp_path / "weather.nc")
    with step("serve"):
        server = zarrd.Server(tmp_path / "store")
    with server:
        with step("import a folder"):
            command("import", str(tmp_path / "folder.zarr"), "lab/folder.zarr", "--server", server.url)
        with step("import a NetCDF file"):
            zarrd.import_file(tmp_path / "weather.nc", "lab/weather", server=server.url)
        lab = zarrd.connect(server.url)["lab"]
        with step("look"):
            assert "mice  (12,) float64" in repr(lab.tree()) and "t2m" in lab._repr_html_()
            request = urllib.request.Request(f"{server.url}/browse/lab", headers={"Accept": "text/html"})
            assert b"<html" in urllib.request.urlopen(request).read().lower()
        data = np.arange(2000.0).reshape(40, 50)
        np.save(tmp_path / "y.npy", data)
        with step("create from .npy"):
            try:
                lab.put("y", np.load(tmp_path / "y.npy"))
            except zarrd.ServerTooOldError:
                lab.create_array("y", data=np.load(tmp_path / "y.npy"))
        assert np.array_equal(lab["y"][...], data)
        days(lab, server.url)
        with step("labelled slice to CSV"):
            request = urllib.request.urlopen(
                f"{server.url}/array/lab/weather/t2m?sel.time=2024-01-01T06&isel.lat=0&format=csv&header=labels"
            )
            assert request.read().startswith(b"time,0.0,")
        with step("share"):
            # From the first token on, the server is closed to those without one.
            token = command(
                "token", "create", "--name", "me", "--allow", "admin:/", "--access", str(tmp_path / "store/access")
            )
            lab = zarrd.connect(server.url, token=token)["lab"]
            monkeypatch.setenv("ZARRD_TOKEN", token.strip())
            link = command("share", server.url, "lab", "--expires", "1d").strip()
            monkeypatch.delenv("ZARRD_TOKEN")
            assert np.array_equal(zarrd.connect(f"{link}/store/lab")["y"][...], data)
            with pytest.raises(zarrd.ForbiddenError):
                zarrd.connect(link)["lab/y"][0] = 1
        with step("remove"):
            lab.delete("weather")
            assert "weather" not in lab


def days(lab: Any, url: str) -> None:
    """Appends days to five variables while xarray reads the dataset in a loop."""
    place = f"{url}/store/lab/growing"
    day(0).to_zarr(zarrd.ZarrStore(place))
    lengths: set[int] = set()
    failures: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            try:
                found = xr.open_dataset(place, engine="zarrd")
                assert len({found[name].sizes["time"] for name in (*VARIABLES, "time")}) == 1
                last = found.isel(time=-1).load()
                assert all((last[name] == last["t2m"]).all() for name in VARIABLES)
                lengths.add(found.sizes["time"])
            except BaseException as error:
                failures.append(error)
                return

    reader = threading.Thread(target=read)
    reader.start()
    dataset = xr.open_dataset(place, engine="zarrd")
    try:
        with step("append five days to a dataset that is read"):
            for number in range(1, 6):
                dataset = dataset.zarrd.append(day(number), dim="time")
    except zarrd.ServerTooOldError:
        TIMES.append(("append: the server is too old", 0.0))
        return
    finally:
        done.set()
        reader.join()
    assert not failures, failures[0]
    assert dataset.sizes["time"] == 144
    assert lengths <= {24 * each for each in range(1, 7)}
