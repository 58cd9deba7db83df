"""The step journal of a run by its format alone: XXH64, reading and sealing of lines of 64 bytes."""
import struct

MASK = (1 << 64) - 1
P1, P2, P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P4, P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
WIDTH = 64


def rotate(number, bits):
    return (number << bits | number >> (64 - bits)) & MASK


def mix(lane, value):
    return rotate((lane + value * P2) & MASK, 31) * P1 & MASK


def xxh64(data, seed=0):
    place, size = 0, len(data)
    if size >= 32:
        lanes = [(seed + P1 + P2) & MASK, (seed + P2) & MASK, seed, (seed - P1) & MASK]
        while place + 32 <= size:
            lanes = [mix(lane, value) for lane, value in zip(lanes, struct.unpack_from("<4Q", data, place))]
            place += 32
        total = sum(rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18))) & MASK
        for lane in lanes:
            total = ((total ^ mix(0, lane)) * P1 + P4) & MASK
    else:
        total = (seed + P5) & MASK
    total = (total + size) & MASK
    for _ in range((size - place) // 8):
        total = (rotate(total ^ mix(0, struct.unpack_from("<Q", data, place)[0]), 27) * P1 + P4) & MASK
        place += 8
    if size - place >= 4:
        total = (rotate(total ^ struct.unpack_from("<I", data, place)[0] * P1 & MASK, 23) * P2 + P3) & MASK
        place += 4
    for byte in data[place:]:
        total = rotate(total ^ byte * P5 & MASK, 11) * P1 & MASK
    for shift, prime in ((33, P2), (29, P3)):
        total = (total ^ total >> shift) * prime & MASK
    return total ^ total >> 32


def seal(body, seed):
    """A line from its first 47 bytes, and its hash."""
    number = xxh64(body, seed)
    return body + f"{number:016x}\n".encode(), number


def read_lines(data):
    """The first 47 bytes of each line; every line is checked."""
    bodies, seed = [], 0
    for place in range(0, len(data), WIDTH):
        line = data[place:place + WIDTH]
        body = line[:47]
        sealed, seed = seal(body, seed)
        if sealed != line:
            raise ValueError(f"line {place // WIDTH + 1} does not hold: {line!r}")
        bodies.append(body)
    return bodies


def write_lines(bodies):
    data, seed = b"", 0
    for body in bodies:
        line, seed = seal(body, seed)
        data += line
    return data


def words_of(body):
    """Step, first and second of a line behind the first one: (8, "weights", "0123456789abcdef")."""
    step, first, second = body.decode().split()
    return int(step), first, second


assert xxh64(b"") == 0xEF46DB3751D8E999 and xxh64(b"a") == 0xD24EC4F1A98C6E5B
