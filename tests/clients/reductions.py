"""Compares reductions of a server with NumPy and with exact arithmetic.

Usage: reductions.py DIRECTORY URL CASES SEED write|write-copies|compare|faults

`write` writes arrays with zarr-python into the directory, and `write-copies` the same elements in several layouts;
`compare` asks the server at URL, which serves the directory, for random reductions of random selections, and prints the
counts as JSON. `faults` changes one number of each answer, by as little as the comparison promises to notice, and counts
how many of the changes it notices.
"""

import collections
import fractions
import io
import json
import math
import random
import sys
import urllib.error
import urllib.parse
import urllib.request
import warnings

import numpy as np
import zarr

TYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
FUNCTIONS = (
    "sum mean min max std var argmin argmax any all count first mode "
    "nansum nanmean nanmin nanmax nanstd nanvar nanargmin nanargmax"
).split()


def elements(rng, dtype, shape):
    """Random elements: of one magnitude or of many, with NaN, infinities, zeros of both signs, and ties."""
    kind = rng.choice(["plain", "wide", "special", "few", "offset"])
    size = math.prod(shape)
    np_rng = np.random.default_rng(rng.getrandbits(32))
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np_rng.random(size).reshape(shape) < rng.choice([0.02, 0.5, 0.98])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        low, high = (0, 4) if kind == "few" else (info.min, info.max)
        return np_rng.integers(low, high, size, dtype=dtype, endpoint=True).reshape(shape)
    if dtype.kind == "c":
        part = {8: "float32", 16: "float64"}[dtype.itemsize]
        return (elements(rng, part, shape) + 1j * elements(rng, part, shape)).astype(dtype)
    if kind == "few":
        data = np_rng.integers(-2, 3, size).astype(dtype)
    elif kind == "wide":
        bits = {2: "uint16", 4: "uint32", 8: "uint64"}[dtype.itemsize]
        data = np_rng.integers(0, np.iinfo(bits).max, size, dtype=bits, endpoint=True).view(dtype)
        data = np.where(np.isfinite(data), data, dtype.type(1.5))
    elif kind == "offset":
        data = (1e3 if dtype.itemsize == 2 else 1e6) + np_rng.standard_normal(size)
    else:
        data = np_rng.standard_normal(size) * 10.0 ** rng.randint(-3, 3)
    data = data.astype(dtype)
    if kind == "special":
        np_rng.random(size)
        for share, value in [(0.2, np.nan), (0.03, np.inf), (0.03, -np.inf), (0.1, -0.0), (0.1, 0.0)]:
            if rng.random() < 0.6:
                data[np_rng.random(size) < share] = value
        if rng.random() < 0.1:
            data[:] = np.nan
    return data.reshape(shape)


def write(directory, rng, count):
    """Writes arrays of every type, in both formats, with chunks, shards, missing chunks and codecs."""
    for number in range(count):
        rank = rng.choice([0, 1, 1, 2, 2, 3, 3, 4])
        most = {0: 1, 1: 3000, 2: 60, 3: 17, 4: 8}[rank]
        shape = tuple(rng.choice([1, most, rng.randint(1, most)]) for _ in range(rank))
        chunks = tuple(max(1, min(extent, rng.choice([extent, rng.randint(1, max(1, extent))]))) for extent in shape)
        dtype = TYPES[number % len(TYPES)]
        version = rng.choice([2, 3, 3])
        data = elements(rng, dtype, shape)
        options = {"zarr_format": version, "overwrite": True}
        if rank and version == 3 and rng.random() < 0.3:
            options["shards"] = tuple(chunk * rng.randint(1, 3) for chunk in chunks)
        if version == 3 and rank:
            options["dimension_names"] = [f"dim{axis}" for axis in range(rank)]
        fill = elements(rng, dtype, (1,))[0]
        if rng.random() < 0.3 and rank:
            # A block of the fill value, whose chunks are not stored.
            cut = tuple(slice(0, rng.randint(0, extent)) for extent in shape)
            data[cut] = fill
        compressors = None if rng.random() < 0.3 else "auto"
        array = zarr.create_array(
            directory, name=f"a{number}", shape=shape, chunks=chunks or (), dtype=dtype, fill_value=fill,
            compressors=compressors, config={"write_empty_chunks": False}, **options
        )
        array[...] = data
        np.save(f"{directory}/a{number}.npy", data)


