"""Ways to spoil a file's bytes."""
import json
import re
import struct

NUMBERS = [b"0", b"1", b"-1", b"2147483647", b"2147483648", b"4294967295", b"9223372036854775807", b"18446744073709551616", b"1e308",
           b"1e999", b"-0", b"0x10", b"nan", b"inf", b"1.5", b"00", b"1e-400", b"", b" ", b"999999999999999999999999999999"]
FIELDS = [0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 40, (1 << 63) - 1, 1 << 63,
          (1 << 64) - 1]


def span(random, data, longest=64):
    begin = random.randrange(len(data) + 1)
    return begin, min(len(data), begin + random.randint(0, longest))


def flip(random, data):
    data = bytearray(data)
    for _ in range(random.choice([1, 1, 2, 8])):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return bytes(data)


def truncate(random, data):
    return data[:random.randrange(len(data))]


def extend(random, data):
    return data + random.choice([b"\0", b"\n", b"x", random.randbytes(100), bytes(5000), data])


def splice(random, data):
    begin, end = span(random, data)
    source = span(random, data)
    return data[:begin] + random.choice([b"", data[slice(*source)], data[begin:end] * 2]) + data[end:]


def noise(random, data):
    begin, end = span(random, data)
    return data[:begin] + random.randbytes(end - begin) + data[end:]


def field(random, data):
    """A number of a head, or anywhere, replaced."""
    size = random.choice([2, 4, 4, 8])
    near = min(len(data), 64) if random.random() < 0.7 else len(data)
    at = random.randrange(max(1, near // size)) * size
    value = random.choice(FIELDS) & ((1 << 8 * size) - 1)
    return data[:at] + struct.pack("<Q", value)[:size] + data[at + size:]


def swap(random, data):
    """Two fields or two lines exchanged."""
    lines = data.split(b"\n")
    if b"\0" not in data and len(lines) > 2:
        i, j = random.sample(range(len(lines)), 2)
        lines[i], lines[j] = lines[j], lines[i]
        return b"\n".join(lines)
    i, j = (random.randrange(max(1, min(len(data), 256) // 4)) * 4 for _ in "ij")
    one, other = data[i:i + 4], data[j:j + 4]
    data = bytearray(data)
    data[i:i + len(other)], data[j:j + len(one)] = other, one
    return bytes(data)


def number(random, data):
    """A number of a text replaced."""
    found = [match.span() for match in re.finditer(rb"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)?", data)]
    if not found:
        return field(random, data)
    begin, end = random.choice(found)
    return data[:begin] + random.choice(NUMBERS) + data[end:]


def word(random, data):
    """A word of a text replaced by another of it."""
    found = [match.span() for match in re.finditer(rb"\w+|[^\w\s]", data[:20000])]
    if len(found) < 2:
        return noise(random, data)
    (begin, end), other = random.choice(found), random.choice(found)
    return data[:begin] + data[slice(*other)] + data[end:]


def line(random, data):
    """A line left out or doubled."""
    lines = data.split(b"\n")
    i = random.randrange(len(lines))
    return b"\n".join(lines[:i] + random.choice([[], [lines[i]] * 2]) + lines[i + 1:])


def whole(random, data):
    """Another file altogether."""
    try:
        wide = data.decode().encode("utf-16")
    except UnicodeDecodeError:
        wide = data[::-1]
    return random.choice([b"", bytes(len(data)), b"\xff" * 40, wide, b"\xef\xbb\xbf" + data, data.replace(b"\n", b"\r\n"),
                          random.randbytes(200), b"[" * 5000, b'{"a":' * 3000, json.dumps({"a": [1, None]}).encode(), b"\n" * 70000])


BYTES = [flip, truncate, extend, splice, noise, field, field, swap, whole]
TEXTS = [flip, truncate, extend, splice, noise, swap, line, whole, number, number, number, word, word, word]


def mutate(random, data):
    """`data` spoilt once or a few times."""
    ways = BYTES if b"\0" in data else TEXTS
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        if data:
            data = random.choice(ways)(random, data)
    return data
