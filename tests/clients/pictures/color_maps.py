"""The tables of colour maps in crates/server, from matplotlib: `--write` writes them, else they are compared.

Each line has 16 colours of a map as hexadecimal digits, so that a table is 16 lines.
"""

import sys
from pathlib import Path

import matplotlib
import numpy as np

TABLES = Path(__file__).parents[3] / "crates/server/src/array_api/encode/picture/tables"
MAPS = ["viridis", "magma", "cividis", "RdBu"]


def table(name):
    colors = np.round(matplotlib.colormaps[name](np.arange(256))[:, :3] * 255).astype(np.uint8)
    assert matplotlib.colormaps[name].N == 256
    lines = [bytes(colors[start : start + 16].ravel()).hex() for start in range(0, 256, 16)]
    return "\n".join(lines) + "\n"


def main():
    differ = 0
    for name in MAPS:
        path = TABLES / f"{name.lower()}.txt"
        if "--write" in sys.argv:
            path.write_text(table(name))
        differ += path.read_text() != table(name)
    print(f"{len(MAPS)} colour maps of matplotlib; {differ} differ")


main()
