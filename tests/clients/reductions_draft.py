"""Writes arrays in the 2020 draft of v3 with zarr-python 2, whose elements `reductions.py` has written and compares.

Usage: reductions_draft.py FROM TO SEED
"""

import os
import pathlib
import random
import shutil
import sys
import types

os.environ["ZARR_V3_EXPERIMENTAL_API"] = "1"
os.environ["ZARR_V3_SHARDING"] = "1"

import numpy as np
import zarr
from zarr._storage.v3_storage_transformers import ShardingStorageTransformer

# The reader of storage transformers imports this test, which needs pytest.
sys.modules["zarr.tests.test_storage_v3"] = types.SimpleNamespace(DummyStorageTransfomer=ShardingStorageTransformer)


def main():
    source, target, seed = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(seed)
    store = zarr.DirectoryStoreV3(str(target))
    files = sorted(source.glob("a*.npy"), key=lambda file: int(file.stem[1:]))
    sharded = 0
    for file in files:
        data = np.load(file)
        chunks = tuple(max(1, rng.randint(1, max(1, extent))) for extent in data.shape)
        options = {}
        if data.ndim and rng.random() < 0.4:
            shards = tuple(rng.randint(1, 3) for _ in chunks)
            options["storage_transformers"] = [ShardingStorageTransformer("indexed", chunks_per_shard=shards)]
            sharded += 1
        array = zarr.create(
            shape=data.shape, chunks=chunks or True, dtype=data.dtype, store=store, path=file.stem, zarr_version=3,
            fill_value=data.dtype.type(0), write_empty_chunks=False, **options
        )  # fmt: skip
        array[...] = data
        shutil.copy(file, target / file.name)
    print(f"{len(files)} arrays, {sharded} with shards")


if __name__ == "__main__":
    main()
