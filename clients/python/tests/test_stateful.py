"""zarr-python's state machines: random changes of a hierarchy and of keys, compared with a store in memory."""

from __future__ import annotations

from typing import Any

import fsspec
import hypothesis
import pytest
import zarr
from conftest import EXAMPLES
from hypothesis.stateful import run_state_machine_as_test
from zarr.core.sync import sync
from zarr.storage import FsspecStore
from zarr.testing.stateful import ZarrHierarchyStateMachine, ZarrStoreStateMachine

import zarrd

SETTINGS = hypothesis.settings(
    max_examples=max(2, EXAMPLES // 4),
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(params=["ZarrStore", "FsspecStore"])
def store(request: pytest.FixtureRequest, place: str) -> Any:
    if request.param == "ZarrStore":
        return zarrd.ZarrStore(place)
    fs, path = fsspec.url_to_fs(place.replace("http", "zarrd").replace("/store", ""), asynchronous=True)
    return FsspecStore(fs, path=path)


def test_hierarchy(store: Any) -> None:
    run_state_machine_as_test(lambda: ZarrHierarchyStateMachine(store), settings=SETTINGS)  # type: ignore[no-untyped-call]
    assert isinstance(store, zarr.abc.store.Store)
    sync(store.clear())


def test_keys(store: Any) -> None:
    run_state_machine_as_test(lambda: ZarrStoreStateMachine(store), settings=SETTINGS)  # type: ignore[no-untyped-call]
