"""The arrays of the benchmark: a field of float32 in chunks of 64³."""

import numpy as np

CHUNK = 64


def field(side):
    """A field that compresses like measurements: smooth, with noise in the low bits."""
    rng = np.random.default_rng(7)
    axis = np.linspace(0, 6 * np.pi, side, dtype="float32")
    values = np.sin(axis)[:, None, None] + np.cos(axis)[None, :, None] * np.sin(axis * 0.5)[None, None, :]
    values += rng.standard_normal(values.shape, dtype="float32") * np.float32(0.01)
    # Instruments provide some 12 bits; the rest of the mantissa is zero.
    return (np.round(values * 4096) / 4096).astype("float32")


def document(side, layout):
    """The zarr.json of a cube with a chunk layout: raw, zstd or sharded."""
    bytes_ = {"name": "bytes", "configuration": {"endian": "little"}}
    zstd = {"name": "zstd", "configuration": {"level": 3, "checksum": False}}
    chunks = {"raw": CHUNK, "zstd": CHUNK, "sharded": min(4 * CHUNK, side)}[layout]
    inner = {
        "chunk_shape": [CHUNK] * 3,
        "codecs": [bytes_, zstd],
        "index_codecs": [bytes_, {"name": "crc32c"}],
        "index_location": "end",
    }
    codecs = {
        "raw": [bytes_],
        "zstd": [bytes_, zstd],
        "sharded": [{"name": "sharding_indexed", "configuration": inner}],
    }[layout]
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [side] * 3,
        "data_type": "float32",
        "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [chunks] * 3}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": codecs,
        "attributes": {},
    }
