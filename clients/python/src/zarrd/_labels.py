"""Labels of `sel` as the text of the server's parameters."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Any

import numpy as np

# What has a meaning of its own in a label.
_SPECIAL = re.compile(r'\.\.|[~",()]|^$')


def label_text(label: Any, method: str | None = None, tolerance: Any = None) -> str:
    """A label, a slice of labels (both ends included) or a list of labels.

    Texts are taken as they are: `"2020-02"` selects the times of that month. `method="nearest"` selects the nearest
    label, at most `tolerance` away.
    """
    if method not in (None, "nearest"):
        raise ValueError(f"method has to be None or 'nearest', not {method!r}")
    suffix = "" if method is None else "~" if tolerance is None else f"~{_scalar(tolerance)}"
    if isinstance(label, slice):
        if label.step is not None:
            raise ValueError("a slice of labels has no step; add isel")
        if suffix:
            raise ValueError("method='nearest' needs single labels, not a slice")
        return f"{_end(label.start)}..{_end(label.stop)}"
    if isinstance(label, (list, tuple, np.ndarray)) and np.ndim(label) > 0:
        return f"({','.join(_scalar(each) + suffix for each in np.asarray(label).ravel())})"
    return _scalar(label) + suffix


def _end(label: Any) -> str:
    return "" if label is None else _scalar(label)


def _scalar(label: Any) -> str:
    if isinstance(label, (bool, np.bool_)):
        return "true" if label else "false"
    if isinstance(label, (str, np.str_)):
        text = str(label)
        return '"' + text.replace('"', '""') + '"' if _SPECIAL.search(text) else text
    if isinstance(label, np.datetime64):
        return str(label)
    if isinstance(label, (timedelta, np.timedelta64)):
        seconds = np.timedelta64(label).astype("m8[ns]").astype(np.int64)
        whole, rest = divmod(abs(int(seconds)), 1_000_000_000)
        fraction = f".{rest:09d}".rstrip("0") if rest else ""
        return f"{'-' if seconds < 0 else ''}PT{whole}{fraction}S"
    if isinstance(label, date):
        return label.isoformat()
    if isinstance(label, (float, np.floating)):
        return np.format_float_positional(float(label), trim="0") if np.isfinite(label) else str(float(label))
    if isinstance(label, (int, np.integer)):
        return str(int(label))
    if isinstance(label, np.ndarray) and label.ndim == 0:
        return _scalar(label[()])
    if hasattr(label, "isoformat"):
        return str(label.isoformat())
    raise TypeError(f"a label is a number, a text or a time, and not {type(label).__name__}")
