"""Changes arrays below a directory until stdin is closed: change_directory.py DIR WRITER

Each chunk is a row whose elements are all the same number, and a change gives it the next number. The first line on stdout
is printed when the array exists, the last one is the number of changes.
"""

import pathlib
import select
import sys

import numpy as np

DIR, WRITER = sys.argv[1:]
PATH = f"{DIR}/{WRITER}"
ROWS, COLUMNS = 8, 4096


def is_stopped(seconds):
    """Waits; true if stdin is closed."""
    return bool(select.select([sys.stdin], [], [], seconds)[0])


def declare():
    import zarr

    # No number is the fill value, so all chunks are stored.
    layout = {"shape": (ROWS, COLUMNS), "chunks": (1, COLUMNS), "compressors": None, "filters": None}
    array = zarr.create_array(PATH, dtype="i4", fill_value=-1, zarr_format=3, **layout)
    array[:] = 0
    return array


def with_zarr():
    array = declare()

    def change(row, number):
        array[row] = number

    return change


def with_tensorstore():
    import tensorstore as ts

    declare()
    array = ts.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": PATH}}).result()

    def change(row, number):
        array[row].write(np.full(COLUMNS, number, "i4")).result()

    return change


def with_xarray():
    import xarray as xr

    def dataset(number):
        data = np.full((1, COLUMNS), number, "i4")
        return xr.Dataset({"x": (("time", "c"), data)}, {"time": [number]})

    dataset(0).to_zarr(PATH, zarr_format=3, consolidated=True, encoding={"x": {"chunks": (1, COLUMNS)}})

    def change(_, number):
        dataset(number).to_zarr(PATH, append_dim="time", consolidated=True)
        # Metadata that change more often than every two seconds are never quiet.
        is_stopped(3)

    return change


def with_rename():
    """As rsync does."""
    declare()

    def change(row, number):
        chunk = pathlib.Path(PATH, "c", str(row), "0")
        partial = chunk.with_name(".0.A1b2C3")
        partial.write_bytes(np.full(COLUMNS, number, "<i4").tobytes())
        partial.rename(chunk)

    return change


def in_place():
    declare()

    def change(row, number):
        data = np.full(COLUMNS, number, "<i4").tobytes()
        with open(f"{PATH}/c/{row}/0", "r+b", buffering=0) as file:
            for start in range(0, len(data), 1024):
                file.write(data[start : start + 1024])

    return change


WRITERS = {
    "zarr": with_zarr,
    "tensorstore": with_tensorstore,
    "xarray": with_xarray,
    "rename": with_rename,
    "in_place": in_place,
}
change = WRITERS[WRITER]()
print("ready", flush=True)
number = 0
# Each row is quiet for more than two seconds between its changes.
while not is_stopped(0.4):
    number += 1
    change(number % ROWS, number)
print(number)
