"""zarr-python's own tests of stores, for its ObjectStore over a store of obstore. A subclass says which."""

import obstore
import pytest
from zarr.core.buffer import cpu
from zarr.storage import ObjectStore
from zarr.testing.store import StoreTests


class ObstoreSuite(StoreTests[ObjectStore, cpu.Buffer]):
    store_cls = ObjectStore
    buffer_cls = cpu.Buffer

    @pytest.fixture
    async def store(self, store_kwargs):
        return self.store_cls(**store_kwargs)

    async def get(self, store, key):
        return self.buffer_cls.from_bytes(bytes(await (await obstore.get_async(store.store, key)).bytes_async()))

    async def set(self, store, key, value):
        await obstore.put_async(store.store, key, value.to_bytes())

    def test_store_repr(self, store):
        assert str(store) == f"object_store://{store.store}"

    def test_store_supports_writes(self, store):
        assert store.supports_writes

    def test_store_supports_listing(self, store):
        assert store.supports_listing
