#!/usr/bin/env python3
"""Traces that are hard on pages: lifetimes at random among sizes that leave less than a page free, or phases of sizes.

usage: hostile_traces.py FOLDER   writes NAME.csv for each: id,lower,upper,size
"""
import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../integration/replay'))
from traces import KIB, MIB, Recorder  # noqa: E402

GIB = 1 << 30


class Soup:
    """Blocks that live until, drawn at random, they make room for another."""

    def __init__(self, recorder, most):
        self.recorder, self.most = recorder, most
        self.live, self.bytes = [], 0

    def free_one(self):
        i = self.recorder.random.randrange(len(self.live))
        self.live[i], self.live[-1] = self.live[-1], self.live[i]
        name = self.live.pop()
        self.bytes -= self.recorder.rows[name][2]
        self.recorder.free(name)

    def stir(self, count, size):
        """Allocates so many blocks of drawn sizes."""
        for _ in range(count):
            size_drawn = size(self.recorder.random)
            while self.live and self.bytes + size_drawn > self.most:
                self.free_one()
            self.live.append(self.recorder.allocate(size_drawn))
            self.bytes += size_drawn

    def drain(self, kept=0):
        while len(self.live) > kept:
            self.free_one()


def between(least, most):
    """Sizes whose logarithms are spread evenly."""
    return lambda random: int(math.exp(random.uniform(math.log(least), math.log(most))))


def one_of(*sizes):
    return lambda random: random.choice(sizes)


def probe(r):
    """One large block, freed at once; then blocks a hundredth of its size."""
    r.free(r.allocate(8 * GIB))
    Soup(r, 8 * GIB).stir(6000, between(MIB, 64 * MIB))


def large_to_middle(r):
    soup = Soup(r, 16 * GIB)
    for count, least, most in ((60, GIB, 4 * GIB), (5000, 8 * MIB, 96 * MIB), (60, GIB, 4 * GIB)):
        soup.stir(count, between(least, most))
        soup.drain()


def large_among_middle(r):
    middle, large = between(16 * MIB, 64 * MIB), between(GIB, 3 * GIB)
    Soup(r, 20 * GIB).stir(4000, lambda random: large(random) if random.random() < .06 else middle(random))


def companions(r):
    """Each block has a small one beside it that lives longer."""
    soup, small = Soup(r, 2200 * MIB), []
    for _ in range(5000):
        soup.stir(1, between(2 * MIB, 100 * MIB))
        small.append(r.allocate(one_of(512, 4 * KIB, 68 * KIB, 292 * KIB)(r.random)))
        if len(small) > 600:
            r.free(small.pop(r.random.randrange(600)))


def small_between(r):
    """Large blocks, then small ones alone, of which some stay, and large ones again."""
    soup = Soup(r, 2000 * MIB)
    for count, least, most in ((1500, 4 * MIB, 256 * MIB), (20000, 4 * KIB, MIB)) * 2:
        soup.stir(count, between(least, most))
        soup.drain(100)


def ever_larger(r):
    """Phases, each of twice the size, and a few blocks of each that stay."""
    soup = Soup(r, 2200 * MIB)
    for doubled in range(9):
        soup.stir(max(300, 9000 >> doubled), between(160 * KIB << doubled, 360 * KIB << doubled))
        soup.drain(30)


def half_pages(r):
    around = [page + off for page in (MIB, 2 * MIB) for off in (-512, 0, 512, 64 * KIB)]
    Soup(r, 1536 * MIB).stir(12000, one_of(*around, 3 * MIB, 24 * MIB, 40 * MIB))


def growth(r):
    """A live set that grows for long, of sizes most of which are small."""
    soup = Soup(r, 400 * MIB)
    for _ in range(24):
        soup.stir(1500, lambda random: int(min(96 * MIB, random.paretovariate(.35) * 2 * KIB)))
        soup.most += 70 * MIB


def every_other(r):
    """Every other block is freed; what is twice as large fits in none of the holes."""
    for size in [tenths * MIB // 10 for tenths in range(11, 88, 11)]:
        first = [r.allocate(size) for _ in range(1500 * MIB // size)]
        r.free(*first[::2])
        second = [r.allocate(2 * size + 4096) for _ in range(740 * MIB // (2 * size + 4096))]
        r.free(*first[1::2], *second)


KINDS = (probe, large_to_middle, large_among_middle, companions, small_between, ever_larger, half_pages, growth,
         every_other)


def main():
    if len(sys.argv) != 2 or not os.path.isdir(sys.argv[1]):
        sys.exit(__doc__)
    for kind in KINDS:
        recorder = Recorder(kind.__name__)
        kind(recorder)
        with open(os.path.join(sys.argv[1], kind.__name__.replace('_', '-') + '.csv'), 'w') as stream:
            recorder.write(stream)


if __name__ == '__main__':
    main()
