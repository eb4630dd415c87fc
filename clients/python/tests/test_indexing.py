"""Random indices of random arrays, read and written, compared with NumPy."""

from __future__ import annotations

from typing import Any

import hypothesis.extra.numpy as npst
import hypothesis.strategies as st
import numpy as np
import pytest
import zarr
from hypothesis import given

import zarrd

DTYPES = ["?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "M8[s]", "m8[ms]", "U3", "S2", ">i2", "text"]
shapes = npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=6)


@st.composite
def elements(draw: Any, shape: Any, dtype: str) -> Any:
    if dtype == "text":
        return draw(npst.arrays(object, shape, elements=st.text(max_size=3).filter(_storable)))
    kind = np.dtype(dtype)
    options = st.text("abä", max_size=3) if kind.kind == "U" else st.binary(max_size=2) if kind.kind == "S" else None
    if options is not None:
        options = options.map(lambda each: each.rstrip("\0" if isinstance(each, str) else b"\0"))
    return draw(npst.arrays(kind, shape, elements=options))


def _storable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@st.composite
def indices(draw: Any, shape: Any) -> Any:
    """An index that NumPy has: basic, and perhaps one list or mask."""
    key = draw(npst.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    parts = list(key) if isinstance(key, tuple) else [key]
    slices = [at for at, part in enumerate(parts) if isinstance(part, slice)]
    if slices and None not in parts and draw(st.booleans()):
        at = draw(st.sampled_from(slices))
        before = sum(part is not Ellipsis for part in parts[:at])
        dots = next((place for place, part in enumerate(parts[:at]) if part is Ellipsis), None)
        if dots is not None:
            before += len(shape) - sum(part is not Ellipsis for part in parts)
        extent = shape[before]
        kind = draw(st.sampled_from(["list", "mask", "matrix"]))
        if kind == "mask":
            parts[at] = np.array(draw(st.lists(st.booleans(), min_size=extent, max_size=extent)), bool)
        elif extent:
            size = (
                draw(npst.array_shapes(min_dims=1, max_dims=2, max_side=4))
                if kind == "matrix"
                else draw(st.integers(0, 5))
            )
            parts[at] = draw(npst.arrays(np.int64, size, elements=st.integers(-extent, extent - 1)))
    return tuple(parts)


@st.composite
def orthogonal(draw: Any, shape: Any) -> Any:
    parts: list[Any] = []
    for extent in shape:
        options = [npst.basic_indices((extent,), allow_ellipsis=False).map(_single)]
        if extent:
            options.append(st.lists(st.integers(-extent, extent - 1), max_size=5))
        parts.append(draw(st.one_of(options)))
    return tuple(parts)


def _single(key: Any) -> Any:
    if isinstance(key, tuple):
        return key[0] if key else slice(None)
    return key


def outer(data: Any, key: Any) -> Any:
    """Orthogonal indexing, one dimension after the other."""
    for axis in reversed(range(len(key))):
        part = np.asarray(key[axis], int) if isinstance(key[axis], list) else key[axis]
        data = data[(slice(None),) * axis + (part,)]
    return data


@pytest.fixture(scope="module")
def store(server: zarrd.Server) -> zarrd.ZarrStore:
    return zarrd.ZarrStore(f"{server.url}/store/indexing")


def stored(store: zarrd.ZarrStore, data: Any, draw: Any) -> zarrd.Array:
    """The data as an array of a random dialect, in random chunks."""
    chunks = tuple(draw(st.integers(1, max(extent, 1))) for extent in data.shape)
    zarr_format = draw(st.sampled_from([2, 3]))
    options: dict[str, Any] = {}
    if zarr_format == 3 and data.ndim and draw(st.booleans()):
        options["shards"] = tuple(each * draw(st.integers(1, 3)) for each in chunks)
    if data.dtype == object:
        options["dtype"] = "string" if zarr_format == 3 else zarr.dtype.VariableLengthUTF8()
    else:
        options["dtype"] = data.dtype
    array = zarr.create_array(
        store, name="a", shape=data.shape, chunks=chunks, zarr_format=zarr_format, overwrite=True, **options
    )
    if data.size:
        array[...] = data
    root: zarrd.Array = zarrd.connect(store.url)["a"]
    return root


def same(found: Any, expected: Any) -> None:
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    if expected.dtype == object:
        assert found.tolist() == expected.tolist()
        return
    # A scalar of text has the length of its text.
    text = expected.dtype.kind in "US"
    assert found.dtype.kind == expected.dtype.kind
    assert text or found.dtype.newbyteorder("=") == expected.dtype.newbyteorder("=")
    assert np.array_equal(found, expected, equal_nan=expected.dtype.kind in "fcMm")


@given(st.data())
@pytest.mark.filterwarnings("ignore")
def test_basic(store: zarrd.ZarrStore, data: Any) -> None:
    shape, dtype = data.draw(shapes), data.draw(st.sampled_from(DTYPES))
    content = data.draw(elements(shape, dtype))
    array = stored(store, content, data.draw)
    for _ in range(4):
        key = data.draw(indices(shape))
        same(array[key], content[key])


@given(st.data())
@pytest.mark.filterwarnings("ignore")
def test_orthogonal(store: zarrd.ZarrStore, data: Any) -> None:
    shape, dtype = data.draw(shapes), data.draw(st.sampled_from(DTYPES))
    content = data.draw(elements(shape, dtype))
    array = stored(store, content, data.draw)
    for _ in range(4):
        key = data.draw(orthogonal(shape))
        same(array.oindex[key], outer(content, key))


@given(st.data())
@pytest.mark.filterwarnings("ignore")
def test_points(store: zarrd.ZarrStore, data: Any) -> None:
    shape = data.draw(npst.array_shapes(min_dims=1, max_dims=4, max_side=6))
    content = data.draw(elements(shape, data.draw(st.sampled_from(DTYPES))))
    array = stored(store, content, data.draw)
    result = data.draw(npst.array_shapes(min_dims=0, max_dims=2, max_side=4))
    key = tuple(data.draw(npst.arrays(np.int64, result, elements=st.integers(-each, each - 1))) for each in shape)
    same(array.points[key], content[key])


@given(st.data())
@pytest.mark.filterwarnings("ignore")
def test_point_writes(store: zarrd.ZarrStore, data: Any) -> None:
    shape = data.draw(npst.array_shapes(min_dims=0, max_dims=4, max_side=6))
    dtype = data.draw(st.sampled_from(DTYPES))
    content = data.draw(elements(shape, dtype))
    array = stored(store, content, data.draw)
    for _ in range(3):
        result = data.draw(npst.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=4)) if shape else ()
        key = tuple(data.draw(npst.arrays(np.int64, result, elements=st.integers(-each, each - 1))) for each in shape)
        options = [result, result[1:], (), (1, *result) if result else ()]
        value = data.draw(elements(data.draw(st.sampled_from(options)), dtype))
        content[key] = value if value.ndim else value[()]
        array.points[key] = value
        same(array[...], content)
        same(array.points[key], content[key])


