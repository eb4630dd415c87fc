"""Tokens: given, of the environment, or stored by `zarrd login`."""

from __future__ import annotations

import json
import os
from pathlib import Path

from ._address import Address
from ._errors import ZarrdError

TOKEN_VARIABLE = "ZARRD_TOKEN"


def logins_file() -> Path | None:
    """The file in which `zarrd login` stores tokens; None if the user has no configuration directory."""
    for name, below in (("XDG_CONFIG_HOME", ()), ("HOME", (".config",))):
        directory = os.environ.get(name, "")
        if os.path.isabs(directory):
            return Path(directory, *below, "zarrd", "tokens.json")
    return None


def find_token(address: Address, token: str | None) -> str | None:
    """The token for a server: the given one, `ZARRD_TOKEN`, or the one of `zarrd login`, in this order.

    Raises `ZarrdError` if the file of `zarrd login` is damaged or accessible to other users.
    """
    if token is not None:
        return token.strip() or None
    if address.is_shared:
        return None
    variable = os.environ.get(TOKEN_VARIABLE, "").strip()
    if variable:
        return variable
    file = logins_file()
    if file is None:
        return None
    try:
        mode = file.stat().st_mode & 0o7777
        content = file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ZarrdError(f"cannot read {file}: {error}") from error
    if mode & 0o077:
        raise ZarrdError(f"{file} is accessible to others than its owner (mode {mode:o}); run `chmod 600` on it")
    try:
        found = json.loads(content).get(address.origin)
    except (ValueError, AttributeError) as error:
        raise ZarrdError(f"{file} is damaged; remove it and log in again") from error
    return found if isinstance(found, str) else None
