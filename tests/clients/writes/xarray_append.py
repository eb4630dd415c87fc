"""Writes a dataset with xarray into /store, appends along time through /array, and opens it with xarray:

    xarray_append.py URL [STEPS]

During STEPS appends (default 200), readers in other processes read the growing array through /node and /array, with
zarr-python and with xarray: for every observed shape, the elements must exist.
"""

import multiprocessing
import sys
import warnings

import fsspec
import numpy as np
import xarray as xr
import zarr
from fsspec.implementations.http import HTTPFileSystem

from api import Api

FIRST, HEIGHT, WIDTH = 5, 6, 9
ALONG_TIME = ["temperature", "flag", "label", "time"]


class ErasingHTTPFileSystem(HTTPFileSystem):
    async def _rm_file(self, path, **kwargs):
        session = await self.set_session()
        async with session.delete(self.encode_url(path)) as answer:
            answer.raise_for_status()


def dataset(start, stop):
    """The steps from `start` to `stop`; each element of a step identifies it, and none is a fill value."""
    steps = np.arange(start, stop)
    plane = np.linspace(0, 0.5, HEIGHT * WIDTH, dtype="float32").reshape(HEIGHT, WIDTH)
    found = xr.Dataset(
        {
            "temperature": (("time", "y", "x"), (steps[:, None, None] + 1 + plane).astype("float32"), {"units": "K"}),
            "flag": (("x", "time"), np.tile(steps + 1, (WIDTH, 1)).astype("int16")),
            "mask": (("y", "x"), plane > 0.2),
        },
        coords={
            "time": np.datetime64("2026-01-01", "ns") + steps * np.timedelta64(6, "h"),
            "label": ("time", (steps * 10).astype("int32")),
            "y": np.linspace(50, 51, HEIGHT),
            "x": np.linspace(8, 9, WIDTH),
            "height": 2.0,
        },
        attrs={"title": "größe"},
    )
    found["time"].encoding = {"units": "hours since 2026-01-01", "dtype": "int64", "chunks": (16,)}
    found["temperature"].encoding = {"chunks": (7, 4, 9)}
    found["flag"].encoding = {"chunks": (9, 16), "_FillValue": -1}
    found["label"].encoding = {"chunks": (10,)}
    return found


def encoded(part, name):
    """The elements of a variable as stored: times are numbers."""
    variable = part[name]
    if name == "time":
        return ((variable.values - np.datetime64("2026-01-01", "ns")) // np.timedelta64(1, "h")).astype("<i8")
    return variable.values.astype(variable.dtype.newbyteorder("<"))


def opened(url, consolidated, dropped=()):
    with xr.open_dataset(url, engine="zarr", consolidated=consolidated, drop_variables=list(dropped), cache=False) as found:
        return found.load()


def check_steps(found, observed):
    """Asserts that each step is complete, and that there are no fewer steps than before."""
    steps = len(found)
    assert steps >= observed, (steps, observed)
    assert np.array_equal(np.floor(found[:, 0, 0]), np.arange(steps) + 1), found[:, 0, 0]
    assert np.array_equal(found - found[:, :1, :1], np.broadcast_to((found - found[:, :1, :1])[0], found.shape)) or np.allclose(
        found - found[:, :1, :1], (found - found[:, :1, :1])[:1], atol=1e-3
    ), "a step is torn"
    return steps


def poll(how, url, path, stop, results, began, grew):
    """Reads the array until it is stopped; returns the number of reads, and of different observed shapes. Tells when
    it has read it once, and when it has seen it grow."""
    warnings.simplefilter("ignore")
    api, observed, reads, shapes = Api(url), 0, 0, set()
    try:
        while not stop.is_set():
            if how == "api":
                steps = api.node(f"{path}/temperature", depth=0)["shape"][0]
                _, headers, body = api.expect("GET", f"/array/{path}/temperature", select=f":{steps}", format="raw")
                found = np.frombuffer(body, "<f4").reshape(-1, HEIGHT, WIDTH)
                assert len(found) == steps, "fewer elements than the shape says"
            elif how == "zarr":
                found = zarr.open_array(f"{url}/store/{path}/temperature", mode="r")[...]
            else:
                others = [name for name in ALONG_TIME if name != "temperature"]
                found = opened(f"{url}/store/{path}", how == "xarray, consolidated", others)["temperature"].values
            observed = check_steps(found, observed)
            shapes.add(observed)
            reads += 1
            began.set()
            if len(shapes) > 1:
                grew.set()
        results.put((how, reads, len(shapes), None))
    except BaseException as error:
        results.put((how, reads, len(shapes), f"{type(error).__name__}: {error}"))
        began.set(), grew.set()


def append_all(api, path, start, stop):
    """Appends one step after another to each variable along time."""
    for step in range(start, stop):
        part = dataset(step, step + 1)
        for name in ALONG_TIME:
            axis = part[name].dims.index("time")
            results = api.append(f"{path}/{name}", axis, "application/octet-stream", encoded(part, name).tobytes())
            assert results["shape"][axis] == step + 1, results


def run(url, format, steps):
    path = f"v{format}/dataset"
    place = f"{url}/store/{path}"
    api = Api(url)
    first = dataset(0, FIRST)
    first.to_zarr(place, mode="w-", zarr_format=format, consolidated=True)
    for consolidated in (True, False):
        xr.testing.assert_identical(opened(place, consolidated), first)

    context = multiprocessing.get_context("spawn")
    stop, results = context.Event(), context.Queue()
    ways = ["api", "zarr", "xarray", "xarray, consolidated"]
    began, grew = [context.Event() for _ in ways], [context.Event() for _ in ways]
    pollers = [context.Process(target=poll, args=(how, url, path, stop, results, *told)) for how, *told in zip(ways, began, grew)]
    for poller in pollers:
        poller.start()
    # However busy the machine is, each has read the array before it grows, and afterwards.
    try:
        assert all(event.wait(300) for event in began), "a reader does not begin"
        append_all(api, path, FIRST, FIRST + steps)
        assert all(event.wait(300) for event in grew), "a reader does not see what was appended"
    finally:
        stop.set()
    results = [results.get(timeout=120) for _ in pollers]
    for poller in pollers:
        poller.join()
    for how, reads, shapes, failure in results:
        assert failure is None, (how, failure)
        assert reads and shapes > 1, f"{how} looked {reads} times and saw {shapes} shapes, which shows nothing"

    # All steps exist, with and without consolidated metadata, and xarray itself can continue appending.
    whole = dataset(0, FIRST + steps)
    for consolidated in (True, False):
        xr.testing.assert_identical(opened(place, consolidated), whole)
    dataset(FIRST + steps, FIRST + steps + 3).drop_vars(["mask", "height"]).to_zarr(place, append_dim="time", consolidated=True)
    api.patch(path, {"attributes": {"title": "longer", "history": ["appended"]}})
    whole = dataset(0, FIRST + steps + 3).assign_attrs(title="longer", history=["appended"])
    for consolidated in (True, False):
        xr.testing.assert_identical(opened(place, consolidated), whole)
    return results


def main():
    url, steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200
    warnings.simplefilter("ignore")
    for format in (2, 3):
        results = run(url, format, steps)
        reads = ", ".join(f"{how} {reads} times at {shapes} shapes" for how, reads, shapes, _ in results)
        print(f"xarray {xr.__version__}, Zarr v{format}: {steps} appends to {len(ALONG_TIME)} variables; looked at meanwhile: {reads}")


# xarray erases when it replaces an array.
fsspec.register_implementation("http", ErasingHTTPFileSystem, clobber=True)
if __name__ == "__main__":
    main()
