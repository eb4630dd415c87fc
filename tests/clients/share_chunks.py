"""Writes rows of one array in a folder with zarr-python, tensorstore and xarray, while a server writes others over HTTP, all at the
same time, for some rounds. After each round all of them read all rows:

    share_chunks.py DIRECTORY URL ROUNDS

The last line has the number of rows that were written and compared.
"""

import json
import sys
import threading
import urllib.request

import numpy as np
import tensorstore
import xarray
import zarr

ROWS, COLUMNS = 12, 700
WRITERS = ["server", "zarr", "tensorstore", "xarray"]
directory, url, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
PATH = "together/c"


def request(method, target, body=None, media="application/octet-stream"):
    sent = urllib.request.Request(f"{url}{target}", data=body, method=method, headers={"Content-Type": media})
    with urllib.request.urlopen(sent, timeout=120) as answer:
        return answer.read()


def declare():
    array = {
        "zarr_format": 3, "node_type": "array", "shape": [ROWS, COLUMNS], "data_type": "int32", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, COLUMNS]}},
        "chunk_key_encoding": {"name": "default"}, "dimension_names": ["y", "x"], "attributes": {},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd", "configuration": {"level": 1, "checksum": True}}],
    }
    group = {"zarr_format": 3, "node_type": "group", "attributes": {}, "members": {"c": array}}
    request("PUT", "/node/together", json.dumps(group).encode(), "application/json")


declare()
of_zarr = zarr.open_array(f"{directory}/{PATH}", mode="r+")
# It checks again at each read whether a file has changed.
of_tensorstore = tensorstore.open(
    {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{directory}/{PATH}/"}}, open=True, read=True, write=True
).result()


def write(writer, row, value):
    elements = np.full((1, COLUMNS), value, "<i4")
    match writer:
        case "server":
            request("PUT", f"/array/{PATH}?select={row}:{row + 1}", elements.tobytes())
        case "zarr":
            of_zarr[row : row + 1] = elements
        case "tensorstore":
            of_tensorstore[row : row + 1].write(elements).result()
        case "xarray":
            dataset = xarray.Dataset({"c": (("y", "x"), elements)})
            dataset.to_zarr(f"{directory}/together", region={"y": slice(row, row + 1)}, mode="r+", consolidated=False)


def read(reader):
    match reader:
        case "server":
            return np.frombuffer(request("GET", f"/array/{PATH}?format=raw"), "<i4").reshape(ROWS, COLUMNS)
        case "zarr":
            return of_zarr[:]
        case "tensorstore":
            return of_tensorstore.read().result()
        case "xarray":
            return xarray.open_zarr(f"{directory}/together", consolidated=False)["c"].values


def value(round_, row):
    return 1000 * round_ + row + 1


problems = []
written = compared = 0
for round_ in range(rounds):
    # The rows of a writer change, and each row is written in each round.
    rows = {writer: [row for row in range(ROWS) if (row + round_) % len(WRITERS) == number] for number, writer in enumerate(WRITERS)}

    def write_rows(writer):
        try:
            for row in rows[writer]:
                write(writer, row, value(round_, row))
        except Exception as error:
            problems.append((round_, writer, repr(error)[:600]))

    threads = [threading.Thread(target=write_rows, args=[writer]) for writer in WRITERS]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    written += ROWS
    wanted = np.repeat(np.array([value(round_, row) for row in range(ROWS)], "<i4")[:, None], COLUMNS, axis=1)
    for reader in WRITERS:
        found = read(reader)
        compared += ROWS
        for row in range(ROWS):
            if not (found[row] == wanted[row]).all():
                writer = next(writer for writer in WRITERS if row in rows[writer])
                problems.append((round_, f"{reader} reads {np.unique(found[row])[:5]} for {wanted[row][0]} of {writer}"))
    if problems:
        break
assert not problems, problems[:5]
print(f"{written} {compared}")
