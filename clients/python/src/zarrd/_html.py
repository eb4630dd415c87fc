"""What notebooks show: tables of arrays, and trees of groups."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from ._errors import ZarrdError

if TYPE_CHECKING:
    from ._array import Array

_STYLE = "border-collapse:collapse;font-size:90%"


def array_html(array: Array) -> str:
    """A table of an array's properties and attributes."""
    try:
        dims = ", ".join(f"{name or '?'}: {extent:,}" for name, extent in zip(array.dims, array.shape, strict=True))
        rows = [("shape", dims or "scalar"), ("type", str(array.dtype)), ("chunks", str(array.chunks))]
        rows += [(name, _short(value)) for name, value in array.attrs.items() if name != "_ARRAY_DIMENSIONS"]
    except ZarrdError as error:
        rows = [("error", str(error))]
    body = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows
    )
    return f"<div><b>/{escape(array.path)}</b><table style='{_STYLE}'>{body}</table></div>"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 120 else f"{text[:117]}…"


def summary(document: dict[str, Any]) -> str:
    """One line on an array: its extents with names, and its type."""
    from ._types import element_type

    try:
        kind = str(element_type(document).dtype)
    except ZarrdError:
        declared = document.get("data_type", document.get("dtype"))
        kind = declared if isinstance(declared, str) else str((declared or {}).get("name", "?"))
    if kind == "object":
        kind = "text" if element_type(document).form == "text" else "object"
    names = document.get("dimension_names")
    if names is None and document.get("zarr_format") == 2:
        names = (document.get("attributes") or {}).get("_ARRAY_DIMENSIONS")
    extents = document["shape"]
    if names and any(names):
        shape = ", ".join(f"{name or '?'}: {extent}" for name, extent in zip(names, extents, strict=False))
    else:
        shape = ", ".join(map(str, extents)) + ("," if len(extents) == 1 else "")
    return f"({shape}) {kind}"


def is_array(document: dict[str, Any]) -> bool:
    """True of the document of an array, false of that of a group."""
    return "shape" in document


def tree_text(name: str, document: dict[str, Any]) -> str:
    """A hierarchy as text, with lines as `zarrd tree` draws them."""
    lines = [f"/{name}" + (f" {summary(document)}" if is_array(document) else "")]
    _branches(document, "", lines)
    return "\n".join(lines)


def _branches(document: dict[str, Any], indent: str, lines: list[str]) -> None:
    members = sorted((document.get("members") or {}).items()) if not is_array(document) else []
    for at, (name, member) in enumerate(members):
        last = at == len(members) - 1
        text = f"{name}  {summary(member)}" if is_array(member) else f"{name}/"
        lines.append(f"{indent}{'└── ' if last else '├── '}{text}")
        _branches(member, indent + ("    " if last else "│   "), lines)


def tree_html(name: str, document: dict[str, Any]) -> str:
    """A hierarchy as nested lists that open and close."""
    return f"<div><b>/{escape(name)}</b>{_list(document)}</div>"


def _list(document: dict[str, Any]) -> str:
    parts = []
    for name, member in sorted((document.get("members") or {}).items()):
        if is_array(member):
            parts.append(f"<li>{escape(name)} <code>{escape(summary(member))}</code></li>")
        else:
            parts.append(f"<li><details open><summary>{escape(name)}/</summary>{_list(member)}</details></li>")
    return f"<ul style='list-style:none;padding-left:1.2em'>{''.join(parts)}</ul>" if parts else ""
