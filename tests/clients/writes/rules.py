"""The reasons why a library, or a dialect, does not support some arrays: rules on the metadata, each with the text of
the expected error.

An array to which a rule applies must be rejected with that text, and other arrays must not be rejected; `reason`
returns the rule.
"""

import json
import re

import numpy as np

NUMBERS = {"bool", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"} | {f"{kind}int{bits}" for kind in ("", "u") for bits in (8, 16, 32, 64)}


class Wrong(Exception):
    """A rejection that no rule explains, or a missing rejection."""


def reason(rules, document, error):
    """The reason why an array with this document is rejected, given the error, or `None` if it was accepted; `None`
    if no rule applies.
    """
    text, why = None, None
    for why, text in rules(document):
        break
    if error is None and why is not None:
        raise Wrong(f"it was not rejected, though: {why}")
    if error is not None and (why is None or not re.search(text, error, re.S)):
        raise Wrong(f"rejected{f', but not with {text!r} since: {why}' if why else ''}: {error[:400]}")
    return why


def name(extension):
    return extension if isinstance(extension, str) else extension["name"]


def configuration(extension):
    return {} if isinstance(extension, str) else extension.get("configuration") or {}


def chain(document):
    """All codecs of a v3 document, including those within shards."""
    found = []
    for codec in document["codecs"]:
        found += [codec, *chain(configuration(codec))] if name(codec) == "sharding_indexed" else [codec]
    return found


def tensorstore(document):
    """Arrays that tensorstore does not read."""
    return tensorstore_v3(document) if document["zarr_format"] == 3 else tensorstore_v2(document)


def tensorstore_v3(document):
    data_type = name(document["data_type"])
    if data_type == "struct":
        yield "data type struct", '"data_type": Error parsing value at position .*Nested struct types and extension data types with configuration'
    if re.fullmatch(r"r\d+", data_type):
        yield "fill value of raw bits as numbers", '"fill_value": Expected base64-encoded string for raw_bytes fill_value'
    if data_type not in NUMBERS and data_type != "raw_bytes":
        yield f"data type {data_type}", f'"data_type": {data_type} data type is not one of the supported data types'
    if name(document["chunk_grid"]) != "regular":
        yield "chunk grid rectilinear", '"chunk_grid": .*Expected "regular", but received: "rectilinear"'
    for codec in chain(document):
        if name(codec).startswith("numcodecs.") or name(codec) == "scale_offset":
            yield f"codec {name(codec)}", f'"codecs": .*"{name(codec)}" is not registered'
    names = [name(codec) for codec in document["codecs"]]
    if "sharding_indexed" in names[:-1]:
        yield "shards that are compressed as a whole", "sharding_indexed"
    if data_type == "raw_bytes":
        yield "bytes come out of it without any bytes", "come out of it as elements without any bytes"


def tensorstore_v2(document):
    dtype, fill = document["dtype"], document["fill_value"]
    fields = dtype if isinstance(dtype, list) else [["", dtype]]
    for _, type, *_ in fields:
        if not isinstance(type, str):
            yield "structs in structs", '"dtype": Error parsing value at position .*Expected string'
            return
        if type[1] not in "biufcSV":
            yield f"data type {type[1]}", f'"dtype": .*Unsupported zarr dtype: "{re.escape(type.split("[")[0])}'
    compressor = document["compressor"] or {"id": None}
    if compressor["id"] in ("lzma", "lz4"):
        yield f"compressor {compressor['id']}", f'"compressor": .*"{compressor["id"]}" is not registered'
    if compressor["id"] == "zstd" and "checksum" in compressor:
        yield "checksum of zstd", '"compressor": Object includes extra members: "checksum"'
    if isinstance(dtype, str) and dtype[1] == "b" and fill is not None and not isinstance(fill, bool):
        yield "fill value 1 of a boolean", '"fill_value": Expected boolean, but received: 1'
    if isinstance(dtype, str) and dtype[1] == "S" and fill is not None and len(fill) != 4 * -(-int(dtype[2:]) // 3):
        yield "fill value shorter than its type", f'"fill_value": Expected {dtype[2:]} base64-encoded bytes'
    if document["filters"]:
        yield "filters", '"filters": filters are not supported'
    if isinstance(dtype, list):
        yield "structs without a field's name", 'Must specify a "field"'
    if dtype[1] in "SV":
        yield "bytes come out of it without any bytes", "come out of it as elements without any bytes"


def zarr_python_3(document):
    """Arrays that zarr-python 3 does not read."""
    if document["zarr_format"] == 2:
        return
    data_type = name(document["data_type"])
    if re.fullmatch(r"r\d+", data_type):
        yield "raw bits by the name of the specification", f"No Zarr data type found that matches '{data_type}'"
    for codec in chain(document):
        if name(codec) == "numcodecs.delta" and "m8" in configuration(codec).get("astype", configuration(codec)["dtype"]):
            yield "sums of times that are no times", "Overflow in timedelta64 [+] timedelta64 addition"


def changed_nan(document):
    """The reason why zarr-python 3 changes a NaN: it converts hexadecimal digits through Python's floats, which
    preserve neither all payloads of float16 nor signaling NaN.
    """
    fill = str(document["fill_value"])
    if document["zarr_format"] == 3 and fill.startswith("0x"):
        if name(document["data_type"]) == "float16" and int(fill, 16) & 0x7C00 == 0x7C00 and int(fill, 16) & 0x1FF:
            yield "payload of a NaN of float16", ""
        if name(document["data_type"]) == "float32" and int(fill, 16) & 0x7FC00000 == 0x7F800000 and int(fill, 16) & 0x3FFFFF:
            yield "NaN that signals", ""


def zarr_python_2(document):
    """Arrays that zarr-python 2 does not read, none of them v2; for the draft, `document` is that of the draft."""
    if "data_type" in document and re.search(r"8\[\d+", str(document["data_type"])):
        yield "times whose unit has a multiplier", "Unsupported dtype: .*(timedelta64|datetime64|[Mm]8)"


def converted(document):
    """v2 arrays without registered v3 names, which can be neither converted to v3 nor represented in the draft's
    model.
    """
    dtype = document["dtype"]
    orders = set(re.findall(r"[<>]", json.dumps(dtype)))
    if isinstance(dtype, list) and len(orders) == 2 and "subarray" not in kinds(dtype):
        yield "fields of both byte orders", "/(data_|d)type has fields of both byte orders"
    if "subarray" in kinds(dtype):
        yield "fields that are arrays", "/(data_|d)type is struct.*, for which v3 has no registered data type"
    for codec in document["filters"] or []:
        match codec["id"]:
            case "packbits" if dtype != "|b1":
                yield "packbits of what is no boolean", "/(attributes/)?filters/0 is for bool, and given"
            case "quantize" if np.dtype(codec.get("astype") or codec["dtype"]).name != np.dtype(codec["dtype"]).name:
                yield "quantize with an astype", "/(attributes/)?filters/0 has an astype, which zarr-python does not read in v3"
            case "categorize":
                yield "categorize", "/(attributes/)?filters/0 is the codec categorize, for which v3 has no name"
            case "vlen-array":
                yield "elements that are arrays", "/(data_|d)type is vlen_array.*, for which v3 has no registered data type"
            case "json2":
                yield "elements that are JSON", "/(data_|d)type is json, for which v3 has no registered data type"


def kinds(dtype):
    if isinstance(dtype, str):
        return {"text"}
    found = {"struct"}
    for _, type, *shape in dtype:
        found |= kinds(type) | ({"subarray"} if shape else set())
    return found


def none(document):
    """No array."""
    return iter(())
