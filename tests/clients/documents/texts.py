"""JSON as text: the positions of its parts, and other spellings of the same values.

It shares no code with the server. Values retain their text, down to each string and number.
"""

import json
import math
import re

SPACE = re.compile(r"[ \t\r\n]*")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.S)
WORD = re.compile(r"[^\[\]{}\",: \t\r\n]+")
MARK = "\ufeff"


class Value:
    """A value with its position in the text. `members` are (name, start of the name, value); `raw` is the text of a
    scalar.
    """

    def __init__(self, kind, begin):
        self.kind, self.begin, self.end, self.raw, self.members, self.items = kind, begin, None, None, [], []

    def child(self, name):
        return next((value for found, _, value in reversed(self.members) if plain(found) == name), None)

    def at(self, path):
        value = self
        for name in path:
            value = value and value.child(name)
        return value

    def tokens(self):
        """The text of each token in order."""
        if self.kind == "object":
            return ["{", *(token for name, _, value in self.members for token in [name, *value.tokens()]), "}"]
        if self.kind == "array":
            return ["[", *(token for value in self.items for token in value.tokens()), "]"]
        return [self.raw]


def plain(name):
    """A name without escapes, except those of lone surrogates."""
    return json.loads(name)


def skip(text, at):
    return SPACE.match(text, at).end()


def parse(text):
    """Parses a text."""
    begin = skip(text, 1 if text.startswith(MARK) else 0)
    value = parse_value(text, begin)
    assert skip(text, value.end) == len(text), text[value.end :]
    return value


def parse_value(text, at):
    if text[at] == "{":
        value = Value("object", at)
        at = skip(text, at + 1)
        while text[at] != "}":
            name = STRING.match(text, at)
            colon = skip(text, name.end())
            assert text[colon] == ":", text[at:]
            member = parse_value(text, skip(text, colon + 1))
            value.members.append((name[0], at, member))
            at = next_part(text, member.end, "}")
    elif text[at] == "[":
        value = Value("array", at)
        at = skip(text, at + 1)
        while text[at] != "]":
            value.items.append(parse_value(text, at))
            at = next_part(text, value.items[-1].end, "]")
    else:
        value = Value("scalar", at)
        value.raw = (STRING if text[at] == '"' else WORD).match(text, at)[0]
        at += len(value.raw) - 1
    value.end = at + 1
    return value


def next_part(text, at, closing):
    at = skip(text, at)
    if text[at] == ",":
        return skip(text, at + 1)
    assert text[at] == closing, text[at:]
    return at


def without(text, cuts):
    """The text with spans replaced."""
    for begin, end, instead in sorted(cuts, reverse=True):
        text = text[:begin] + instead + text[end:]
    return text


def cut_member(text, path):
    """The spans of all members with a name, each including its comma."""
    above = parse(text).at(path[:-1])
    if above is None:
        return []
    gone = [plain(name) == path[-1] for name, _, _ in above.members]
    if all(gone):
        return [(above.begin + 1, above.end - 1, "")]
    cuts, retained = [], False
    for index, goes in enumerate(gone):
        _, begin, value = above.members[index]
        if not goes:
            retained = True
        elif retained:
            cuts.append((above.members[index - 1][2].end, value.end, ""))
        else:
            cuts.append((begin, above.members[index + 1][1], ""))
    return cuts


def difference(before, after, path):
    """The spans of two texts that a change of the value at a path may affect: the value if both have it, otherwise
    the first member on the path that one of them lacks.
    """
    values = [parse(before), parse(after)]
    for length, name in enumerate(path, 1):
        values = [value.child(name) if value.kind == "object" else None for value in values]
        if None in values:
            return [cut_member(text, path[:length]) for text in (before, after)]
    return [[(value.begin, value.end, "\0")] for value in values]


def first_difference(before, after):
    """The first difference of two texts."""
    at = next((at for at, pair in enumerate(zip(before, after)) if pair[0] != pair[1]), min(len(before), len(after)))
    return f"at {at}, {before[max(0, at - 60) : at + 60]!r} became {after[max(0, at - 60) : at + 60]!r}"


def meaning(value):
    """The value as any reader interprets it: the last of equal names counts, and integers retain all digits."""
    if value.kind == "object":
        return ("object", frozenset({plain(name): meaning(inner) for name, _, inner in value.members}.items()))
    if value.kind == "array":
        return ("array", tuple(map(meaning, value.items)))
    if value.raw.startswith('"'):
        return ("string", json.loads(value.raw))
    is_float = re.fullmatch("-?[0-9].*[.eE].*", value.raw) and math.isfinite(float(value.raw))
    return ("float", repr(float(value.raw))) if is_float else ("word", value.raw)


def patched(before, patch):
    """The value after a merge patch without null."""
    if patch[0] != "object":
        return patch
    members = dict(before[1]) if before and before[0] == "object" else {}
    for name, inner in patch[1]:
        members[name] = patched(members.get(name), inner)
    return ("object", frozenset(members.items()))


def has_null(value):
    """True if a merge patch of the value would remove a member."""
    return value.raw == "null" or any(has_null(inner) for _, _, inner in value.members) if value.kind != "array" else False


class Style:
    """A spelling: the text between the parts of values."""

    def __init__(self, rng):
        self.rng = rng
        self.line = rng.choice(["\n", "\n", "\r\n"])
        self.indent = rng.choice([None, None, " ", "  ", "    ", "\t"])
        self.comma, self.colon = rng.choice([(",", ":"), (", ", ": "), (" , ", " : "), (",", ": ")])
        self.is_odd = rng.random() < 0.15
        self.before = rng.choice(["", "", "", MARK, "\n", MARK + " "])
        self.after = rng.choice(["", "", "\n", "\r\n", " \n\t"])

    def odd(self):
        return "".join(self.rng.choice(" \t\n\r") for _ in range(self.rng.randrange(3)))

    def document(self, value):
        return self.before + self.text(value, 0) + self.after

    def text(self, value, level):
        if value.kind == "scalar":
            return value.raw
        opening, closing = "{}" if value.kind == "object" else "[]"
        if value.kind == "object":
            colon = lambda: self.odd() + ":" + self.odd() if self.is_odd else self.colon
            parts = [name + colon() + self.text(inner, level + 1) for name, _, inner in value.members]
        else:
            parts = [self.text(inner, level + 1) for inner in value.items]
        if not parts:
            return opening + closing
        if self.is_odd:
            return opening + self.odd() + (self.odd() + "," + self.odd()).join(parts) + self.odd() + closing
        if self.indent is None:
            return opening + self.comma.join(parts) + closing
        line = self.line + self.indent * level
        return opening + line + self.indent + ("," + line + self.indent).join(parts) + line + closing


RAW = [
    "1e400", "-0.0", "1.0", "1", "1E5", "1.50e+3", "123456789012345678901234567890", "NaN", "-Infinity", r'"\u00e9"', r'"\/"', r'"\ud800"', r'"\udc00x"',
    '[1,2 ,  3.0]', '{"b":1 , "a" : {"c":NaN}}', '{"n":1,"n":2}', r'"\u0041\t"', "[]", "{}", "-0", "0.10000000000000000001",
]


def respelled(string, rng):
    """A string with other escapes."""
    if re.search(r"\\u[dD][89a-fA-F]", string):
        return string
    spell = lambda char: f"\\u{ord(char):04x}" if rng.random() < 0.2 and ord(char) < 0x10000 else json.dumps(char)[1:-1]
    return '"' + "".join("\\/" if char == "/" and rng.random() < 0.5 else spell(char) for char in json.loads(string)) + '"'
