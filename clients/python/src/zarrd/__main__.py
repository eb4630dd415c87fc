"""The commands `zarrd` of the pure wheel and `python -m zarrd`: `import FILE.nc`, and all others by the program."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ._errors import ZarrdError
from ._server import NO_PROGRAM, find_program
from ._version import __version__

FAILED, UNUSABLE = 1, 2
"""Exit codes, which are those of the program."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["import"] and _is_file_import(given[1:]):
        return _import(given[1:])
    program = find_program()
    if program is not None:
        sys.stdout.flush()
        os.execv(program, [str(program), *given])
    if given[:1] in (["--version"], ["-V"]):
        print(f"zarrd {__version__} (client only)")
        return 0
    if given[:1] in ([], ["--help"], ["-h"], ["help"]):
        _parser().print_help()
        print(f"\nOther commands are those of the program. {NO_PROGRAM[0].upper()}{NO_PROGRAM[1:]}.")
        return 0 if given else UNUSABLE
    print(f"zarrd: `zarrd {given[0]}` needs the server program: {NO_PROGRAM}", file=sys.stderr)
    return UNUSABLE


def _is_file_import(rest: Sequence[str]) -> bool:
    """True if the command imports a file, which Python reads; directories, buckets and servers are the program's."""
    if find_program() is None or any(each in ("--help", "-h") for each in rest):
        return True
    named = [each for each in rest if not each.startswith("-")]
    return bool(named) and not Path(named[0]).is_dir() and "://" not in named[0]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="zarrd import",
        description="Copies NetCDF, HDF5, GRIB and CSV files to groups of a running server, each in one commit.",
    )
    parser.add_argument("file", help="the file")
    parser.add_argument("prefix", nargs="?", help="the path of the group, or its URL; by default the name of the file")
    parser.add_argument("--server", metavar="URL", default=os.environ.get("ZARRD_SERVER", "http://127.0.0.1:8000"))
    parser.add_argument("--overwrite", action="store_true", help="erase what is at the prefix first")
    parser.add_argument("--exclude", metavar="NAME", action="append", default=[], help="leave out a variable")
    parser.add_argument("--engine", help="the engine of xarray that reads the file")
    return parser


def _import(rest: Sequence[str]) -> int:
    options = _parser().parse_args(rest)
    from ._importer import import_file

    try:
        group = import_file(
            options.file,
            options.prefix or Path(options.file).stem,
            server=options.server,
            overwrite=options.overwrite,
            exclude=options.exclude,
            engine=options.engine,
        )
    except (ZarrdError, OSError, ValueError, ImportError) as error:
        print(f"zarrd: {error}", file=sys.stderr)
        return UNUSABLE if isinstance(error, ImportError) else FAILED
    print(f"imported {options.file} to {group.url}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
