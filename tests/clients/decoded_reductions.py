"""Compares reductions of decoded elements with xarray: of packed numbers, of times, and in windows.

Usage: decoded_reductions.py DIRECTORY URL CASES SEED write|compare
"""

import collections
import io
import json
import random
import sys
import urllib.parse
import warnings

import numpy as np
import xarray as xr

from reductions import equal, expected, fetch, result_type

SHAPE = {"time": 17, "lat": 9, "lon": 14}
FUNCTIONS = "sum mean min max std var count nansum nanmean nanmin nanmax nanstd nanvar argmax first".split()


def write(directory):
    """Packed integers with missing elements, a negative factor, unsigned bytes, floats with a fill value, and times."""
    rng = np.random.default_rng(5)
    dims = list(SHAPE)
    size = tuple(SHAPE.values())
    values = rng.normal(10, 20, size)
    values[rng.random(size) < 0.1] = np.nan
    times = np.datetime64("2001-02-03", "ns") + rng.integers(0, 10**16, size).astype("m8[ns]")
    times[rng.random(size) < 0.05] = np.datetime64("NaT", "ns")
    data = {
        "packed": (values, {"dtype": "int16", "scale_factor": 0.01, "add_offset": 5.0, "_FillValue": -32768}),
        "falling": (values, {"dtype": "int32", "scale_factor": -0.25, "_FillValue": 2147483647}),
        "unsigned": (np.abs(values), {"dtype": "int8", "_Unsigned": "true", "scale_factor": 0.5, "_FillValue": -1}),
        "floats": (values.astype("f4"), {"dtype": "float32", "_FillValue": np.float32(-999)}),
        "moments": (times, {"dtype": "int64", "units": "microseconds since 1999-01-01", "_FillValue": -1}),
    }
    coords = {
        "time": np.arange(17) * np.timedelta64(6, "h").astype("m8[ns]") + np.datetime64("2020-01-01", "ns"),
        "lat": np.linspace(40, -40, 9),
        "lon": np.arange(14) * 2.5,
    }
    dataset = xr.Dataset({name: (dims, values) for name, (values, _) in data.items()}, coords)
    for format in (2, 3):
        encoding = {name: {**packing, "chunks": (5, 4, 6)} for name, (_, packing) in data.items()}
        dataset.to_zarr(f"{directory}/v{format}", zarr_format=format, encoding=encoding, mode="w")


def compare_groups(rng, url, dataset, format, counts):
    """Compares a reduction over dimensions with exact arithmetic on the elements that xarray decodes."""
    name = rng.choice(["packed", "falling", "unsigned", "floats", "moments"])
    array = dataset[name]
    axes = rng.sample(list(SHAPE), rng.choice([1, 1, 2, 3]))
    function = rng.choice(FUNCTIONS)
    if name == "moments":
        function = rng.choice(["min", "max", "count", "first", "nanmin"])
    if function == "argmax":
        axes = axes[:1]
    query = urllib.parse.urlencode({"reduce": function, "axis": ",".join(axes), "decode": "cf", "format": "npy"})
    status, _, body = fetch(f"{url}/array/v{format}/{name}?{query}")
    described = f"v{format}/{name}?{query}"
    assert status == 200, f"{described}: {status} {body[:300]}"
    found = np.load(io.BytesIO(body))
    kept = [dim for dim in SHAPE if dim not in axes]
    ordered = array.transpose(*kept, *[dim for dim in SHAPE if dim in axes]).values
    cells = ordered.reshape(-1, int(np.prod([SHAPE[dim] for dim in axes])))
    assert found.size == len(cells) and list(found.shape) == [SHAPE[dim] for dim in kept], described
    if name == "moments":
        for one, cell in zip(found.reshape(-1), cells, strict=True):
            counted = cell[~np.isnat(cell)]
            wanted = {
                "min": lambda: cell.min(),
                "max": lambda: cell.max(),
                "nanmin": lambda: counted.min() if counted.size else np.datetime64("NaT"),
                "count": lambda: counted.size,
                "first": lambda: cell[0],
            }[function]()
            is_missing = isinstance(wanted, np.datetime64) and np.isnat(wanted)
            assert (np.isnat(one) if is_missing else one == wanted), f"{described}: {one} {wanted}"
    else:
        dtype = result_type(function, array.dtype)
        assert found.dtype == dtype, f"{described}: {found.dtype} {dtype}"
        for one, cell in zip(found.reshape(-1), cells, strict=True):
            wanted, bound = expected(function, cell, 0)
            assert equal(one, wanted, bound, dtype), f"{described}: {one!r} {wanted!r}"
    counts["reductions"] += 1


