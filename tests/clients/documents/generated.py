"""Generated parts of hierarchies, shared by the writers: attributes that are hard to preserve, groups and arrays."""

import math

SCALARS = [
    math.nan, math.inf, -math.inf, 10**29 + 7, -(10**30), 1.0, 1, -0.0, 0.1 + 0.2, 1e300, 5e-324, 2**63, True, False, None,
    "", "degC", "\u00e9t\u00e9", "\U0001f42d", "a/b", 'say "x"', "back\\slash", "tab\tline\n", "\u2028", "NaN", "0x1F",
]

NAMES = ["units", "_FillValue", "long name", "\u00e9", "a/b", "scale", "valid_range", "x", "history", "shape", "attributes", "metadata"]


def value(rng, depth=0):
    """A random value that Python can write as JSON."""
    kind = rng.random()
    if depth < 3 and kind < 0.15:
        return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if depth < 3 and kind < 0.3:
        return {rng.choice(NAMES): value(rng, depth + 1) for _ in range(rng.randrange(4))}
    return rng.choice(SCALARS)


def attributes(rng):
    """A few random attributes."""
    return {name: value(rng) for name in rng.sample(NAMES, rng.randrange(0, 6))}


def groups(root, rng):
    """Creates the groups of a hierarchy; returns those that may have arrays."""
    below = root.create_group("rooms")
    below.create_group("bare")
    for group in (root, below):
        group.attrs.put(attributes(rng))
    return root, below


def arrays(rng, dtypes):
    """The name, data type and shape of each array of a hierarchy."""
    for name in ("rain", "snow", "hail"):
        rank = rng.randrange(1, 4)
        dtype = rng.choice(list(dtypes))
        yield name, dtype, tuple(rng.randrange(1, 20) for _ in range(rank))
