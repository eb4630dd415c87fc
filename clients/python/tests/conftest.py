"""A server for the tests, and numbers of hypothesis examples."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import hypothesis
import pytest

import zarrd

EXAMPLES = int(os.environ.get("ZARRD_EXAMPLES", "15"))
SHRINK = "ZARRD_SHRINK" in os.environ
hypothesis.settings.register_profile(
    "zarrd",
    max_examples=EXAMPLES,
    deadline=None,
    print_blob=True,
    # Shrinking takes a request for each step, so that it is done on demand only.
    phases=[each for each in hypothesis.Phase if each.name != "explain" and (SHRINK or each.name != "shrink")],
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.function_scoped_fixture],
)
hypothesis.settings.load_profile("zarrd")

_numbers = itertools.count()


@pytest.fixture(scope="session")
def server() -> Iterator[zarrd.Server]:
    os.environ.pop("ZARRD_TOKEN", None)
    with zarrd.Server("memory:") as running:
        yield running


@pytest.fixture
def path() -> str:
    """A path below which there is nothing."""
    return f"test{next(_numbers)}"


@pytest.fixture
def place(server: zarrd.Server, path: str) -> str:
    """The URL of a prefix below which there is nothing."""
    return f"{server.url}/store/{path}"


CASES = {"equal": 0, "raised": 0}
"""How often a function on the server was compared with xarray's, and how often it was refused."""

TIMES: list[tuple[str, float]] = []
"""The steps of the newcomer, and their seconds."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if any(CASES.values()):
        terminalreporter.write_line(f"functions: {CASES['equal']} equal, {CASES['raised']} refused")
    for name, seconds in TIMES:
        terminalreporter.write_line(f"newcomer: {name} {seconds:.2f} s")