def test_wrong_points(store: zarrd.ZarrStore) -> None:
    array = zarrd.connect(store.url).create_array("p", data=np.zeros((2, 3)), overwrite=True)
    for key, value in [((0, 3), 1), ((0,), 1), ((0.5, 0), 1), (([0, 1], 0), [1, 2, 3]), (([0, 1, 1], [0, 1]), 1)]:
        with pytest.raises((IndexError, ValueError)):
            array.points[key] = value
    with pytest.raises(ValueError, match="1048577 points are more than"):
        array.points[np.zeros(2**20 + 1, int), 0] = 1
    assert not array[...].any()
    array.points[np.arange(2**20) % 2, np.arange(2**20) % 3] = np.arange(2**20)
    last = 2**20 - 1 - np.array([[3, 1, 5], [0, 4, 2]])
    assert np.array_equal(np.sort(array[...].ravel()), np.sort(last.ravel()))


@given(st.data())
@pytest.mark.filterwarnings("ignore")
def test_writes(store: zarrd.ZarrStore, data: Any) -> None:
    shape, dtype = data.draw(shapes), data.draw(st.sampled_from(DTYPES))
    content = data.draw(elements(shape, dtype))
    array = stored(store, content, data.draw)
    for _ in range(3):
        key = data.draw(indices(shape))
        target = np.asarray(content[key]).shape
        value = data.draw(elements(data.draw(st.sampled_from([target, target[1:], ()])), dtype))
        content[key] = value if value.ndim else value[()]
        array[key] = value
        same(array[...], content)
    key = data.draw(orthogonal(shape))
    value = data.draw(elements(np.shape(outer(content, key)), dtype))
    positions = outer(np.arange(content.size).reshape(shape), key)
    # As in NumPy, the last of repeated indices counts.
    content.reshape(-1)[np.asarray(positions).ravel()] = value.ravel()
    array.oindex[key] = value
    same(array[...], content)


@given(st.data())
@pytest.mark.filterwarnings("ignore")
def test_appends(store: zarrd.ZarrStore, data: Any) -> None:
    shape = data.draw(npst.array_shapes(min_dims=1, max_dims=3, max_side=5))
    dtype = data.draw(st.sampled_from(DTYPES))
    content = data.draw(elements(shape, dtype))
    array = stored(store, content, data.draw)
    for _ in range(2):
        axis = data.draw(st.integers(-len(shape), len(shape) - 1))
        more_shape = list(content.shape)
        more_shape[axis] = data.draw(st.integers(0, 4))
        more = data.draw(elements(tuple(more_shape), dtype))
        array.append(more, axis)
        content = np.concatenate([content, more], axis)
        same(array[...], content)


@pytest.mark.parametrize("key", [(0, 0, 0), 5, (slice(None, None, 0),), "x", 1.5, [0.5], (True,), ([0], [1]), [True]])
def test_wrong_indices(store: zarrd.ZarrStore, key: Any) -> None:
    array = zarrd.connect(store.url).create_array("w", data=np.zeros((2, 3)), overwrite=True)
    with pytest.raises((IndexError, ValueError)):
        array[key]
    with pytest.raises((IndexError, ValueError)):
        array[key] = 0
    assert not array[...].any()
