"""Numbers that the C side makes again from the same definitions, so that no weights are stored.

`fill` serves the stored gradients: a hash of the tensor's path and of the element's index. The rest
mirrors runtime/base (Philox4x32-10 streams) for the loss curve; `check` holds the known answers of
the generator's authors (Salmon et al. 2011, file kat_vectors of Random123)."""
import numpy as np

MASK = (1 << 64) - 1
FNV_START, FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


def fnv1a(text, value=FNV_START):
    for byte in text.encode():
        value = ((value ^ byte) * FNV_PRIME) & MASK
    return value


def splitmix64(x):
    """x: uint64 array."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def hashed(text, count):
    """`count` numbers in [-1, 1): element i depends on (text, i) only."""
    with np.errstate(over="ignore"):
        bits = splitmix64(np.uint64(fnv1a(text)) + np.arange(count, dtype=np.uint64))
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0


def fill(path, salt, shape, init):
    """First value of a parameter, float64: around 1 for gains, around 0 for everything else."""
    u = hashed(f"{path}#{salt}", int(np.prod(shape))).reshape(shape)
    return {"ones": 1.0 + 0.25 * u, "zeros": 0.25 * u, "normal": 0.45 * u}[init]


def philox4x32(counter, key):
    """counter: uint64 array [n, 4] of 32-bit words; key: two words. Returns the same shape."""
    c = [counter[:, i].astype(np.uint64) for i in range(4)]
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    k0, k1 = key
    for _ in range(10):
        p0 = np.uint64(0xD2511F53) * c[0]
        p1 = np.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> shift) ^ c[1] ^ np.uint64(k0), p1 & low,
             (p0 >> shift) ^ c[3] ^ np.uint64(k1), p0 & low]
        k0 = (k0 + 0x9E3779B9) & 0xFFFFFFFF
        k1 = (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c, axis=1)


def stream_words(seed, purpose, name, index):
    """The four words of every index of a stream: runtime/base/random.c, `words`."""
    end = lambda value: ((value ^ 0xFF) * FNV_PRIME) & MASK
    stream = end(fnv1a(name, end(fnv1a(purpose))))
    index = np.asarray(index, dtype=np.uint64)
    counter = np.stack([index & np.uint64(0xFFFFFFFF), index >> np.uint64(32),
                        np.full_like(index, stream & 0xFFFFFFFF), np.full_like(index, stream >> 32)],
                       axis=1)
    return philox4x32(counter, (seed & 0xFFFFFFFF, seed >> 32))


def draw_below(seed, purpose, name, index, count):
    """hrt_draw_below: the high word of a 128-bit product, in Python's integers."""
    words = stream_words(seed, purpose, name, [index])[0]
    bits = int(words[1]) << 32 | int(words[0])
    return (bits * count) >> 64


def draw_normals(seed, purpose, name, count):
    """hrt_draw_normals of the first `count` elements."""
    words = stream_words(seed, purpose, name, np.arange((count + 3) // 4)).astype(np.float64)
    normal = np.empty_like(words)
    for pair in (0, 2):
        radius = np.sqrt(-2 * np.log((words[:, pair] + 1) * 2.0**-32))
        angle = 2 * np.pi * words[:, pair + 1] * 2.0**-32
        normal[:, pair], normal[:, pair + 1] = radius * np.cos(angle), radius * np.sin(angle)
    return normal.reshape(-1)[:count]


def check():
    known = [([0] * 4, (0, 0), [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
             ([0xFFFFFFFF] * 4, (0xFFFFFFFF, 0xFFFFFFFF),
              [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
             ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], (0xA4093822, 0x299F31D0),
              [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1])]
    for counter, key, expected in known:
        got = philox4x32(np.array([counter], dtype=np.uint64), key)[0].tolist()
        assert got == expected, (counter, key, got)
    assert splitmix64(np.array([0], dtype=np.uint64))[0] == 0xE220A8397B1DCDAF
    assert fnv1a("a") == 0xAF63DC4C8601EC8C


check()
