"""GRIB files written with ecCodes and imported, compared with what cfgrib reads from them.

`scripts/dev show python grib` runs them, since ecCodes is too large for the environment of the other tests.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import eccodes
import numpy as np
import pytest
import xarray as xr

import zarrd

pytestmark = pytest.mark.filterwarnings("ignore")

GRID = {
    "Ni": 4,
    "Nj": 3,
    "latitudeOfFirstGridPointInDegrees": 60.0,
    "latitudeOfLastGridPointInDegrees": 50.0,
    "longitudeOfFirstGridPointInDegrees": 0.0,
    "longitudeOfLastGridPointInDegrees": 15.0,
    "iDirectionIncrementInDegrees": 5.0,
    "jDirectionIncrementInDegrees": 5.0,
    "dataDate": 20240201,
    "dataTime": 600,
    "bitsPerValue": 16,
}
PRESSURE, HEIGHT = 100, 103
"""Kinds of levels: surfaces of equal pressure, and heights above the ground."""


def message(category: int, number: int, kind: int, level: int, step: int) -> bytes:
    handle = eccodes.codes_grib_new_from_samples("regular_ll_pl_grib2")
    try:
        of_field = {"stepRange": step, "parameterCategory": category, "parameterNumber": number}
        of_level = {"typeOfFirstFixedSurface": kind, "level": level}
        for name, value in (GRID | of_field | of_level).items():
            eccodes.codes_set(handle, name, value)
        values = np.arange(12.0) + step + level + 1000 * category
        eccodes.codes_set(handle, "bitmapPresent", 1)
        eccodes.codes_set(handle, "missingValue", 9999.0)
        values[5] = 9999.0
        eccodes.codes_set_values(handle, values)
        found: bytes = eccodes.codes_get_message(handle)
        return found
    finally:
        eccodes.codes_release(handle)


def forecast() -> bytes:
    """Temperature and humidity at two pressures and two times."""
    fields = [(0, 0), (1, 1)]
    return b"".join(message(*field, PRESSURE, at, step) for field in fields for at in (850, 500) for step in (0, 6))


def write(file: Path, content: bytes) -> Path:
    file.write_bytes(content)
    return file


@pytest.fixture
def url(server: zarrd.Server, path: str) -> str:
    return f"{server.url.replace('http', 'zarrd')}/{path}/x"


def same(found: Any, expected: Any) -> None:
    xr.testing.assert_equal(found.load(), expected.load())
    for name in expected.variables:
        assert set(expected[name].attrs) <= set(found[name].attrs), name


def test_fields_are_imported(url: str, tmp_path: Path) -> None:
    file = write(tmp_path / "forecast.grib2", forecast())
    zarrd.import_file(file, url)
    expected = xr.open_dataset(file, engine="cfgrib", backend_kwargs={"indexpath": ""})
    assert expected.t.dims == ("step", "isobaricInhPa", "latitude", "longitude") and bool(expected.t.isnull().any())
    same(xr.open_dataset(url, engine="zarrd"), expected)
    assert [each.name for each in tmp_path.iterdir()] == ["forecast.grib2"]


def test_levels_that_do_not_fit_together_become_groups(url: str, tmp_path: Path) -> None:
    near = [message(0, 0, HEIGHT, 2, 0), message(2, 2, HEIGHT, 10, 0)]
    file = write(tmp_path / "mixed.grb2", forecast() + b"".join(near))
    group = zarrd.import_file(file, url)
    tree = xr.open_datatree(url, engine="zarrd")
    assert {path.strip("/") for path in tree.groups} - {""} == {
        "isobaricInhPa",
        "heightAboveGround",
        "heightAboveGround_2",
    }
    assert group["isobaricInhPa/t"].shape == (2, 2, 3, 4)
    only = {"indexpath": "", "filter_by_keys": {"typeOfLevel": "isobaricInhPa"}}
    expected = xr.open_dataset(file, engine="cfgrib", backend_kwargs=only)
    same(xr.open_dataset(f"{url}/isobaricInhPa", engine="zarrd"), expected)
    near_ground = [dict(tree[each].data_vars) for each in ("heightAboveGround", "heightAboveGround_2")]
    assert sorted(name for each in near_ground for name in each) == ["t2m", "u10"]


def test_damaged_files_are_refused(url: str, tmp_path: Path) -> None:
    whole = forecast()
    for name, content in {
        "cut.grib2": whole[:-40],
        "gap.grib2": whole[:100] + whole[150:],
        "empty.grib": b"",
        "text.grb": b"hello",
        "head.grib2": whole[:16],
    }.items():
        with pytest.raises(ValueError, match="damaged"):
            zarrd.import_file(write(tmp_path / name, content), url)
    with pytest.raises(zarrd.NotFoundError):
        zarrd.connect(url)[""].refresh()


def test_command(server: zarrd.Server, path: str, tmp_path: Path) -> None:
    file = write(tmp_path / f"{path}.grib2", forecast())
    command = [sys.executable, "-m", "zarrd", "import", str(file), "--server", server.url]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"imported {file} to {server.url}/store/{path}\n"), done.stderr
