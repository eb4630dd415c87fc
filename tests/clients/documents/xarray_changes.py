"""Writes datasets with xarray into /store, patches their documents, and opens and saves them with xarray after each
patch.

    xarray_changes.py URL NAME
"""

import json
import math
import sys
import warnings
from urllib.request import Request, urlopen

import fsspec
import numpy as np
import xarray as xr
import zarr
from fsspec.implementations.http import HTTPFileSystem

url, name = sys.argv[1], sys.argv[2]
warnings.simplefilter("ignore")


class ErasingHTTPFileSystem(HTTPFileSystem):
    async def _rm_file(self, path, **kwargs):
        session = await self.set_session()
        async with session.delete(self.encode_url(path)) as answer:
            answer.raise_for_status()


fsspec.register_implementation("http", ErasingHTTPFileSystem, clobber=True)
NASTY = {"missing": math.nan, "valid_max": math.inf, "valid_min": -math.inf, "limits": [0.0, math.nan], "größe": "Ø"}
OPTIONS = [{"zarr_format": 2}, {"zarr_format": 3}] if zarr.__version__.startswith("3") else [{}]


def dataset():
    rain = np.array([[1.5, np.nan, 3.0], [4.0, 5.0, np.nan]], "f4")
    found = xr.Dataset(
        {"rain": (("hour", "room"), rain, dict(NASTY)), "count": ("hour", np.array([1, 2], "i2"), {"missing": math.nan})},
        coords={"hour": ("hour", [0, 1], {"note": math.nan}), "room": [10.0, 11.0, 12.0]},
        attrs=dict(NASTY),
    )
    found["rain"].encoding = {"_FillValue": np.float32("nan"), "chunks": (1, 2)}
    found["room"].encoding = {"_FillValue": None}
    return found


def send(method, path, body=None):
    body = None if body is None else json.dumps(body).encode()
    urlopen(Request(f"{url}{path}", body, {"Content-Type": "application/json"}, method=method)).close()


CHANGES = {
    "an attribute": lambda at: send("PATCH", f"/node/{at}/rain", {"attributes": {"units": "mm"}}),
    "an attribute of the group": lambda at: send("PATCH", f"/node/{at}", {"attributes": {"title": "rain"}}),
    "a removed attribute": lambda at: send("PATCH", f"/node/{at}/rain", {"attributes": {"valid_min": None}}),
    "NaN again": lambda at: send("PATCH", f"/node/{at}/rain", {"attributes": {"missing": math.nan}}),
    "names of dimensions": lambda at: send("PATCH", f"/node/{at}/rain", {"dimension_names": ["hour", "room"]}),
    "a step": lambda at: (
        send("POST", f"/array/{at}/rain?append=0", [[6.0, 7.0, "NaN"]]),
        send("POST", f"/array/{at}/count?append=0", [3]),
        send("POST", f"/array/{at}/hour?append=0", [2]),
    ),
    "a shape": lambda at: [send("PATCH", f"/node/{at}/{array}", {"shape": shape}) for array, shape in SHAPES.items()],
    "the other dialect": lambda at: convert(at),
    "an attribute in both dialects": lambda at: send("PATCH", f"/node/{at}/rain", {"attributes": {"units": "cm"}}),
}
SHAPES = {"rain": [2, 3], "count": [2], "hour": [2]}


def convert(at):
    """In v3 the chunks of arrays have other keys than in v2."""
    if OPTIONS[0] and "v3" in at:
        return
    send("POST", f"/node/{at}?convert=v3")


def check(found, what):
    """Attributes that a patch does not name are unchanged."""
    for where, names in ((found, NASTY), (found.rain, {name: value for name, value in NASTY.items() if name != "valid_min"}), (found.hour, {"note": math.nan})):
        for name, value in names.items():
            assert np.array_equal(np.asarray(where.attrs[name]), np.asarray(value), equal_nan=not isinstance(value, str)), (what, name, where.attrs)
    assert np.isnan(found.rain.values[0, 1]) and found.rain.values[1, 1] == 5, what


saved = 0
for options in OPTIONS:
    for consolidated in (True, False):
        at = f"{name}-v{options.get('zarr_format', 2)}-{consolidated}"
        dataset().to_zarr(f"{url}/store/{at}", mode="w-", consolidated=consolidated, **options)
        for what, change in CHANGES.items():
            change(at)
            with xr.open_zarr(f"{url}/store/{at}", consolidated=consolidated, chunks=None, **options) as found:
                found = found.load()
            check(found, what)
            again = f"{url}/store/{at}-saved-{saved}"
            found.to_zarr(again, mode="w-", consolidated=consolidated, **options)
            with xr.open_zarr(again, consolidated=consolidated, chunks=None, **options) as same:
                xr.testing.assert_identical(same.load(), found)
            saved += 1
print(f"{name}: {saved} datasets opened and saved again")
