"""Checks responses in each format against the expected elements, based on NumPy alone.

Each check returns the error, or nothing.
"""

import base64
import io
import json
import struct

import numpy as np


def check(form, body, wanted, kind):
    return {"raw": check_raw, "npy": check_npy, "json": check_json}[form](body, wanted, kind)


def forms(kind):
    """The formats that support elements of this kind."""
    return {"fixed": ["raw", "npy", "json"], "string": ["raw", "npy", "json"]}.get(kind, ["raw", "json"])


def is_fixed(kind):
    return kind in ("fixed", "bfloat16")


def check_raw(body, wanted, kind):
    expected = raw(wanted, kind)
    if body == expected or (kind == "objects" and texts(body) == wanted.ravel().tolist()):
        return None
    if len(body) != len(expected):
        return f"{len(body)} bytes instead of {len(expected)}"
    size = wanted.dtype.itemsize if is_fixed(kind) else 1
    at = next(index for index, pair in enumerate(zip(body, expected)) if pair[0] != pair[1]) // max(size, 1) * size
    return f"at byte {at} {body[at : at + max(size, 8)].hex()} instead of {expected[at : at + max(size, 8)].hex()}"


def raw(wanted, kind):
    """The bytes in C order; for variable length in the format of numcodecs: the count, and each element after its
    length.
    """
    if is_fixed(kind):
        return wanted.tobytes()
    parts = [struct.pack("<I", wanted.size)]
    for item in wanted.ravel().tolist():
        content = content_of(item, kind)
        parts += [struct.pack("<I", len(content)), content]
    return b"".join(parts)


def texts(body):
    """Compares the values of JSON elements, which can be spelled in many ways."""
    found, at = [], 4
    for _ in range(struct.unpack_from("<I", body)[0]):
        (length,) = struct.unpack_from("<I", body, at)
        found.append(json.loads(body[at + 4 : at + 4 + length]))
        at += 4 + length
    return found if at == len(body) else None


def content_of(item, kind):
    match kind:
        case "string":
            return item.encode()
        case "bytes":
            return item
        case "arrays":
            return item.astype(item.dtype.newbyteorder("<")).tobytes()
        case _:
            return json.dumps(item, ensure_ascii=False, separators=(",", ":")).encode()


def check_npy(body, wanted, kind):
    stream = io.BytesIO(body)
    found = np.load(stream, allow_pickle=False)
    if stream.tell() != len(body):
        return f"{len(body) - stream.tell()} bytes too many"
    if found.shape != wanted.shape:
        return f"the shape {found.shape} instead of {wanted.shape}"
    if kind == "string":
        if found.dtype.kind != "U":
            return f"the type {found.dtype} for strings"
        # NumPy's own strings end before trailing NULs.
        return None if found.tolist() == np.asarray(wanted, "U").tolist() else f"{excerpt(found)} instead of {excerpt(wanted)}"
    if found.dtype != wanted.dtype:
        return f"the type {found.dtype} instead of {wanted.dtype}"
    return check_raw(found.tobytes(), wanted, kind)


def check_json(body, wanted, kind):
    try:
        found = json.loads(body, parse_constant=reject_constant)
    except ValueError as error:
        return f"no JSON: {error}: {body[:80]!r}"
    return nested(found, wanted, kind)


def reject_constant(name):
    raise ValueError(f"{name} is no JSON")


def nested(found, wanted, kind):
    """Compares nested lists."""
    if wanted.ndim == 0:
        item = wanted[()]
        same = same_element(found, item, wanted.dtype) if kind == "fixed" else same_object(found, item, kind)
        return None if same else f"{json.dumps(found)[:80]} instead of {item!r:.120}"
    if not isinstance(found, list) or len(found) != wanted.shape[0]:
        return f"no list of {wanted.shape[0]}: {json.dumps(found)[:80]}"
    wrong = (nested(inner, wanted[index, ...], kind) for index, inner in enumerate(found))
    return next((f"[{index}] {reason}" for index, reason in enumerate(wrong) if reason), None)


def same_object(found, item, kind):
    match kind:
        case "bfloat16":
            return same_bfloat16(found, int(item))
        case "bytes":
            return isinstance(found, str) and base64.b64decode(found, validate=True) == item
        case "arrays":
            return nested(found, item, "fixed") is None
        case _:
            return found == item and type(found) is type(item)


def same_element(found, item, dtype):
    """True if a JSON value represents exactly this element."""
    if dtype.subdtype is not None:
        return nested(found, np.asarray(item), "fixed") is None
    if dtype.names is not None:
        fields = [same_element(inner, item[name], dtype[name]) for inner, name in zip(found, dtype.names)]
        return isinstance(found, list) and len(found) == len(dtype.names) and all(fields)
    match dtype.kind:
        case "b":
            return found is bool(item)
        case "i" | "u":
            return type(found) is int and found == int(item)
        case "f":
            return same_float(found, item)
        case "c":
            # Not item.real: NumPy may change the payload of a NaN there.
            real, imaginary = np.asarray(item).reshape(1).view(f"f{dtype.itemsize // 2}")
            return isinstance(found, list) and len(found) == 2 and same_float(found[0], real) and same_float(found[1], imaginary)
        case "S":
            return isinstance(found, str) and base64.b64decode(found, validate=True).rstrip(b"\0") == bytes(item)
        case "U":
            return isinstance(found, str) and found.rstrip("\0") == str(item)
        case "V":
            return found == list(bytes(item))
        case "m":
            return found == ("NaT" if np.isnat(item) else int(item.view("i8")))
        case "M":
            return same_time(found, item, dtype)
    raise NotImplementedError(dtype)


def same_float(found, item):
    size = item.dtype.itemsize
    bits = int(item.view(f"u{size}"))
    if isinstance(found, str):
        if found.startswith("0x"):
            return np.isnan(item) and len(found) == 2 + 2 * size and int(found, 16) == bits
        usual = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}
        return found in usual and int(item.dtype.type(usual[found]).view(f"u{size}")) == bits
    if type(found) not in (int, float):
        return False
    with np.errstate(over="ignore"):
        return int(item.dtype.type(found).view(f"u{size}")) == bits


def same_bfloat16(found, bits):
    """The upper half of a float32, to which numbers are rounded half to even."""
    if isinstance(found, str) and found.startswith("0x"):
        return len(found) == 6 and int(found, 16) == bits
    item = np.array(bits << 16, "u4").view("f4")[()]
    if isinstance(found, str):
        return same_float(found, item)
    near = int(np.float32(found).view("u4"))
    return type(found) in (int, float) and (near + 0x7FFF + (near >> 16 & 1)) >> 16 == bits


def same_time(found, item, dtype):
    unit, _ = np.datetime_data(dtype)
    if unit == "generic" and not np.isnat(item):
        return type(found) is int and found == int(item.view("i8"))
    if not isinstance(found, str):
        return False
    if np.isnat(item) or found == "NaT":
        return bool(np.isnat(item)) and found == "NaT"
    try:
        return np.datetime64(found.removesuffix("Z"), unit).astype(dtype).view("i8") == item.view("i8")
    except ValueError:
        return False


def excerpt(array):
    return repr(array.ravel()[:4].tolist())[:80]
