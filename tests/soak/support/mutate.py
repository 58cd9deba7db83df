"""Draws a damaged version of a file's bytes: bits, spans, lines, numbers and parts of JSON documents, one to four at once."""
import json
import re

NUMBERS = ["0", "-1", "1", "2", "7", "255", "65536", "1000000", "2147483647", "2147483648", "4294967296", "9007199254740992",
           "9223372036854775807", "9223372036854775808", "18446744073709551616", "1e9", "1e308", "1e400", "-0.0", "0.5", "1e-320",
           "NaN", "Infinity", "00", "0x10", "1_000", "9" * 400]
PIECES = [b"", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\x1b[31m", b"\xc3", b"\r\n", b"\n\n", b",", b'"', b"{", b"}", b"[[[[[[[[",
          b"null", b"true", b"-", b":", b"%s%n", b"../../x", b"\\u0000", b"\\ud800", b"A" * 5000, b"[" * 5000]
VALUES = [None, True, False, 0, -1, 1, 2, 3, 0.5, 1e300, 2**31, 2**53, 2**53 + 1, 2**63, -2**63, 2**64, "", "x", "\x00", "\x1b[7m",
          "a" * 3000, [], {}, [[]], [0], {"x": 1}]
NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def mutate(data, random, others):
    """`others` are bytes of other files, to splice with."""
    for _ in range(random.choice([1, 1, 1, 2, 3, 4])):
        data = random.choice(MUTATIONS)(data, random, others)
    return data


def flip_bit(data, random, _):
    if not data:
        return data
    bit = random.randrange(8 * len(data))
    return data[:bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1:]


def draw_span(data, random, most=64):
    begin = random.randrange(len(data) + 1)
    return begin, min(len(data), begin + random.randrange(most))


def cut_span(data, random, _):
    begin, end = draw_span(data, random)
    return data[:begin] + data[end:]


def copy_span(data, random, _):
    begin, end = draw_span(data, random, 200)
    place = random.randrange(len(data) + 1)
    return data[:place] + data[begin:end] + data[place:]


def put_piece(data, random, _):
    place = random.randrange(len(data) + 1)
    return data[:place] + random.choice(PIECES) + data[place:]


def truncate(data, random, _):
    return data[:random.randrange(len(data) + 1)]


def splice(data, random, others):
    other = random.choice(others)
    return data[:random.randrange(len(data) + 1)] + other[random.randrange(len(other) + 1):]


def change_number(data, random, _):
    places = list(NUMBER.finditer(data))
    if not places:
        return data
    place = random.choice(places)
    drawn = random.choice([random.choice(NUMBERS), str(random.randrange(100)), place[0].decode() + random.choice("0159.e-")])
    return data[:place.start()] + drawn.encode() + data[place.end():]


def change_lines(data, random, _):
    lines = data.split(b"\n")
    first, second = random.randrange(len(lines)), random.randrange(len(lines))
    kind = random.randrange(3)
    if kind == 0:
        lines[first], lines[second] = lines[second], lines[first]
    elif kind == 1:
        lines.insert(first, lines[second])
    else:
        del lines[first]
    return b"\n".join(lines)


def list_places(value, place=()):
    """Paths of all members and elements."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield (*place, key)
        yield from list_places(child, (*place, key))


def change_json(data, random, _):
    """One part of a document, or of one line where each line is a document."""
    lines = [data] if data.lstrip()[:1] in (b"{", b"[") and data.count(b"\n{") < 2 else data.split(b"\n")
    number = random.randrange(len(lines))
    try:
        document = json.loads(lines[number])
        places = list(list_places(document))
    except (ValueError, RecursionError):
        return data
    if not places:
        return data
    place = random.choice(places)
    owner = document
    for key in place[:-1]:
        owner = owner[key]
    change_member(owner, place[-1], random, document)
    lines[number] = json.dumps(document).encode()
    return b"\n".join(lines)


def change_member(owner, key, random, document):
    kind = random.randrange(4)
    if kind == 0:
        del owner[key]
    elif kind == 1 and isinstance(owner, list):
        owner[key:key] = [owner[key]] * random.choice([1, 2, 50])
    elif kind == 2:
        *holders, last = random.choice(list(list_places(document)))
        value = document
        for holder in [*holders, last]:
            value = value[holder]
        owner[key] = json.loads(json.dumps(value))
    else:
        owner[key] = random.choice(VALUES)


MUTATIONS = [flip_bit, cut_span, copy_span, put_piece, truncate, splice, change_number, change_number, change_lines, change_json,
             change_json, change_json]