def write_copies(directory, rng):
    """Writes the same elements in different chunks, shards, codecs and formats, for each type of floats."""
    shape = (30, 41, 17)
    layouts = [
        {"chunks": shape, "zarr_format": 3},
        {"chunks": (7, 9, 5), "zarr_format": 2},
        {"chunks": (4, 5, 3), "shards": (8, 20, 9), "zarr_format": 3},
        {"chunks": (1, 41, 2), "zarr_format": 3, "compressors": None},
    ]
    for dtype in ("float16", "float32", "float64", "complex64", "int16"):
        data = elements(rng, dtype, shape)
        data[10:20, :20] = 0
        for number, layout in enumerate(layouts):
            name = f"{dtype}/{number}"
            options = {"fill_value": 0, "config": {"write_empty_chunks": False}, "overwrite": True, **layout}
            zarr.create_array(directory, name=name, shape=shape, dtype=dtype, **options)[...] = data


def select(rng, shape):
    """A random selection: its text, NumPy's index for each dimension, and the dropped dimensions."""
    if rng.random() < 0.3:
        return "", [slice(None)] * len(shape)
    items, index = [], []
    for extent in shape:
        kind = rng.choice(["all", "all", "slice", "slice", "list", "index"])
        if kind == "all":
            items.append(":")
            index.append(slice(None))
        elif kind == "index":
            at = rng.randint(-extent, extent - 1)
            items.append(str(at))
            index.append(at)
        elif kind == "list":
            at = [rng.randint(-extent, extent - 1) for _ in range(rng.randint(0, 5))]
            items.append(f"({','.join(map(str, at))})" if len(at) != 1 else f"[{at[0]}]")
            index.append(at)
        else:
            bounds = [rng.choice([None, rng.randint(-extent - 2, extent + 2)]) for _ in range(2)]
            step = rng.choice([None, 1, 2, 3, -1, -2])
            text = ":".join("" if bound is None else str(bound) for bound in bounds)
            items.append(text + ("" if step is None else f":{step}"))
            index.append(slice(*bounds, step))
    return ",".join(items), index


def apply(data, index):
    """The selected elements, with dropped dimensions of extent 1."""
    for axis, item in enumerate(index):
        if isinstance(item, int):
            item = [item]
        data = data[(slice(None),) * axis + (item if isinstance(item, slice) else np.array(item, dtype=int),)]
    return data


def exact_sum(values):
    dtype = values.dtype
    values = [float(value) for value in values]
    special = [value for value in values if not math.isfinite(value)]
    if special:
        return sum(special)
    return rounded(sum(map(fractions.Fraction, values), fractions.Fraction(0)), dtype)


def rounded(value, dtype):
    """A fraction as the nearest number of a type, rounded once, ties to even."""
    nearest = dtype.type(float_of(value))
    if not np.isfinite(nearest):
        # The largest number is nearest up to half a unit beyond it.
        largest = np.finfo(dtype).max
        below = np.nextafter(largest, dtype.type(0))
        limit = fractions.Fraction(float(largest)) * 3 / 2 - fractions.Fraction(float(below)) / 2
        return nearest if abs(value) >= limit else math.copysign(largest, value)
    candidates = [nearest, np.nextafter(nearest, dtype.type(np.inf)), np.nextafter(nearest, dtype.type(-np.inf))]
    bits = {2: "uint16", 4: "uint32", 8: "uint64"}[dtype.itemsize]
    finite = [candidate for candidate in candidates if np.isfinite(candidate)]
    return min(finite, key=lambda one: (abs(fractions.Fraction(float(one)) - value), int(one.view(bits)) & 1))


