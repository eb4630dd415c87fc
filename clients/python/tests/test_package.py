"""Wheels, commands, and the server as a context manager."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

import zarrd
from zarrd import _server

SOURCE = Path(__file__).parent.parent
PROGRAM = _server.find_program()


def environment(**more: str) -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("ZARRD_", "PYTHONPATH"))},
        **more,
    }


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pure wheel, the wheel with the program, and the sdist."""
    pytest.importorskip("hatchling")
    out = tmp_path_factory.mktemp("dist")
    # Without debug information, as in a published wheel.
    program = out.parent / "zarrd"
    subprocess.run(["strip", "-o", str(program), str(PROGRAM)], check=True)
    found = {}
    for kind, target, variables in (
        ("pure", "wheel", {}),
        ("sdist", "sdist", {}),
        ("linux", "wheel", {"ZARRD_BINARY": str(program)}),
    ):
        before = set(out.iterdir())
        command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)]
        subprocess.run(command, cwd=SOURCE, env=environment(**variables), check=True, capture_output=True)
        (found[kind],) = set(out.iterdir()) - before
    return found


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """An environment with what zarrd needs, and without zarrd."""
    target = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(target)], check=True)
    packages = next((target / "lib").glob("python*")) / "site-packages"
    (packages / "needed.pth").write_text(str(Path(sysconfig.get_path("purelib"))))
    return target


def pip(venv: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--python", str(venv / "bin/python"), "-q", "--disable-pip-version-check"]
    # Not with the package that is under test here.
    subprocess.run([*command, *arguments], check=True, capture_output=True, env=environment())


def files(venv: Path) -> set[str]:
    return {str(each.relative_to(venv)) for each in venv.rglob("*") if "__pycache__" not in each.parts}


def test_wheels_install_and_uninstall(wheels: dict[str, Path], venv: Path) -> None:
    assert wheels["pure"].name == f"zarrd-{zarrd.__version__}-py3-none-any.whl"
    assert wheels["linux"].name.startswith(f"zarrd-{zarrd.__version__}-py3-none-manylinux_2_")
    before = files(venv)
    for kind in ("pure", "linux"):
        pip(venv, "install", "--no-index", "--no-deps", "--force-reinstall", str(wheels[kind]))
        script = venv / "bin/zarrd"
        variables = environment(PATH="/usr/bin:/bin")
        python = [str(venv / "bin/python"), "-c"]
        code = """
import fsspec, xarray, zarrd
print(fsspec.get_filesystem_class("zarrd").__module__, "zarrd" in xarray.backends.list_engines())
"""
        found = subprocess.run([*python, code], capture_output=True, text=True, env=variables, check=True)
        assert found.stdout.split() == ["zarrd.fsspec", "True"]
        for command in ([str(script), "serve"], [str(venv / "bin/python"), "-m", "zarrd", "serve"]):
            answer = subprocess.run([*command, "--help"], capture_output=True, text=True, env=variables)
            if kind == "pure":
                assert answer.returncode == 2
                assert "pure wheel" in answer.stderr and "manylinux" in answer.stderr
            else:
                assert (answer.returncode, answer.stdout[:12]) == (0, "Serve a stor")
        pip(venv, "uninstall", "-y", "zarrd")
        assert files(venv) == before


def test_contents(wheels: dict[str, Path]) -> None:
    names = zipfile.ZipFile(wheels["pure"]).namelist()
    assert "zarrd/py.typed" in names and not any(name.endswith(".pyc") or "tests" in name for name in names)
    linux = zipfile.ZipFile(wheels["linux"])
    program = next(info for info in linux.infolist() if info.filename.endswith(".data/scripts/zarrd"))
    assert program.external_attr >> 16 & 0o111
    assert b"console_scripts" not in linux.read(next(n for n in linux.namelist() if n.endswith("entry_points.txt")))


def test_wheels_pass_the_checks_of_others(wheels: dict[str, Path]) -> None:
    twine = pytest.importorskip("twine")
    assert twine
    paths = [str(each) for each in wheels.values()]
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *paths], check=True, capture_output=True)
    pytest.importorskip("auditwheel")
    command = [sys.executable, "-m", "auditwheel", "show", str(wheels["linux"])]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout.replace("\n", " ")
    tag = wheels["linux"].stem.rpartition("-")[2]
    assert f'following platform tag: "{tag}"' in shown


def test_pure_installation_has_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZARRD_BINARY", "/nonexistent")
    with pytest.raises(zarrd.ZarrdError, match="pure wheel"):
        zarrd.Server()


def test_server_ends_with_its_block(tmp_path: Path) -> None:
    with zarrd.Server(tmp_path / "store") as server:
        zarrd.connect(server.url).create_group("lab")
        assert Path(f"/proc/{server.pid}").exists()
    assert not Path(f"/proc/{server.pid}").exists()
    with zarrd.Server(tmp_path / "store", "--read-only") as again:
        root = zarrd.connect(again.url)
        assert root.keys() == ["lab"]
        with pytest.raises(zarrd.ForbiddenError, match="read-only"):
            root.create_group("more")
    server.close()


def test_server_that_does_not_start(tmp_path: Path) -> None:
    with zarrd.Server(tmp_path / "store"), pytest.raises(zarrd.ZarrdError, match="did not start.*"):
        zarrd.Server(tmp_path / "store")
    with pytest.raises(zarrd.ZarrdError, match="--nonsense"):
        zarrd.Server(None, "--nonsense")


@pytest.mark.parametrize("end", ["killed", "exit", "exception"])
def test_server_ends_with_its_process(end: str) -> None:
    code = f"""
import os, threading, time, zarrd
def start():
    global server
    server = zarrd.Server("memory:")
# The thread that starts it ends first.
thread = threading.Thread(target=start); thread.start(); thread.join()
zarrd.connect(server.url)
print(server.pid, flush=True)
{ {"killed": "time.sleep(60)", "exit": "pass", "exception": "1 / 0"}[end] }
"""
    variables = {**os.environ, "ZARRD_BINARY": str(PROGRAM)}
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=variables
    )
    assert child.stdout is not None
    pid = int(child.stdout.readline())
    if end == "killed":
        os.kill(child.pid, signal.SIGKILL)
    child.wait(timeout=60)
    child.stdout.close()
    deadline = time.monotonic() + 20
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_modules_are_typed() -> None:
    api = pytest.importorskip("mypy.api")
    out, err, code = api.run(["--strict", "--config-file", str(SOURCE / "pyproject.toml"), str(SOURCE / "src/zarrd")])
    assert code == 0, out + err


def test_optional_packages_are_optional(tmp_path: Path) -> None:
    code = """
import sys
for name in ("zarr", "xarray", "fsspec"):
    sys.modules[name] = None
import numpy, zarrd
with zarrd.Server("memory:") as server:
    array = zarrd.connect(server.url).create_array("a", data=numpy.arange(3))
    assert array[1:].tolist() == [1, 2] and array.sum() == 3
    try:
        zarrd.ZarrStore(server.url)
    except ImportError as error:
        assert "zarrd[zarr]" in str(error)
"""
    variables: dict[str, Any] = {**os.environ, "ZARRD_BINARY": str(PROGRAM)}
    subprocess.run([sys.executable, "-c", code], check=True, env=variables)
