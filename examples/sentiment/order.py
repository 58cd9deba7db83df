"""The order in which Frazil goes through the training samples, for loops elsewhere that are to be compared with it.

A Fisher-Yates shuffle by the generators of the C++ standard: std::mt19937_64, which std::seed_seq starts with the two halves of the seed and the
epoch.
"""

HALF, WORD = 2**32 - 1, 2**64 - 1
SIZE, BEHIND = 312, 156  # of mt19937_64: its state, and what is mixed in
STARTED = (SIZE * 2, 11)  # words of 32 bits that start it, and the distance at which seed_seq mixes so many


def epoch_order(samples, seed, epoch):
    """The numbers of the samples in the order of an epoch, from 0."""
    draws = _draw([seed & HALF, seed >> 32, epoch])
    order = list(range(samples))
    for left in range(samples, 1, -1):
        excess = 2**64 % left
        drawn = next(draws)
        while drawn > WORD - excess:  # so that no remainder is favoured
            drawn = next(draws)
        order[left - 1], order[drawn % left] = order[drawn % left], order[left - 1]
    return order


def _draw(words):
    """The numbers of std::mt19937_64, one by one."""
    halves = _spread(words)
    state = [low | high << 32 for low, high in zip(halves[::2], halves[1::2])]
    while True:
        for at in range(SIZE):
            mixed = state[at] >> 31 << 31 | state[(at + 1) % SIZE] & (2**31 - 1)
            state[at] = state[(at + BEHIND) % SIZE] ^ mixed >> 1 ^ (0xB5026F5AA96619E9 if mixed & 1 else 0)
        yield from map(_temper, state[:])


def _temper(x):
    x ^= x >> 29 & 0x5555555555555555
    x ^= x << 17 & 0x71D67FFFEDA60000
    x ^= x << 37 & 0xFFF7EEE000000000
    return x ^ x >> 43


def _spread(words):
    """std::seed_seq::generate: 624 words made of these."""
    n, t = STARTED
    p = (n - t) // 2
    q, s = p + t, len(words)
    made = [0x8B8B8B8B] * n
    for k in range(n):
        added = s if k == 0 else k + words[k - 1] if k <= s else k
        first = 1664525 * _fold(made[k] ^ made[(k + p) % n] ^ made[k - 1]) & HALF
        second = first + added & HALF
        made[(k + p) % n] = made[(k + p) % n] + first & HALF
        made[(k + q) % n] = made[(k + q) % n] + second & HALF
        made[k] = second
    for k in range(n):
        first = 1566083941 * _fold(made[k] + made[(k + p) % n] + made[k - 1] & HALF) & HALF
        second = first - k & HALF
        made[(k + p) % n] ^= first
        made[(k + q) % n] ^= second
        made[k] = second
    return made


def _fold(x):
    return x ^ x >> 27
