"""Reads slices with requests and httpx, which build the query from parameters themselves:

    read_queries.py URL DIR
"""

import io
import pathlib
import sys
from urllib.parse import quote

import httpx
import numpy as np
import requests
import zarr

url, directory = sys.argv[1], pathlib.Path(sys.argv[2])
COUNTS, ODD = "v3.zarr/deep/counts", "odd names/50% a+b ü.zarr/x y&z"
SELECTIONS = [
    (COUNTS, "1:, ::2", np.s_[1:, ::2]),
    (COUNTS, " 2 , 3 , : ", np.s_[2, 3, :]),
    (COUNTS, "..., -1", np.s_[..., -1]),
    (COUNTS, "::-1,1:-1 , 0:4", np.s_[::-1, 1:-1, 0:4]),
    (COUNTS, "(0, 2,5), ...", np.s_[[0, 2, 5]]),
    (COUNTS, "[1,6], 0", np.s_[[1, 6], 0]),
    (COUNTS, "+3,+1:+5", np.s_[3, 1:5]),
    ("v2.zarr/image", "10:20, (-1,  0)", np.s_[10:20, [-1, 0]]),
    (ODD, "1:3, ::2", np.s_[1:3, ::2]),
]


def elements(path):
    return zarr.open_array(directory / path, mode="r")[...]


def get(library, path, **query):
    answer = library.get(f"{url}/array/lab/{quote(path)}", params=query)
    answer.raise_for_status()
    return answer


compared = 0
for library in (requests, httpx):
    for path, text, selection in SELECTIONS:
        wanted = elements(path)[selection]
        answer = get(library, path, select=text, format="npy")
        assert " " not in text or "+" in str(answer.url), answer.url
        found = np.load(io.BytesIO(answer.content))
        assert found.dtype == wanted.dtype and np.array_equal(found, wanted), (library, path, text)
        assert np.array_equal(get(library, path, select=text).json(), wanted), (library, path, text)
        raw = get(library, path, select=text, format="raw")
        assert raw.content == np.ascontiguousarray(wanted).tobytes(), (library, path, text)
        assert raw.headers["Zarr-Shape"] == ",".join(map(str, wanted.shape)), raw.headers
        compared += 3

    # A byte range of a slice, and requests for missing data.
    wanted = elements(COUNTS)[1:3].tobytes()
    target = f"{url}/array/lab/{COUNTS}"
    part = library.get(target, params={"select": "1:3", "format": "raw"}, headers={"Range": "bytes=5-99"})
    assert part.status_code == 206 and part.content == wanted[5:100], part
    assert part.headers["Content-Range"] == f"bytes 5-99/{len(wanted)}", part.headers
    beyond = library.get(target, params={"select": "1:3", "format": "raw"}, headers={"Range": "bytes=99999-"})
    assert beyond.status_code == 416, beyond
    rejected = library.get(target, params={"select": "7 , 0"})
    assert rejected.status_code == 400 and rejected.json()["extent"] == 7, rejected.text

    # Elements selected by a body, and a written region, with keys that need escaping.
    points = library.post(target, params={"read": ""}, json={"points": [[0, 0, 0], [-1, 2, 3]]}).json()
    assert points == elements(COUNTS)[[0, -1], [0, 2], [0, 3]].tolist(), points
    name = f"{url}/store/scratch/{quote('a b+c%/ü?')}"
    assert library.put(name, content=b"one") if library is httpx else library.put(name, data=b"one")
    assert library.get(name).content == b"one"
    listed = library.get(f"{url}/store/scratch/", params={"list": "keys"}).json()["keys"]
    assert listed == ["scratch/a b+c%/ü?"], listed
    assert library.delete(name).status_code == 204
    compared += 6
print(f"requests {requests.__version__} and httpx {httpx.__version__} compared {compared} answers")