def compare_windows(rng, url, dataset, format, counts):
    """Compares windows, with their coordinates, with xarray's `coarsen`."""
    name = rng.choice(["packed", "falling", "unsigned", "floats"])
    dims = rng.sample(list(SHAPE), rng.choice([1, 2]))
    windows = {dim: rng.randint(2, 5) for dim in dims}
    function = rng.choice(["mean", "max", "min", "sum"])
    # xarray leaves missing elements out, and pads a last window with them.
    edge, boundary = rng.choice([("trim", "trim"), ("partial", "pad")])
    parameters = [("reduce", f"nan{function}"), ("edge", edge), ("decode", "cf"), ("format", "xarray")]
    parameters += [(f"coarsen.{dim}", window) for dim, window in windows.items()]
    query = urllib.parse.urlencode(parameters)
    status, _, body = fetch(f"{url}/array/v{format}/{name}?{query}")
    described = f"v{format}/{name}?{query}"
    assert status == 200, f"{described}: {status} {body[:300]}"
    answer = json.loads(body)
    found = xr.DataArray.from_dict(answer)
    wanted = getattr(dataset[name].coarsen(windows, boundary=boundary), function)()
    values = np.array([float(value) for value in np.array(found.values, dtype=object).reshape(-1)])
    assert found.dims == wanted.dims and found.shape == wanted.shape, f"{described}: {found.shape} {wanted.shape}"
    # The sums of xarray have rounding errors, in which those of numbers of both signs consist.
    np.testing.assert_allclose(values, wanted.values.reshape(-1), rtol=3e-6, atol=2e-5, err_msg=described)
    # Another value would have been noticed.
    fault = np.where(np.isnan(values), 0, values + 1e-4 * (1 + np.abs(values)))
    assert not np.isclose(fault, wanted.values.reshape(-1), rtol=3e-6, atol=2e-5).any(), described
    for dim in SHAPE:
        labels = np.array(answer["coords"][dim]["data"], dtype=answer["coords"][dim]["dtype"])
        expected_labels = wanted[dim].values
        if edge == "partial" and dim in windows:
            # xarray pads coordinates with missing ones, too.
            full = SHAPE[dim] // windows[dim]
            labels, expected_labels = labels[:full], expected_labels[:full]
        if labels.dtype.kind == "M":
            assert (labels.astype("M8[ns]") == expected_labels.astype("M8[ns]")).all(), f"{described}: {labels}"
        else:
            np.testing.assert_allclose(labels, expected_labels, err_msg=described)
    counts["windows"] += 1


def compare_refusals(url, format, counts):
    """A reduction that undecoded attributes would falsify is refused; one that says what it wants is not."""
    for name in ("packed", "falling", "unsigned", "floats", "moments"):
        status, _, body = fetch(f"{url}/array/v{format}/{name}?reduce=max")
        assert status == 400 and json.loads(body)["type"].endswith("decode-unspecified"), (name, status, body)
        status, _, body = fetch(f"{url}/array/v{format}/{name}?stats")
        assert status == 400 and json.loads(body)["type"].endswith("decode-unspecified"), (name, status, body)
        for query in ("reduce=max&decode=none", "reduce=max&decode=cf", "reduce=first"):
            status, _, body = fetch(f"{url}/array/v{format}/{name}?{query}")
            assert status == 200, (name, query, status, body)
        counts["refusals"] += 2


def main():
    directory, url, cases, seed, mode = sys.argv[1:]
    warnings.simplefilter("ignore")
    if mode == "write":
        write(directory)
        return
    rng, counts = random.Random(int(seed)), collections.Counter()
    for format in (2, 3):
        dataset = xr.open_zarr(f"{directory}/v{format}").load()
        compare_refusals(url, format, counts)
        with np.errstate(all="ignore"):
            for _ in range(int(cases)):
                compare_groups(rng, url, dataset, format, counts)
                compare_windows(rng, url, dataset, format, counts)
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