def float_of(value):
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def exact_mean(values):
    dtype = values.dtype
    values = [float(value) for value in values]
    if not values:
        return math.nan
    special = [value for value in values if not math.isfinite(value)]
    if special:
        return sum(special)
    return rounded(sum(map(fractions.Fraction, values), fractions.Fraction(0)) / len(values), dtype)


def exact_var(values, ddof, skips):
    values = [complex(value) for value in values]
    parts = [part for value in values for part in (value.real, value.imag)]
    if not values or not all(map(math.isfinite, parts)):
        return math.nan
    total = fractions.Fraction(0)
    for part in ("real", "imag"):
        numbers = [fractions.Fraction(getattr(value, part)) for value in values]
        mean = sum(numbers, fractions.Fraction(0)) / len(numbers)
        total += sum(((number - mean) ** 2 for number in numbers), fractions.Fraction(0))
    degrees = len(values) - ddof
    if degrees <= 0:
        return math.inf if total and not skips else math.nan
    return total / degrees


def is_missing(value):
    return bool(np.isnan(value)) if value.dtype.kind in "fc" else False


def expected(name, values, ddof):
    """The result for one group, the bound of its error in units in the last place, and whether there is none."""
    skips = name.startswith("nan")
    plain = name.removeprefix("nan")
    dtype = values.dtype
    kept = values[~np.isnan(values)] if skips and dtype.kind in "fc" else values
    if plain == "count":
        return len([value for value in values if not is_missing(value)]), 0
    if plain in ("any", "all"):
        return bool(getattr(np, plain)(values)), 0
    if plain == "first":
        return values[0], 0
    if plain == "mode":
        counts = collections.Counter(values.tolist())
        most = max(counts.values(), default=0)
        return min(value for value, count in counts.items() if count == most), 0
    if plain in ("min", "max"):
        return (getattr(np, plain)(kept) if kept.size else dtype.type(np.nan)), 0
    if plain in ("argmin", "argmax"):
        return int(getattr(np, name)(values)), 0
    if plain == "sum":
        if dtype.kind in "biu":
            return sum(map(int, values.tolist())), 0
        if dtype.kind == "c":
            return complex(exact_sum(kept.real), exact_sum(kept.imag)), 0
        return exact_sum(kept), 0
    if plain == "mean":
        if dtype.kind == "c":
            return complex(exact_mean(kept.real), exact_mean(kept.imag)), 0
        if dtype.kind in "biu":
            numbers = [int(value) for value in kept.tolist()]
            return (float_of(fractions.Fraction(sum(numbers), len(numbers))) if numbers else math.nan), 0
        return exact_mean(kept), 0
    if dtype.kind in "biu":
        numbers = [fractions.Fraction(int(value)) for value in kept.tolist()]
        degrees = len(numbers) - ddof
        if not numbers:
            return math.nan, 4
        mean = sum(numbers) / len(numbers)
        total = sum((number - mean) ** 2 for number in numbers)
        variance = total / degrees if degrees > 0 else math.inf if total and not skips else math.nan
    else:
        variance = exact_var(kept.tolist(), ddof, skips)
    if plain == "std" and isinstance(variance, fractions.Fraction):
        return root(variance), 4
    if plain == "std":
        return math.sqrt(variance) if variance == variance else variance, 4
    return (float_of(variance) if isinstance(variance, fractions.Fraction) else variance), 4


