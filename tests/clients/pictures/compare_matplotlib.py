"""Compares pictures of random arrays of a server with matplotlib's colour maps and norms: `compare_matplotlib.py URL`.

A pixel may differ by one level, since matplotlib computes in the array's own type, and does not round greys. The last
line has the counts.
"""

import io
import json
import sys
import urllib.request

import matplotlib
import numpy as np
from matplotlib.colors import LogNorm, Normalize, SymLogNorm
from PIL import Image

TYPES = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
MAPS = {"grey": "gray"} | {name: name for name in ["viridis", "magma", "cividis", "RdBu", "RdBu_r"]}
SCALES = ["linear", "log", "symlog"]
HEIGHT, WIDTH = 40, 50


def request(url, body=None, method=None):
    # By default urllib says that a body is a form.
    headers = {"Content-Type": "application/octet-stream"} if body and "/array/" in url else {}
    with urllib.request.urlopen(urllib.request.Request(url, data=body, headers=headers, method=method)) as answer:
        return answer.read()


def random_array(rng, data_type, scale):
    if data_type.startswith("float"):
        values = rng.normal(0, 1000, (HEIGHT, WIDTH)) if scale == "linear" else 10 ** rng.uniform(-4, 4, (HEIGHT, WIDTH))
        if scale == "symlog":
            values *= rng.choice([-1, 1], values.shape)
        values[rng.random(values.shape) < 0.03] = np.nan
        return values.astype(data_type)
    info = np.iinfo(data_type)
    return rng.integers(max(info.min, -(2**40)), min(info.max, 2**40), (HEIGHT, WIDTH)).astype(data_type)


def written(server, rng, data_type, scale):
    array = random_array(rng, data_type, scale)
    path = f"pictures/{scale}-{data_type}"
    document = {
        "zarr_format": 3, "node_type": "array", "shape": array.shape, "data_type": data_type, "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [16, 16]}},
        "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    }
    request(f"{server}/store/{path}/zarr.json", json.dumps(document).encode(), "PUT")
    request(f"{server}/array/{path}", array.tobytes(), "PUT")
    return path, array


def norm_of(scale, low, high, linthresh):
    if scale == "log":
        return LogNorm(low, high)
    return Normalize(low, high) if scale == "linear" else SymLogNorm(linthresh, vmin=low, vmax=high, base=10)


def levels(colors, pixels):
    """The level of each pixel: -1 for NaN, and those of under and over are the first and last."""
    table = {color: level for level, color in reversed(list(enumerate(colors)))}
    hexed = ["".join(f"{channel:02x}" for channel in pixel) for pixel in pixels]
    return np.array([-1 if color[6:] == "00" else table[color[:6]] for color in hexed])


def main():
    server, rng = sys.argv[1], np.random.default_rng(17)
    pictures, counts = 0, {True: [0, 0], False: [0, 0]}
    for scale in SCALES:
        for data_type in TYPES:
            path, array = written(server, rng, data_type, scale)
            for limits in ["minmax", "robust"]:
                domain = array[np.isfinite(array) & ((array > 0) if scale == "log" else True)].astype(float)
                low, high = (domain.min(), domain.max()) if limits == "minmax" else np.percentile(domain, [2, 98])
                linthresh = float(abs(domain).max() / 100)
                for name, theirs in MAPS.items():
                    query = f"cmap={name}&scale={scale}&limits={limits}"
                    query += f"&linthresh={linthresh!r}" if scale == "symlog" else ""
                    described = json.loads(request(f"{server}/array/{path}?{query}&thresholds"))
                    assert (described["min"], described["max"]) == (low, high), (path, query, described["min"], low, high)
                    image = Image.open(io.BytesIO(request(f"{server}/array/{path}?{query}&format=png"))).convert("RGBA")
                    ours = levels(described["colors"], np.asarray(image).reshape(-1, 4))
                    # The map with the level as its red channel.
                    numbers = matplotlib.colors.ListedColormap([(n / 255, 0, 0) for n in range(256)])
                    numbers.set_bad((0, 0, 0, 0))
                    # Matplotlib would compute with the 11 bits of a float16.
                    values = array.astype("float32") if data_type == "float16" else array
                    normed = norm_of(scale, low, high, linthresh)(np.ma.masked_invalid(values))
                    if scale == "log":
                        normed = np.ma.array(normed.filled(0), mask=np.isnan(array.astype(float)))
                    mapped = np.round(numbers(normed) * 255).astype(int).reshape(-1, 4)
                    expected = np.where(mapped[:, 3] == 0, -1, mapped[:, 0])
                    # Two neighbouring levels of a map may have the same colour.
                    colors = described["colors"]
                    pairs = zip(ours, expected)
                    same = np.array([a == b or (min(a, b) >= 0 and colors[a] == colors[b]) for a, b in pairs])
                    near = same | ((ours >= 0) & (expected >= 0) & (abs(ours - expected) <= 1))
                    assert near.all(), (path, query, ours[~near][:5], expected[~near][:5], array.ravel()[~near][:5])
                    table = np.round(matplotlib.colormaps[theirs](np.arange(256))[:, :3] * 255).astype(int)
                    our_table = np.array([[int(color[i : i + 2], 16) for i in (0, 2, 4)] for color in colors])
                    assert (our_table == table).all(), name
                    pictures += 1
                    counts[name == "grey"][0] += same.size
                    counts[name == "grey"][1] += int((~same).sum())
    (pixels, differ), (grey_pixels, grey_differ) = counts[False], counts[True]
    print(f"{pictures} pictures: {differ} of {pixels} pixels differ by one level, and {grey_differ} of {grey_pixels} grey ones")


main()
