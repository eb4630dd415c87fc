"""Functions that the server computes over what is selected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from . import _elements
from ._http import Connection
from ._loop import run
from ._types import ElementType

Dims = str | int | Iterable[str | int] | None


class Reductions:
    """The functions of an array, or of a selection of one.

    They are computed on the server, chunk by chunk, with exact sums: only the result is sent. `dim` names the
    dimensions that are reduced, or numbers them in the stored array; by default all. With `skipna` NaN is left out.
    `decode="cf"` unpacks elements by the CF conventions first, as xarray does, and makes missing ones NaN;
    `decode="none"` computes with them as they are stored. One of the two is needed if the array is packed or
    masked: otherwise the error is `InvalidRequestError`.
    """

    _connection: Connection
    path: str

    def _parameters(self) -> dict[str, Any]:
        raise NotImplementedError

    def _kind(self) -> ElementType:
        raise NotImplementedError

    def reduce(
        self,
        function: str,
        dim: Dims = None,
        *,
        decode: str | None = None,
        skipna: bool = False,
        keepdims: bool = False,
        ddof: int | None = None,
        astype: str | None = None,
    ) -> Any:
        """The result of one function, or of several that are separated by commas and stacked along a first dimension.

        A scalar of NumPy if all dimensions are reduced, otherwise an array.
        """
        names = function.split(",")
        if skipna:
            names = [f"nan{name}" if name in _WITH_NAN else name for name in names]
        parameters = {
            **self._parameters(),
            "reduce": ",".join(names),
            "axis": axes(dim),
            "decode": decode,
            "keepdims": "true" if keepdims else None,
            "ddof": ddof,
            "astype": astype,
        }
        found = run(_elements.read(self._connection, self.path, parameters, self._kind().form))
        return found[()] if found.ndim == 0 else found

    def mean(self, dim: Dims = None, **options: Any) -> Any:
        """The arithmetic mean, rounded once."""
        return self.reduce("mean", dim, **options)

    def sum(self, dim: Dims = None, **options: Any) -> Any:
        """The sum, rounded once; of integers in 64 bits, beyond which it is an error."""
        return self.reduce("sum", dim, **options)

    def min(self, dim: Dims = None, **options: Any) -> Any:
        """The least element."""
        return self.reduce("min", dim, **options)

    def max(self, dim: Dims = None, **options: Any) -> Any:
        """The greatest element."""
        return self.reduce("max", dim, **options)

    def std(self, dim: Dims = None, **options: Any) -> Any:
        """The standard deviation, with `ddof` as in NumPy."""
        return self.reduce("std", dim, **options)

    def var(self, dim: Dims = None, **options: Any) -> Any:
        """The variance, with `ddof` as in NumPy."""
        return self.reduce("var", dim, **options)

    def argmin(self, dim: Dims = None, **options: Any) -> Any:
        """The index of the least element."""
        return self.reduce("argmin", dim, **options)

    def argmax(self, dim: Dims = None, **options: Any) -> Any:
        """The index of the greatest element."""
        return self.reduce("argmax", dim, **options)

    def any(self, dim: Dims = None, **options: Any) -> Any:
        """True if any element is not zero."""
        return self.reduce("any", dim, **options)

    def all(self, dim: Dims = None, **options: Any) -> Any:
        """True if no element is zero."""
        return self.reduce("all", dim, **options)

    def count(self, dim: Dims = None, **options: Any) -> Any:
        """The number of elements that are not missing."""
        return self.reduce("count", dim, **options)

    def stats(
        self,
        *,
        decode: str | None = None,
        quantiles: Iterable[float] | None = None,
        bins: int | None = None,
        range: tuple[float, float] | None = None,
    ) -> dict[str, Any]:
        """Count, extremes, sum, mean, standard deviation, quantiles and a histogram of what is selected."""
        parameters = {
            **self._parameters(),
            "decode": decode,
            "quantiles": None if quantiles is None else list(quantiles),
            "bins": bins,
            "range": range,
        }
        return run(_elements.statistics(self._connection, self.path, parameters))


_WITH_NAN = {"sum", "mean", "min", "max", "std", "var", "argmin", "argmax"}


def axes(dim: Dims) -> str | None:
    """The dimensions of `axis`."""
    if dim is None:
        return None
    if isinstance(dim, (str, int)):
        return str(dim)
    return ",".join(map(str, dim))


def windows(sizes: Mapping[str, int]) -> dict[str, Any]:
    """The parameters for windows."""
    return {f"coarsen.{name}": int(size) for name, size in sizes.items()}


__all__ = ["Dims", "Reductions", "axes", "windows"]
