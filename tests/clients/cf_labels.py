"""Makes `crates/cf/tests/data/labels.jsonl`: coordinates, selections by label, and the indices that xarray selects.

    cf_labels.py [FILE [ONE_IN]]

Each line is an object: `data_type` (v3), `attributes` and `stored` (hex, or a list of strings) of a coordinate, and
`selections`: pairs of a text and its indices, of which a single number is a dropped dimension, or an error's name.
"""

import itertools
import json
import pathlib
import random
import sys
import warnings

import cftime
import numpy as np
import pandas as pd
import xarray as xr

warnings.simplefilter("ignore")
FILE = pathlib.Path(__file__).parents[2] / "crates/cf/tests/data/labels.jsonl"
ONE_IN = int(sys.argv[2]) if len(sys.argv) > 2 else 1
random.seed(20261124)
lines = []


def sampled(answer):
    """Answers are computed for one in `ONE_IN` coordinates."""
    return lambda *arguments: answer(*arguments) if len(lines) % ONE_IN == 0 else None


def indices_of(array):
    return array.values.tolist()


@sampled
def exact(array, label):
    """One label; several equal ones are ambiguous."""
    try:
        found = array.sel(x=label)
    except KeyError:
        return "not-found"
    return indices_of(found) if found.ndim == 0 else "ambiguous"


@sampled
def nearest(array, label, tolerance=None):
    if not array.indexes["x"].is_unique:
        return None
    order = array.sortby("x")
    try:
        return indices_of(order.sel(x=label, method="nearest", tolerance=tolerance))
    except KeyError:
        return "not-found"


@sampled
def between(array, low, high):
    """Labels by value, whatever their order is."""
    return sorted(indices_of(array.sortby("x").sel(x=slice(low, high))))


def number_text(value):
    return repr(float(value)) if isinstance(value, float) else str(value)


def numbers():
    for _ in range(160):
        kind = random.choice(["f4", "f4", "f8", "i2", "i4", "i8", "u1"])
        count = random.choice([1, 2, 3, 10, 50])
        if kind[0] == "f":
            step = random.choice([0.1, 0.25, 1.0, 0.3])
            values = [round(random.randint(-20, 20) + step * n, 6) for n in range(count)]
            if random.random() < 0.5:
                values = [round(values[0] + step * n, 6) for n in range(count)]
        else:
            values = [random.randint(0, 100) for _ in range(count)]
            if random.random() < 0.7:
                values = sorted(set(values))
        if kind == "f4":
            # If labels repeat, pandas compares the ends of a range as float64.
            values = list(dict.fromkeys(values))
        shape = random.choice(["up", "down", "none"])
        values = sorted(values, reverse=shape == "down") if shape != "none" else values
        stored = np.array(values, "<" + kind)
        array = xr.DataArray(np.arange(len(stored)), dims="x", coords={"x": stored})
        span = [*values, *[(a + b) / 2 for a, b in zip(values, values[1:])], 0, 5.5]
        # xarray's distances of uint8 overflow.
        span += [-1000, 1000] if kind != "u1" else []
        selections = []
        for _ in range(12):
            label, other = random.choice(span), random.choice(span)
            low, high = min(label, other), max(label, other)
            tolerance = random.choice([0, 0.05, 1, 100])
            texts = number_text(label), number_text(low), number_text(high)
            if random.random() < 0.1:
                low, high = high, low
            selections += [
                (texts[0], exact(array, label)),
                (f"{texts[0]}~", nearest(array, label)),
                (f"{texts[0]} ~ {tolerance}", nearest(array, label, tolerance)),
                (f"{number_text(low)}..{number_text(high)}", between(array, low, high) if low <= high else []),
                (f"{texts[0]}..", between(array, label, None)),
                (f"..{texts[0]}", between(array, None, label)),
            ]
            some = [nearest(array, value) for value in (label, other, label)]
            if None not in some:
                selections.append((f"({texts[0]}~,{number_text(other)}~, {texts[0]}~)", some))
        names = {"f4": "float32", "f8": "float64", "i2": "int16", "i4": "int32", "i8": "int64", "u1": "uint8"}
        yield {"data_type": names[kind], "attributes": {}, "stored": stored.tobytes().hex(), "selections": selections}


