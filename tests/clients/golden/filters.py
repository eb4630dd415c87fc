"""The checksums of crates/codec/tests/numcodecs: of 512 elements encoded by numcodecs."""

import json
import re
import zlib

import numcodecs
import numpy as np

ELEMENTS = 512
ROW = re.compile(r'^    \("(\w+)", r#"(.*)"#, "(\w+)", (Little|Big), "(\w+)", (Bits|Mild), (.+), (.+), (.+)\),$', re.M)


def random(length):
    state, found = 1, bytearray()
    for _ in range(length):
        state = (state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % 2**64
        found.append(state >> 56)
    return np.frombuffer(bytes(found), "u1")


RANDOM = random(16 * ELEMENTS)


def elements(name, kind):
    """The elements of the Rust test, little-endian."""
    dtype = np.dtype(name).newbyteorder("<")
    if dtype.kind == "b":
        return (RANDOM[:ELEMENTS] & 1).view(dtype)
    if kind == "Bits":
        return RANDOM[: ELEMENTS * dtype.itemsize].view(dtype)
    if dtype.kind == "c":
        parts = (RANDOM[: 2 * ELEMENTS].astype("f8") - 100) / 4
        return parts.astype(f"<f{dtype.itemsize // 2}").view(dtype)
    mild = RANDOM[:ELEMENTS].astype("i8")
    match dtype.kind:
        case "u":
            return (mild // 4).astype(dtype)
        case "i":
            return (mild // 4 - 30).astype(dtype)
    return ((mild - 100) / 4).astype(dtype)


def in_order(array, order):
    return array.astype(array.dtype.newbyteorder(">" if order == "Big" else "<"))


def checksum(data):
    return f"Some(0x{zlib.crc32(np.ascontiguousarray(data).tobytes()):08x})"


def decoded(codec, data, dtype, order):
    """The decoded elements, little-endian."""
    found = np.asarray(codec.decode(data))
    stored = dtype.newbyteorder(">" if order == "Big" else "<")
    found = np.frombuffer(found.tobytes(), stored) if found.dtype != stored else found
    return found.astype(dtype.newbyteorder("<"))


def row(match):
    """The row with the checksums of numcodecs; a column without one has a platform-dependent result, or none."""
    id, configuration, data_type, order, encoded_type, kind, encoded, again, wild = match.groups()
    codec = numcodecs.get_codec({"id": id, **json.loads(configuration)})
    given = elements(data_type, kind)
    if encoded != "None":
        data = np.ascontiguousarray(codec.encode(in_order(given, order))).tobytes()
        encoded, again = checksum(np.frombuffer(data, "u1")), checksum(decoded(codec, data, given.dtype, order))
    if wild != "None":
        # The test reverses the bytes of each element, so that the parts of complex numbers are exchanged.
        words = elements(encoded_type, kind).view("u1").reshape(ELEMENTS, -1)
        data = (words[:, ::-1] if order == "Big" else words).tobytes()
        wild = checksum(decoded(codec, data, given.dtype, order))
    return f'    ("{id}", r#"{configuration}"#, "{data_type}", {order}, "{encoded_type}", {kind}, {encoded}, {again}, {wild}),'


def regenerated(text):
    """The file with regenerated checksums, and the number of regenerated rows."""
    with np.errstate(all="ignore"):
        return ROW.subn(row, text)
