"""Adds the server to the wheel if `ZARRD_BINARY` names the program, and the tag of the systems on which it runs."""

from __future__ import annotations

import os
import re
import subprocess
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ServerBuildHook(BuildHookInterface[Any]):
    """Without `ZARRD_BINARY`, the wheel is pure and its script `zarrd` has no server."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        binary = os.environ.get("ZARRD_BINARY")
        if not binary or version == "editable":
            return
        # The program takes the place of the script; `python -m zarrd` stays.
        self.metadata.core.scripts.clear()
        build_data["shared_scripts"] = {binary: "zarrd"}
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-manylinux_2_{glibc(binary)}_x86_64"


def glibc(binary: str) -> int:
    """The minor version of glibc 2 that a program needs: the newest of its symbol versions, at least 17."""
    symbols = subprocess.run(
        ["readelf", "--version-info", "--wide", binary], check=True, capture_output=True, text=True
    )
    return max(17, *(int(minor) for minor in re.findall(r"\bGLIBC_2\.(\d+)", symbols.stdout)))