def root(value):
    """The square root of a fraction, to more digits than a float has."""
    if value == 0:
        return 0.0
    scale = max(0, 160 - value.numerator.bit_length() + value.denominator.bit_length())
    scale += scale % 2
    scaled = math.isqrt((value.numerator << scale) // value.denominator)
    return float_of(fractions.Fraction(scaled, 1 << (scale // 2)))


def equal(found, wanted, bound, dtype):
    if dtype.kind == "c":
        part = {8: np.float32, 16: np.float64}[dtype.itemsize]
        return all(
            equal(part(one), other, bound, np.dtype(part))
            for one, other in [(found.real, complex(wanted).real), (found.imag, complex(wanted).imag)]
        )
    if dtype.kind != "f":
        return int(found) == int(wanted)
    with np.errstate(over="ignore"):
        wanted = dtype.type(wanted)
    if np.isnan(found) or np.isnan(wanted):
        return bool(np.isnan(found) and np.isnan(wanted))
    if found == wanted:
        return True
    return bound > 0 and abs(float(found) - float(wanted)) <= bound * abs(float(np.spacing(wanted)))


def result_type(name, dtype):
    plain = name.removeprefix("nan")
    sample = np.zeros(3, dtype)
    if plain in ("count", "argmin", "argmax"):
        return np.dtype("int64")
    if plain in ("first", "mode"):
        return dtype
    return np.dtype(getattr(np, plain)(sample).dtype)


def unsuitable(name, dtype, windows, axes, shape, dropped):
    plain = name.removeprefix("nan")
    if plain == "mode" and not (dtype.kind in "biu" and dtype.itemsize <= 2):
        return True
    if dtype.kind == "c" and plain in ("min", "max", "argmin", "argmax"):
        return True
    if plain in ("argmin", "argmax"):
        if windows:
            return True
        reduced = [axis for axis in axes if shape[axis] > 1]
        kept = [axis for axis in range(len(shape)) if axis not in axes and axis not in dropped and shape[axis] > 1]
        return len(reduced) > 1 and bool(kept)
    return False


def groups(data, axes, windows, edge, keepdims, dropped):
    """The elements of each group in C order, and the shape of the result."""
    cells, shape = [], []
    for axis, extent in enumerate(data.shape):
        if axis in axes:
            cells.append([slice(None)])
            if keepdims:
                shape.append(1)
        elif axis in windows:
            starts = range(0, extent, windows[axis])
            ranges = [slice(start, start + windows[axis]) for start in starts]
            if edge == "trim" and extent % windows[axis]:
                ranges = ranges[:-1]
            cells.append(ranges)
            shape.append(len(ranges))
        else:
            cells.append([slice(at, at + 1) for at in range(extent)])
            if axis not in dropped:
                shape.append(extent)
    found = []

    def visit(axis, chosen):
        if axis == len(cells):
            found.append(data[tuple(chosen)].reshape(-1))
            return
        for cell in cells[axis]:
            visit(axis + 1, [*chosen, cell])

    visit(0, [])
    return found, tuple(shape)


class Faults:
    """Changes one number of each answer."""

    def __init__(self, rng):
        self.rng, self.planted = rng, False

    def plant(self, body):
        self.planted = False
        if not body.startswith(b"\x93NUMPY"):
            document = json.loads(body)
            return json.dumps(self.changed(document)).encode()
        array = np.load(io.BytesIO(body))
        if array.size:
            flat, at = array.reshape(-1), self.rng.randrange(array.size)
            flat[at] = self.other(flat[at])
            self.planted = True
            array = flat.reshape(array.shape)
        out = io.BytesIO()
        np.save(out, array)
        return out.getvalue()

    def other(self, value):
        """A number beside another one: of floats, five units in the last place away."""
        if value.dtype.kind == "b":
            return not value
        if value.dtype.kind in "iu":
            return value ^ value.dtype.type(1)
        if value.dtype.kind == "c":
            return complex(self.other(value.real), value.imag)
        if not np.isfinite(value):
            return value.dtype.type(1)
        return value + 5 * np.spacing(np.abs(value) + np.finfo(value.dtype).tiny)

    def changed(self, statistics):
        """Statistics with another count, extreme, mean, deviation, or number of elements in a bin."""
        names = [name for name in ("count", "missing", "min", "max") if isinstance(statistics[name], int)]
        # Histograms whose edges NumPy cannot tell apart, or of large integers, are not compared.
        histogram = statistics["histogram"] if isinstance(statistics["min"], float) else None
        if histogram and all(np.diff(histogram["edges"]) > 0) and self.rng.random() < 0.5:
            histogram["counts"][self.rng.randrange(len(histogram["counts"]))] += 1
        else:
            statistics[self.rng.choice(names)] += 1
        self.planted = True
        return statistics


FAULTS = None


def fetch(url):
    try:
        with urllib.request.urlopen(url) as response:
            body = response.read()
            return response.status, response.headers, FAULTS.plant(body) if FAULTS else body
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def compare_one(rng, url, directory, number, counts):
    data = np.load(f"{directory}/a{number}.npy")
    dtype = data.dtype
    text, index = select(rng, data.shape)
    selected = apply(data, index)
    dropped = {axis for axis, item in enumerate(index) if isinstance(item, int)}
    free = [axis for axis in range(data.ndim) if axis not in dropped]
    name = rng.choice(FUNCTIONS)
    parameters = [("reduce", name), ("format", "npy")]
    if text:
        parameters.append(("select", text))
    windows, edge = {}, "partial"
    if free and rng.random() < 0.4:
        for axis in rng.sample(free, rng.randint(1, min(2, len(free)))):
            windows[axis] = rng.randint(1, 5)
            parameters.append((f"coarsen.{axis}", str(windows[axis])))
        edge = rng.choice(["partial", "partial", "trim", "exact"])
        parameters.append(("edge", edge))
    others = [axis for axis in free if axis not in windows]
    if rng.random() < 0.6 or windows and rng.random() < 0.5:
        axes = sorted(rng.sample(others, rng.randint(0, len(others))))
        parameters.append(("axis", ",".join(map(str, axes))))
    else:
        axes = [] if windows else free
    keepdims = rng.random() < 0.2
    if keepdims:
        parameters.append(("keepdims", "true"))
    ddof = rng.choice([0, 0, 0, 1, 2]) if name.removeprefix("nan") in ("std", "var") else 0
    if ddof:
        parameters.append(("ddof", str(ddof)))
    query = urllib.parse.urlencode(parameters)
    status, headers, body = fetch(f"{url}/array/a{number}?{query}")
    described = f"a{number} {dtype} {data.shape} ?{query}"
    problem = json.loads(body)["type"].rsplit("/")[-1] if status >= 400 else None
    uneven = [axis for axis, window in windows.items() if selected.shape[axis] % window]
    if edge == "exact" and uneven:
        assert problem == "uneven-window", f"{described}: {status} {body[:300]}"
        counts[problem] += 1
        return
    if unsuitable(name, dtype, windows, axes, selected.shape, dropped):
        assert problem == "unsuitable-reduction", f"{described}: {status} {body[:300]}"
        counts[problem] += 1
        return
    cells, shape = groups(selected, axes, windows, edge, keepdims, dropped)
    plain = name.removeprefix("nan")
    needs = plain in ("min", "max", "argmin", "argmax", "first", "mode")
    if needs and any(cell.size == 0 for cell in cells):
        assert problem == "empty-reduction", f"{described}: {status} {body[:300]}"
        counts[problem] += 1
        return
    if name in ("nanargmin", "nanargmax") and dtype.kind == "f" and any(np.isnan(cell).all() for cell in cells):
        assert problem == "empty-reduction", f"{described}: {status} {body[:300]}"
        counts[problem] += 1
        return
    target = result_type(name, dtype)
    wanted = [expected(name, cell, ddof) for cell in cells]
    if plain == "sum" and target.kind in "iu":
        info = np.iinfo(target)
        if any(not info.min <= value <= info.max for value, _ in wanted):
            assert problem == "sum-overflow", f"{described}: {status} {body[:300]}"
            counts[problem] += 1
            return
    assert status == 200, f"{described}: {status} {body[:300]}"
    assert headers["zarr-shape"] == ",".join(map(str, shape)), f"{described}: {headers['zarr-shape']}"
    found = np.load(io.BytesIO(body))
    assert found.dtype == target, f"{described}: {found.dtype} instead of {target}"
    assert found.shape == shape, f"{described}: {found.shape} instead of {shape}"
    for one, (value, bound) in zip(found.reshape(-1), wanted, strict=True):
        assert equal(one, value, bound, target), f"{described}: {one!r} instead of {value!r}"
    counts["equal"] += 1
    counts["groups"] += len(wanted)


def number(value):
    return {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}.get(value, value) if isinstance(value, str) else value


def compare_statistics(rng, url, directory, name, counts):
    """Compares `stats` with NumPy: quantiles and counts exactly, the moments as the reductions."""
    data = np.load(f"{directory}/a{name}.npy")
    text, index = select(rng, data.shape)
    selected = apply(data, index).reshape(-1)
    bins = rng.choice([0, 1, 7, 50])
    quantiles = rng.choice([[], [0.5], [0, 0.02, 0.1, 0.3, 0.5, 0.98, 1]])
    parameters = [("stats", ""), ("bins", bins), ("quantiles", ",".join(map(str, quantiles)))]
    given = None
    if bins and rng.random() < 0.3:
        given = (-1.0, 2.5)
        parameters.append(("range", "-1,2.5"))
    if text:
        parameters.append(("select", text))
    query = urllib.parse.urlencode(parameters)
    status, _, body = fetch(f"{url}/array/a{name}?{query}")
    described = f"a{name} {data.dtype} {data.shape} ?{query}"
    if data.dtype.kind == "c":
        assert json.loads(body)["type"].endswith("unsuitable-reduction"), described
        counts["unsuitable statistics"] += 1
        return
    assert status == 200, f"{described}: {status} {body[:300]}"
    found = json.loads(body)
    present = selected[~np.isnan(selected)] if data.dtype.kind == "f" else selected
    assert (found["count"], found["missing"]) == (present.size, selected.size - present.size), described
    for name in ("min", "max"):
        value = number(found[name])
        if not present.size:
            assert value is None, described
        elif data.dtype.kind == "f":
            assert data.dtype.type(value) == getattr(present, name)(), f"{described}: {name} {value}"
        else:
            assert int(value) == int(getattr(present, name)()), f"{described}: {name} {value}"
    wide = present.astype("float64")
    wanted, bound = expected("nanmean", present, 0)
    dtype = result_type("mean", data.dtype)
    assert equal(dtype.type(number(found["mean"])), wanted, bound, dtype), f"{described}: mean {found['mean']} {wanted}"
    wanted, bound = expected("nanstd", present, 0)
    assert equal(dtype.type(number(found["std"])), wanted, bound, dtype), f"{described}: std {found['std']} {wanted}"
    assert [pair[0] for pair in found["quantiles"]] == quantiles, described
    for quantile, value in found["quantiles"]:
        value = number(value)
        if not present.size:
            assert math.isnan(value), described
            continue
        wanted = float(np.quantile(wide, quantile))
        order = np.sort(wide)
        finite = np.isfinite(order).all() and np.isfinite(order[-1] - order[0])
        near = abs(value - wanted) <= 1e-12 * max(abs(value), abs(wanted)) if finite else True
        low, high = order[math.floor(quantile * (order.size - 1))], order[math.ceil(quantile * (order.size - 1))]
        assert near and (math.isnan(value) or low <= value <= high), f"{described}: {quantile} {value} {wanted}"
    finite = selected[np.isfinite(selected)] if data.dtype.kind == "f" else selected
    if not bins or (given is None and not finite.size):
        assert found["histogram"] is None, described
    elif data.dtype.kind == "f" or given or data.dtype.itemsize < 8:
        if data.dtype.kind == "b":
            finite = finite.astype("uint8")
        try:
            wanted, edges = np.histogram(finite, bins=bins, range=given)
        except ValueError:
            return
        if np.isfinite(edges).all() and (np.diff(edges) > 0).all():
            assert found["histogram"]["counts"] == wanted.tolist(), f"{described}: {found['histogram']} {wanted} {edges}"
            assert np.allclose(found["histogram"]["edges"], edges, rtol=1e-12), f"{described}: {edges}"
            counts["histograms"] += 1
    counts["statistics"] += 1


def compare_downsampled(rng, url, directory, number, counts):
    """Compares windows of a whole array with tensorstore's `downsample`, whose last windows may be partial, too."""
    import tensorstore as ts

    data = np.load(f"{directory}/a{number}.npy")
    if data.ndim == 0 or data.dtype.kind == "c" or data.dtype == "bool":
        return
    methods = [("min", "min"), ("max", "max"), ("first", "stride")]
    if data.dtype.kind == "f":
        methods.append(("mean", "mean"))
    elif data.dtype.itemsize <= 2:
        methods.append(("mode", "mode"))
    name, method = rng.choice(methods)
    if name != "first" and data.dtype.kind == "f" and not np.isfinite(data).all():
        return
    factors = [rng.randint(1, 5) for _ in data.shape]
    base = ts.array(data)
    wanted = np.asarray(ts.downsample(base, factors, method).read().result())
    parameters = [("reduce", name), ("format", "npy")]
    parameters += [(f"coarsen.{axis}", factor) for axis, factor in enumerate(factors)]
    query = urllib.parse.urlencode(parameters)
    status, _, body = fetch(f"{url}/array/a{number}?{query}")
    described = f"a{number} {data.dtype} {data.shape} ?{query}"
    assert status == 200, f"{described}: {status} {body[:300]}"
    found = np.load(io.BytesIO(body))
    assert found.shape == wanted.shape and found.dtype == wanted.dtype, f"{described}: {found.shape} {wanted.shape}"
    if name == "mean":
        # tensorstore adds floats of the same width.
        scale = np.abs(data.astype("f8")).max(initial=0)
        near = np.abs(found.astype("f8") - wanted.astype("f8")) <= scale * 64 * np.finfo(data.dtype).eps
        assert (near | ~np.isfinite(wanted)).all(), described
    elif name == "mode":
        # Of the most frequent elements, tensorstore takes any.
        windows, _ = groups(data, [], dict(enumerate(factors)), "partial", False, set())
        for one, other, window in zip(found.reshape(-1), wanted.reshape(-1), windows, strict=True):
            same = (window == one).sum() == (window == other).sum()
            assert same and one <= other, f"{described}: {one} {other}"
    else:
        np.testing.assert_array_equal(found, wanted, err_msg=described)
    counts["downsampled"] += 1


def plant_faults(rng, url, directory, numbers, counts):
    """Compares answers of which one number is wrong; those that nothing was changed in are no cases."""
    global FAULTS
    cases, arrays = numbers
    FAULTS = Faults(random.Random(1))
    for case in range(cases):
        compare, name = (compare_statistics, "statistics") if case % 4 == 0 else (compare_one, "results")
        ignored = collections.Counter()
        FAULTS.planted = False
        try:
            with np.errstate(all="ignore"):
                compare(rng, url, directory, rng.randrange(arrays), ignored)
            noticed = False
        except AssertionError:
            noticed = True
        if FAULTS.planted:
            counts[f"{name} {'noticed' if noticed else 'missed'}"] += 1


def main():
    directory, url, cases, seed, mode = sys.argv[1:]
    rng = random.Random(int(seed))
    arrays = 4 * len(TYPES)
    if mode == "write":
        write(directory, rng, arrays)
        return
    if mode == "write-copies":
        write_copies(directory, rng)
        return
    counts = collections.Counter()
    warnings.simplefilter("ignore")
    if mode == "faults":
        plant_faults(rng, url, directory, (int(cases), arrays), counts)
        print(json.dumps(counts))
        return
    with np.errstate(all="ignore"):
        for case in range(int(cases)):
            compare_one(rng, url, directory, case % arrays, counts)
            if case % 4 == 1:
                compare_downsampled(rng, url, directory, rng.randrange(arrays), counts)
            if case % 4 == 0:
                compare_statistics(rng, url, directory, case // 4 % arrays, counts)
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
