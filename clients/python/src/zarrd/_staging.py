"""A store that keeps metadata documents back, so that what is written becomes visible at once."""

from __future__ import annotations

import json
from typing import Any

from zarr.abc.store import ByteRequest
from zarr.core.buffer import Buffer, BufferPrototype

from ._http import Connection
from ._store import ZarrStore

_DOCUMENT = "zarr.json"


class StagingStore(ZarrStore):
    """Chunks go to the server, documents of v3 stay here until `tree` is created with `adopt`."""

    def __init__(self, url: str | Connection, *, token: str | None = None, read_only: bool = False) -> None:
        super().__init__(url, token=token, read_only=read_only)
        self._held: dict[str, Buffer] = {}

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        if key.rpartition("/")[2] == _DOCUMENT:
            return self._held.get(key)
        return await super().get(key, prototype, byte_range)

    async def exists(self, key: str) -> bool:
        return key in self._held if key.rpartition("/")[2] == _DOCUMENT else await super().exists(key)

    async def set(self, key: str, value: Buffer) -> None:
        if key.rpartition("/")[2] == _DOCUMENT:
            self._held[key] = value
        else:
            await super().set(key, value)

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        if key.rpartition("/")[2] == _DOCUMENT:
            self._held.setdefault(key, value)
        else:
            await super().set_if_not_exists(key, value)

    async def delete(self, key: str) -> None:
        if key.rpartition("/")[2] == _DOCUMENT:
            self._held.pop(key, None)
        else:
            await super().delete(key)

    async def delete_dir(self, prefix: str) -> None:
        below = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._held = {key: value for key, value in self._held.items() if not key.startswith(below)}
        await super().delete_dir(prefix)

    def tree(self) -> dict[str, Any]:
        """The documents as one tree, with `members`."""
        documents = {key.rpartition("/")[0]: json.loads(value.to_bytes()) for key, value in self._held.items()}
        for path in sorted(documents, key=lambda each: each.count("/"), reverse=True):
            if documents[path]["node_type"] == "group":
                documents[path].setdefault("members", {})
        for path in sorted(documents, reverse=True):
            if path:
                parent, _, name = path.rpartition("/")
                documents[parent]["members"][name] = documents[path]
        root: dict[str, Any] = documents[""]
        return root
