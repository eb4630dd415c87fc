"""Writes the arrays that are measured, and reads them with tensorstore and zarr-python.

    python peers.py write DIR
    python peers.py serve

`serve` reads one JSON object per line, {"peer", "where", "select", "fresh"}, and answers each with one that has the seconds
that the read took, from the call to the finished NumPy array, and its bytes.
"""

import json
import sys
import time

import numpy as np

SIDE, CHUNK = 512, 64


def field():
    """A field that compresses as measurements do: smooth, with noise in the low bits."""
    rng = np.random.default_rng(7)
    axis = np.linspace(0, 6 * np.pi, SIDE, dtype="float32")
    values = np.sin(axis)[:, None, None] + np.cos(axis)[None, :, None] * np.sin(axis * 0.5)[None, None, :]
    values += rng.standard_normal(values.shape, dtype="float32") * np.float32(0.01)
    # Instruments give some 12 bits; the rest of the mantissa is zero.
    return (np.round(values * 4096) / 4096).astype("float32")


def write(directory):
    import zarr
    from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec

    data = field()
    chunks = (CHUNK,) * 3
    kinds = {
        "raw": dict(chunks=chunks, compressors=None),
        "zstd": dict(chunks=chunks, compressors=ZstdCodec(level=3)),
        "blosc": dict(chunks=chunks, compressors=BloscCodec(cname="zstd", clevel=3, shuffle="shuffle", typesize=4)),
        "gzip": dict(chunks=chunks, compressors=GzipCodec(level=5)),
        "sharded": dict(chunks=chunks, shards=(CHUNK * 4,) * 3, compressors=ZstdCodec(level=3)),
    }
    for name, options in kinds.items():
        array = zarr.create_array(f"{directory}/{name}", shape=data.shape, dtype="float32", fill_value=0, **options)
        array[:] = data
        print(name, file=sys.stderr)


def selection(select):
    return tuple(slice(*item) if isinstance(item, list) else item for item in select)


class Tensorstore:
    def open(self, where):
        import tensorstore as ts

        kvstore = where if where.startswith("http") else f"file://{where}"
        return ts.open({"driver": "zarr3", "kvstore": kvstore}, open=True, read=True).result()

    def read(self, array, select):
        return array[select].read().result()


class ZarrPython:
    def open(self, where):
        import zarr

        return zarr.open_array(where, mode="r")

    def read(self, array, select):
        return array[select]


def serve():
    peers = {"tensorstore": Tensorstore(), "zarr-python": ZarrPython()}
    opened = {}
    for line in sys.stdin:
        ask = json.loads(line)
        peer, key = peers[ask["peer"]], (ask["peer"], ask["where"])
        select = selection(ask["select"])
        begin = time.perf_counter()
        if ask["fresh"] or key not in opened:
            opened[key] = peer.open(ask["where"])
        if not ask["fresh"]:
            # A client that reads again has its array open.
            begin = time.perf_counter()
        read = np.asarray(peer.read(opened[key], select))
        print(json.dumps({"seconds": time.perf_counter() - begin, "bytes": read.nbytes}), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(sys.argv[2])
    else:
        serve()
