#!/usr/bin/env python3
"""How little a page rule can hold that makes few calls and does not know what the program frees next.

usage: page_bound.py BFCREPLAY TRACE.csv...   (id,lower,upper,size; backings.py and hostile_traces.py make some)

After any prefix of a trace a program may free all blocks, last in, first out. Large pages then suffice, so a rule may
make at most 1.5 times as many calls as `step` in the prefix, and 3 more. Looks for the longest prefix at which `step`
holds at most 1.03 times as much as `fit`. Prints, as JSON,
- allowed: how many calls a rule may make in that prefix;
- sizes: for each bound on the size of pages (MiB) the calls in the prefix and what the whole trace holds (most reserved
  by most live), of `step` and `auto` the lesser each;
- least: the least that a size holds whose calls are allowed; null if none is;
- fit: what `fit` holds.
"""
import csv
import json
import os
import subprocess
import sys
import tempfile

SIZES = (2, 4, 8, 16, 24, 32, 48, 64, 128, 1024)


def replay(bfcreplay, path, rule, *options):
    command = [bfcreplay, path, '--json', '--backing=pages', '--set', 'BFC_PAGE=' + rule, *options]
    seen = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return seen['peak_reserved'] / seen['peak_live'], seen['device_calls']


def write_prefix(rows, count, path):
    """The first `count` allocations; blocks that outlive the last one are freed after it, the newest first."""
    end = rows[count - 1][1]
    with open(path, 'w') as stream:
        stream.write('id,lower,upper,size\n')
        for i, (name, lower, upper, size) in enumerate(rows[:count]):
            stream.write('%s,%d,%d,%d\n' % (name, lower, upper if upper <= end else end + count - i, size))


def longest_patterned(bfcreplay, rows, path):
    """Writes to `path` the longest of some prefixes at which `step` holds little; returns the calls of `step`, or 0."""
    counts = {len(rows) * k // 32 for k in range(1, 33)} | {int(len(rows) * 1.12 ** -k) for k in range(48)}
    for count in sorted(counts - {0}, reverse=True):
        write_prefix(rows, count, path)
        step, fit = replay(bfcreplay, path, 'step'), replay(bfcreplay, path, 'fit')
        if step[0] <= 1.03 * fit[0]:
            return step[1]
    return 0


def bound(bfcreplay, trace, path):
    with open(trace) as stream:
        rows = sorted(((r['id'], int(r['lower']), int(r['upper']), int(r['size'])) for r in csv.DictReader(stream)),
                      key=lambda row: row[1])
    allowed = 1.5 * longest_patterned(bfcreplay, rows, path) + 3
    seen = {}
    for size in SIZES:
        option = '--page=%dM' % size
        calls = min(replay(bfcreplay, path, rule, option)[1] for rule in ('step', 'auto'))
        held = min(replay(bfcreplay, trace, rule, option)[0] for rule in ('step', 'auto'))
        seen[size] = calls, round(held, 3)
    least = min((held for calls, held in seen.values() if calls <= allowed), default=None)
    return {'allowed': allowed, 'sizes': seen, 'least': least, 'fit': round(replay(bfcreplay, trace, 'fit')[0], 3)}


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        for trace in sys.argv[2:]:
            found = bound(sys.argv[1], trace, os.path.join(folder, 'prefix.csv'))
            print(json.dumps({'trace': os.path.basename(trace), **found}), flush=True)


if __name__ == '__main__':
    main()
