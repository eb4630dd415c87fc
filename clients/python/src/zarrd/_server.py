"""The server program: where it is, and `Server`, which runs it for a test or a notebook."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import weakref
from pathlib import Path
from typing import IO, Self

from ._errors import ZarrdError

NO_PROGRAM = (
    "this installation of zarrd is the pure wheel (py3-none-any), which has the client and no server; the wheel for "
    "Linux on x86_64 (py3-none-manylinux_*_x86_64) has it: install zarrd there, or put the program `zarrd` into PATH "
    "or name it in ZARRD_BINARY"
)

# Runs the server until the standard input ends, which it does however the process at its other end ends.
_SUPERVISOR = """
exec 3<&0
"$@" </dev/null 3<&- &
pid=$!
echo $pid
exec >/dev/null
cat <&3
kill -TERM $pid 2>/dev/null
wait $pid
"""


def find_program() -> Path | None:
    """The program `zarrd`: that of `ZARRD_BINARY`, of this installation, or of `PATH`; None if there is none."""
    named = os.environ.get("ZARRD_BINARY")
    if named:
        return Path(named) if _is_program(Path(named)) else None
    places: list[str | Path] = [
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", f"{os.name}_user"),
        Path(sys.executable).parent,
    ]
    candidates = [Path(place, "zarrd") for place in places]
    candidates += [Path(place, "zarrd") for place in os.environ.get("PATH", "").split(os.pathsep) if place]
    return next(filter(_is_program, candidates), None)


def _is_program(path: Path) -> bool:
    # The pure wheel has a script of the same name, which is not the program.
    try:
        with path.open("rb") as file:
            return file.read(4) == b"\x7fELF" and os.access(path, os.X_OK)
    except OSError:
        return False


class Server:
    """A server on a free port of this machine, for tests and notebooks.

    >>> with zarrd.Server() as server:
    ...     group = zarrd.connect(server.url)["lab"]

    `store` is the location of its data, such as a directory or `memory:`; by default a temporary directory, which is
    removed at the end. `options` are those of `zarrd serve`, such as `"--read-only"`. The server ends with the block,
    with `close()`, and with this process even if that is killed.

    Raises `ZarrdError` with the program's own message if it does not start, or if there is no program.
    """

    def __init__(self, store: str | os.PathLike[str] | None = None, *options: str, port: int = 0) -> None:
        program = find_program()
        if program is None:
            raise ZarrdError(NO_PROGRAM)
        self._temporary = tempfile.mkdtemp(prefix="zarrd-") if store is None else None
        location = os.fspath(store) if store is not None else os.path.join(str(self._temporary), "store")
        self._log = tempfile.TemporaryFile()
        command = [str(program), "serve", "--listen", f"127.0.0.1:{port}", "--store", location, *options]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ZARRD_")}
        self._process = subprocess.Popen(
            ["sh", "-c", _SUPERVISOR, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
            cwd=self._temporary or None,
            env=environment,
        )
        self._stop = weakref.finalize(self, _stop, self._process, self._temporary, os.getpid())
        assert self._process.stdout is not None
        self.pid = int(self._process.stdout.readline())
        """The process id of the server."""
        line = self._process.stdout.readline().decode()
        if " is listening on " not in line:
            message = self._messages()
            self.close()
            raise ZarrdError(f"the server did not start: {message or line.strip() or 'it ended without a message'}")
        self.url: str = line.split(" is listening on ")[1].split(" ")[0].strip()
        """The address of the server."""
        threading.Thread(target=_drain, args=(self._process.stdout,), name="zarrd-server", daemon=True).start()

    def _messages(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace").strip()

    def close(self) -> None:
        """Ends the server and waits for it; requests in progress are finished."""
        self._stop()
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if not self._stop.alive else f"at {self.url}"
        return f"<zarrd.Server {state}>"

    def _repr_html_(self) -> str:
        return f'zarrd server: <a href="{self.url}">{self.url}</a>' if self._stop.alive else "zarrd server (closed)"


def _drain(pipe: IO[bytes]) -> None:
    try:
        while pipe.read(65536):
            pass
    except (OSError, ValueError):
        pass


def _stop(process: subprocess.Popen[bytes], temporary: str | None, owner: int) -> None:
    if os.getpid() != owner:
        return  # a forked process, whose copy of the object must not end the server
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
    if temporary is not None:
        shutil.rmtree(temporary, ignore_errors=True)
