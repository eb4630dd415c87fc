"""Random selections, in the server's syntax and as NumPy indices."""

import numpy as np


def select(array, items):
    """The elements selected by `items`, one for each dimension and each along its own dimension; integers drop
    theirs.
    """
    for axis in reversed(range(array.ndim)):
        item = items[axis]
        if isinstance(item, list):
            array = np.take(array, item, axis) if item else array[(slice(None),) * axis + (slice(0, 0),)]
        elif isinstance(item, slice):
            array = array[(slice(None),) * axis + (item,)]
        else:
            # Not by the integer itself, which would return the bare object of an object array.
            start = item % array.shape[axis]
            array = array[(slice(None),) * axis + (slice(start, start + 1),)]
            array = array.reshape(array.shape[:axis] + array.shape[axis + 1 :])
    return array


def item(generator, extent):
    """A random item for a dimension of this extent."""
    kind = generator.integers(0, 10)
    if kind < 2 and extent:
        return int(generator.integers(-extent, extent))
    if kind < 4 and extent:
        return generator.integers(-extent, extent, generator.integers(1, 2 * extent + 2)).tolist()

    def bound():
        # Often out of bounds, where slices are clamped.
        return None if generator.random() < 0.3 else int(generator.integers(-extent - 3, extent + 4))

    step = int(generator.choice([1, 1, 2, 3, 7, -1, -2, -3]))
    return slice(bound(), bound(), None if step == 1 and generator.random() < 0.7 else step)


def items(generator, shape):
    return [item(generator, extent) for extent in shape]


def item_text(item, generator):
    if isinstance(item, list):
        inner = ",".join(map(str, item))
        return f"[{inner}]" if generator.random() < 0.5 else f"({inner})"
    if isinstance(item, slice):
        start, stop, step = ("" if part is None else str(part) for part in (item.start, item.stop, item.step))
        return f"{start}:{stop}:{step}" if step else f"{start}:{stop}"
    return str(item)


def is_whole(item):
    return item == slice(None)


def selection_text(items, generator):
    """A selection as text, in one of its possible spellings."""
    texts = [item_text(item, generator) for item in items]
    whole = [is_whole(item) for item in items]
    count = len(items)
    # Trailing complete dimensions can be omitted, and adjacent complete ones can be an ellipsis.
    while count > 1 and whole[count - 1] and generator.random() < 0.5:
        count -= 1
    texts = texts[:count]
    if count == len(items) and generator.random() < 0.3:
        at = int(generator.integers(0, len(items) + 1))
        end = at
        while end < len(items) and whole[end]:
            end += 1
        texts[at:end] = ["..."]
    return (", " if generator.random() < 0.3 else ",").join(texts)


def item_json(item, generator):
    return item if isinstance(item, (int, list)) else item_text(item, generator)
