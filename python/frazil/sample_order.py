"""`sample_order`: in which order training takes the samples of an epoch, so that a loop of one's own can take the same."""

WORD = 2**32 - 1
WIDE = 2**64 - 1
STATE = 312  # words of the Mersenne Twister of 64 bits (Matsumoto, Nishimura 2004)
AHEAD = 156
UPPER = WIDE ^ (2**31 - 1)


def sample_order(samples: int, seed: int, epoch: int) -> list:
    """The numbers of the training samples in the order of this epoch, from 0 on, of a run with this seed.

    A step takes the next `batch_size` of them, and cuts these into micro-batches from the front.
    """
    engine = _Twister(_spread([seed & WORD, (seed >> 32) & WORD, epoch & WORD], 2 * STATE))
    order = list(range(samples))
    for left in range(samples, 1, -1):
        other = engine.below(left)
        order[left - 1], order[other] = order[other], order[left - 1]
    return order


def _spread(seeds: list, count: int) -> list:
    """The words of C++'s std::seed_seq (ISO/IEC 14882, [rand.util.seedseq])."""
    words = [0x8B8B8B8B] * count
    skip = 11 if count >= 623 else 7 if count >= 68 else 5 if count >= 39 else 3 if count >= 7 else (count - 1) // 2
    first, second = (count - skip) // 2, (count - skip) // 2 + skip
    rounds = max(len(seeds) + 1, count)

    def mix(x: int) -> int:
        return x ^ (x >> 27)

    for k in range(rounds):
        word = 1664525 * mix(words[k % count] ^ words[(k + first) % count] ^ words[(k - 1) % count]) & WORD
        added = word + (len(seeds) if k == 0 else k % count + seeds[k - 1] if k <= len(seeds) else k % count)
        words[(k + first) % count] = (words[(k + first) % count] + word) & WORD
        words[(k + second) % count] = (words[(k + second) % count] + added) & WORD
        words[k % count] = added & WORD
    for k in range(rounds, rounds + count):
        word = 1566083941 * mix((words[k % count] + words[(k + first) % count] + words[(k - 1) % count]) & WORD) & WORD
        less = (word - k % count) & WORD
        words[(k + first) % count] ^= word
        words[(k + second) % count] ^= less
        words[k % count] = less
    return words


class _Twister:
    """std::mt19937_64 after a std::seed_seq."""

    def __init__(self, words: list):
        self.state = [words[2 * i] | words[2 * i + 1] << 32 for i in range(STATE)]
        if not self.state[0] >> 31 and not any(self.state[1:]):
            self.state[0] = 1 << 63
        self.place = STATE

    def next(self) -> int:
        if self.place == STATE:
            self._turn()
        x = self.state[self.place]
        self.place += 1
        x ^= (x >> 29) & 0x5555555555555555
        x ^= (x << 17) & 0x71D67FFFEDA60000
        x ^= (x << 37) & 0xFFF7EEE000000000
        return (x & WIDE) ^ ((x & WIDE) >> 43)

    def below(self, bound: int) -> int:
        """Uniform in [0, bound): draws above the last whole multiple of the bound are thrown away."""
        limit = (WIDE + 1) // bound * bound
        drawn = self.next()
        while drawn >= limit:
            drawn = self.next()
        return drawn % bound

    def _turn(self) -> None:
        state = self.state
        for i in range(STATE):
            x = (state[i] & UPPER) | (state[(i + 1) % STATE] & (UPPER ^ WIDE))
            state[i] = state[(i + AHEAD) % STATE] ^ (x >> 1) ^ (0xB5026F5AA96619E9 if x & 1 else 0)
        self.place = 0
