#!/usr/bin/env python3
"""How large may pages be if what best fit misses is to be served from whole free ones?

usage: whole_pages.py TRACE.csv…    TRACE: id,lower,upper,size

The memory is (1 + slack) times the most that is ever live, there from the beginning: slack 0.03 from 1 GiB on, else
0.10. The device is better than any: it maps any range of bytes. A request that no free run holds is served by the
longest run, which stays, and the next longest ones, which join it: one call for each that joins, and one for access.

Printed for the first pass: misses, the calls for them, MiB that joined; and for each size of pages the calls that make
and map them all once, and how many of the misses the longest run together with the whole free pages of the others
could have served ("one address"), or the end of one page, whole ones and the start of another one, if pages are mapped
at several addresses at once ("several"). Both are flattered: whatever joins is taken to consist of new pages.
"""
import bisect
import csv
import os
import sys

MIB = 1 << 20
UNIT = 512
SIZES = [n * MIB for n in (2, 4, 8, 16, 32, 64, 128)]


def read(stream):
    """The calls in order: name, bytes; 0 bytes: a free. At equal times frees come first."""
    calls = []
    for row in csv.DictReader(stream):
        size = -(-int(row['size']) // UNIT) * UNIT
        calls += [(int(row['lower']), 1, row['id'], size), (int(row['upper']), 0, row['id'], 0)]
    calls.sort(key=lambda call: call[:2])
    return [call[2:] for call in calls]


def most_live(calls):
    live, most, sizes = 0, 0, {}
    for name, size in calls:
        live += size or -sizes.pop(name)
        if size:
            sizes[name] = size
        most = max(most, live)
    return most


class Memory:
    """Free runs of addresses, best fit; addresses are never used twice for what joins."""

    def __init__(self, total):
        self.size_at, self.start_of, self.by_size = {}, {}, []
        self.fresh, self.calls, self.joined = 0, 0, 0
        self.add(0, total)
        self.fresh = total

    def add(self, start, size):
        if size:
            self.size_at[start] = size
            self.start_of[start + size] = start
            bisect.insort(self.by_size, (size, start))

    def remove(self, start):
        size = self.size_at.pop(start)
        del self.start_of[start + size]
        del self.by_size[bisect.bisect_left(self.by_size, (size, start))]
        return size

    def misses(self, size):
        return not self.by_size or self.by_size[-1][0] < size

    def allocate(self, size):
        if self.misses(size):
            return self.join(size)
        free, start = self.by_size[bisect.bisect_left(self.by_size, (size, 0))]
        self.remove(start)
        self.add(start + size, free - size)
        return start

    def join(self, size):
        lacking = size
        while lacking:
            free, start = self.by_size[-1]
            taken = min(free, lacking)
            self.remove(start)
            self.add(start + taken, free - taken)
            if lacking < size:
                self.joined += taken
            lacking -= taken
            self.calls += 1
        start = -(-self.fresh // SIZES[-1]) * SIZES[-1]
        self.fresh = start + size + UNIT
        return start

    def free(self, start, size):
        if start in self.start_of:
            before = self.start_of[start]
            size += self.remove(before)
            start = before
        if start + size in self.size_at:
            size += self.remove(start + size)
        self.add(start, size)

    def could_serve(self, size, page):
        """By whole pages of this size: with one address each, with several."""
        longest, whole, end_of_one, start_of_one, kept = 0, 0, 0, 0, 0
        for start, free in self.size_at.items():
            first, last = -(-start // page) * page, (start + free) // page * page
            inside = max(0, last - first)
            whole += inside
            kept = max(kept, free - inside)
            longest = max(longest, free)
            if first <= start + free:
                end_of_one = max(end_of_one, first - start)
            if last >= start:
                start_of_one = max(start_of_one, start + free - last)
        one = max(longest, whole + kept) >= size
        return one, one or whole + end_of_one + start_of_one >= size


def replay(calls):
    """Most live bytes, misses, calls, bytes that joined; for each size of pages the misses they could serve."""
    live = most_live(calls)
    memory = Memory(int(live * (1.03 if live >= 1 << 30 else 1.10)) // UNIT * UNIT)
    blocks, misses, served = {}, 0, {page: [0, 0] for page in SIZES}
    for name, size in calls:
        if not size:
            memory.free(*blocks.pop(name))
            continue
        if memory.misses(size):
            misses += 1
            for page in SIZES:
                for i, could in enumerate(memory.could_serve(size, page)):
                    served[page][i] += could
        blocks[name] = memory.allocate(size), size
    return live, misses, memory.calls, memory.joined, served


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__.split('\n\n')[1])
    for path in sys.argv[1:]:
        with open(path) as stream:
            live, misses, calls, joined, served = replay(read(stream))
        print('%s: %d MiB live; %d misses, %d calls, %d MiB joined'
              % (os.path.basename(path), live // MIB, misses, calls, joined // MIB))
        for page in SIZES if misses else []:
            print('  pages of %3d MiB: %5d calls to make and map them; one address: %d served, several: %d'
                  % (page // MIB, 2 * -(-live // page), *served[page]))


if __name__ == '__main__':
    main()