def date_texts(start, end):
    """A partial date, and one with seconds."""
    day = start + (end - start) * random.random()
    return random.choice(["%Y", "%Y-%m", "%Y-%m-%d", "%Y-%m-%dT%H", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S"]), day


def dates():
    for _ in range(120):
        frequency = random.choice(["D", "6h", "15min", "MS", "YS", "7D", "90s"])
        count = random.choice([1, 5, 60, 180])
        start = pd.Timestamp(random.randint(1950, 2030), random.randint(1, 12), random.randint(1, 28))
        index = pd.date_range(start, periods=count, freq=frequency, unit="s")
        if random.random() < 0.3:
            index = index[::-1]
        if random.random() < 0.1:
            index = index[np.random.default_rng(1).permutation(len(index))]
        units = random.choice(["seconds since 1970-01-01", "hours since 2000-01-01", "minutes since 1990-06-01 12:00"])
        if units.startswith("hours"):
            index = index.floor("h").unique()
        elif units.startswith("minutes"):
            index = index.floor("min").unique()
        reference = pd.Timestamp(units.split(" since ")[1])
        length = pd.Timedelta({"s": "1s", "h": "1h", "m": "1min"}[units[0]])
        stored = ((index - reference) // length).to_numpy().astype("<i8")
        array = xr.DataArray(np.arange(len(stored)), dims="x", coords={"x": index.as_unit("ns")})
        low, high = index.min() - pd.Timedelta("2D"), index.max() + pd.Timedelta("2D")
        selections = []
        for _ in range(12):
            form, day = date_texts(low, high)
            if random.random() < 0.5:
                day = random.choice(index)
            text = day.strftime(form)
            moment = pd.Timestamp(text)
            found = between(array, text, text)
            if form.endswith("S"):
                selections.append((text, exact(array, moment)))
                selections.append((text + random.choice(["Z", "+00:00", " 00:00"]), exact(array, moment)))
                shifted = (moment + pd.Timedelta("5h30min")).strftime("%Y-%m-%dT%H:%M:%S")
                selections.append((shifted + "+05:30", exact(array, moment)))
            else:
                selections.append((text, found or "not-found"))
            other_form, other = date_texts(low, high)
            texts = sorted([(moment, text), (pd.Timestamp(other.strftime(other_form)), other.strftime(other_form))])
            back = random.choice(["P1D", "P1M", "PT36H", "P1Y", "P2W"])
            offset = {"P1D": pd.DateOffset(days=1), "P1M": pd.DateOffset(months=1), "PT36H": pd.DateOffset(hours=36),
                      "P1Y": pd.DateOffset(years=1), "P2W": pd.DateOffset(weeks=2)}[back]  # fmt: skip
            selections += [
                (f"{texts[0][1]}..{texts[1][1]}", between(array, texts[0][1], texts[1][1])),
                (f"{text}..", between(array, text, None)),
                (f"..{text}", between(array, None, text)),
                (f"{text}~", nearest(array, moment)),
                (f"{text}~PT6H", nearest(array, moment, pd.Timedelta("6h"))),
                (f"({text}~)", [nearest(array, moment)]),
                (f"-{back}..", between(array, index.max() - offset, None)),
            ]
        yield {"data_type": "int64", "attributes": {"units": units}, "stored": stored.tobytes().hex(), "selections": selections}


def calendars():
    for calendar in ["noleap", "360_day", "all_leap", "julian"]:
        for frequency in ["D", "MS", "6h"]:
            units = "days since 1999-12-01"
            index = xr.date_range("1999-12-01", periods=500, freq=frequency, calendar=calendar, use_cftime=True)
            array = xr.DataArray(np.arange(len(index)), dims="x", coords={"x": index})
            stored = cftime.date2num(list(index), units, calendar).astype("<f8")
            selections = []
            for text in ["2000", "2000-02", "2000-02-28", "2000-01-05", "2001-02", "1999-12", "2030", "2000-02-10T06"]:
                found = indices_of(array.sel(x=slice(text, text)))
                selections.append((text, found or "not-found"))
                selections.append((f"{text}..", indices_of(array.sel(x=slice(text, None)))))
                selections.append((f"..{text}", indices_of(array.sel(x=slice(None, text)))))
            for day in [(2000, 2, 28, 12), (2000, 2, 28, 0), (2000, 6, 30, 1), (2000, 7, 1, 0)]:
                moment = cftime.datetime(*day, calendar=calendar)
                selections.append((f"{moment.isoformat()}~", nearest(array, moment)))
                selections.append((moment.isoformat(), exact(array, moment)))
            yield {"data_type": "float64", "attributes": {"units": units, "calendar": calendar},
                   "stored": stored.tobytes().hex(), "selections": selections}  # fmt: skip


def texts():
    names = ["a", "b c", "x..y", "1", "é", "", "a,b", 'say "hi"', "v~", "+", "(p)", "zz"]
    for order in [sorted(names), sorted(names)[::-1], names, [*names, "a"]]:
        array = xr.DataArray(np.arange(len(order)), dims="x", coords={"x": np.array(order, dtype=object)})
        quoted = {name: '"' + name.replace('"', '""') + '"' for name in order}
        selections = [(quoted[name], exact(array, name)) for name in names]
        selections += [(name, exact(array, name)) for name in ["a", "b c", "1", "é", "+", "zz", "none"]]
        selections += [('(zz,"v~","a,b")', [exact(array, name) for name in ("zz", "v~", "a,b")])]
        if order == sorted(names):
            selections += [('"a".."x..y"', between(array, "a", "x..y")), ('"x..y"..', between(array, "x..y", None))]
        yield {"data_type": "string", "attributes": {}, "stored": order, "selections": selections}


def main():
    for line in itertools.chain(numbers(), dates(), calendars(), texts()):
        lines.append(line)
    kept = lines[::ONE_IN]
    for line in kept:
        # What xarray has no answer for: the nearest of labels that are not unique.
        line["selections"] = [pair for pair in line["selections"] if pair[1] is not None and pair[1] != [None]]
    file = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else FILE
    file.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in kept))
    print(f"{sum(len(line['selections']) for line in kept)} selections in {len(kept)} coordinates")


main()
