"""zarr-python's own tests of stores, for its ObjectStore over obstore's S3Store and its FsspecStore over s3fs, and its
random changes of a hierarchy:

    URL=http://127.0.0.1:8002 pytest s3_store.py
"""

import itertools
import os

import botocore.session
import pytest
import s3fs
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from obstore.store import S3Store
from obstore_suite import ObstoreSuite
from zarr.core.buffer import cpu
from zarr.storage import FsspecStore, ObjectStore
from zarr.testing.stateful import ZarrHierarchyStateMachine
from zarr.testing.store import StoreTests

URL = os.environ["URL"]
KEYS = {"aws_access_key_id": os.environ.get("KEY", "zarrd"), "aws_secret_access_key": os.environ.get("SECRET", "zarrd")}
CLIENT = botocore.session.get_session().create_client("s3", endpoint_url=URL, region_name="us-east-1", **KEYS)
numbers = itertools.count()


def new_bucket():
    """The name of a new bucket."""
    name = f"bucket-{next(numbers)}"
    CLIENT.create_bucket(Bucket=name)
    return name


def obstore_of_new_bucket():
    keys = {name.removeprefix("aws_"): value for name, value in KEYS.items()}
    return S3Store(new_bucket(), endpoint=URL, region="us-east-1", client_options={"allow_http": True}, **keys)


class StoreInLoop(ObjectStore):
    """A store whose `list_dir` sends its request when it is iterated over, in a loop, and not when it is called."""

    async def list_dir(self, prefix):
        async for name in super().list_dir(prefix):
            yield name


def test_hierarchy():
    """The same random changes of groups and arrays give the same hierarchy as in memory."""
    store = StoreInLoop(obstore_of_new_bucket())
    few = settings(max_examples=20, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(lambda: ZarrHierarchyStateMachine(store), settings=few)


class TestObstore(ObstoreSuite):
    @pytest.fixture
    def store_kwargs(self):
        return {"store": obstore_of_new_bucket(), "read_only": False}


class TestS3fs(StoreTests[FsspecStore, cpu.Buffer]):
    store_cls = FsspecStore
    buffer_cls = cpu.Buffer

    @pytest.fixture
    def store_kwargs(self):
        # Each test has an event loop of its own.
        s3fs.S3FileSystem.clear_instance_cache()
        key, secret = KEYS["aws_access_key_id"], KEYS["aws_secret_access_key"]
        fs = s3fs.S3FileSystem(endpoint_url=URL, key=key, secret=secret, asynchronous=True, use_listings_cache=False)
        return {"fs": fs, "path": new_bucket()}

    @pytest.fixture
    async def store(self, store_kwargs):
        return self.store_cls(**store_kwargs)

    async def get(self, store, key):
        body = CLIENT.get_object(Bucket=store.path, Key=key)["Body"]
        return self.buffer_cls.from_bytes(body.read())

    async def set(self, store, key, value):
        CLIENT.put_object(Bucket=store.path, Key=key, Body=value.to_bytes())

    def test_store_repr(self, store):
        assert str(store) == f"<FsspecStore({type(store.fs).__name__}, {store.path})>"

    def test_store_supports_writes(self, store):
        assert store.supports_writes

    def test_store_supports_listing(self, store):
        assert store.supports_listing
