"""The bytes of crates/codec/src/codecs/golden.rs: what numcodecs makes of two contents."""

import json
import re

import numcodecs
import numpy as np

ROW = re.compile(r'\(\s*"(\w+)",\s*r#"(.*?)"#,\s*Content::(\w+),\s*"([0-9a-f]*)",?\s*\)', re.S)
# With threads, blosc puts its blocks into any order.
numcodecs.blosc.use_threads = False
CONTENTS = {
    "Short": np.arange(24, dtype="u1"),
    "Long": np.repeat(np.arange(11, dtype="<i4") * 1000, 25),
}


def row(match):
    id, configuration, content, before = match.groups()
    try:
        codec = numcodecs.get_codec({"id": id, **json.loads(configuration)})
    except (numcodecs.errors.UnknownCodecError, TypeError) as error:
        if numcodecs.__version__ >= "0.17":
            raise
        # numcodecs 0.15 has neither all of the codecs nor all of their options.
        print(f"numcodecs {numcodecs.__version__} has no {id} {configuration}: {error}")
        return match[0]
    encoded = np.asarray(codec.encode(CONTENTS[content]), order="C").tobytes()
    if id == "gzip":
        # The header has the time.
        encoded = encoded[:4] + bytes.fromhex(before)[4:8] + encoded[8:]
    return match[0].replace(f'"{before}"', f'"{encoded.hex()}"')


def made(text):
    """The file with its bytes made anew, and how many rows have been."""
    return ROW.subn(row, text)
