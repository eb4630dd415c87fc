"""Writes one half of the chunks of an array in a folder, while a server writes the other half over HTTP.

python share_directory.py DIRECTORY URL
"""

import sys
import urllib.request

import numpy as np
import zarr

ROUNDS = 30
ROWS = 8
COLUMNS = 1024


def put(url: str, chunk: bytes) -> None:
    request = urllib.request.Request(url, data=chunk, method="PUT")
    with urllib.request.urlopen(request) as answer:
        assert answer.status in (201, 204), answer.status


def main(directory: str, url: str) -> None:
    # What the server stores is plain Zarr for zarr-python, and what zarr-python stores is for the server.
    group = zarr.open_group(f"{directory}/shared", mode="r+")
    array = group.create_array("a", shape=(ROWS, COLUMNS), chunks=(1, COLUMNS), dtype="<i4", compressors=None)
    for round_ in range(ROUNDS):
        for row in range(ROWS):
            value = 1000 * round_ + row
            if row % 2 == round_ % 2:
                array[row] = value
            else:
                put(f"{url}/shared/a/c/{row}/0", np.full(COLUMNS, value, "<i4").tobytes())
            # The other side sees it at once, as one value.
            assert (array[row] == value).all(), (round_, row)
            with urllib.request.urlopen(f"{url}/shared/a/c/{row}/0") as answer:
                served = np.frombuffer(answer.read(), "<i4")
            assert (served == value).all(), (round_, row, served)
    assert sorted(name for name, _ in group.members()) == ["a"]
    print("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
