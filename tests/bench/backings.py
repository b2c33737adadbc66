#!/usr/bin/env python3
"""What each backing holds and how often it asks the device, for known traces and for ones drawn anew in each run.

usage: backings.py BFCREPLAY [--traces FOLDER] [--draws N] [--seed N] [--only WORD]

Traces: those that tests/integration/replay/traces.py and hostile_traces.py make, a training that was recorded on a GPU,
the CSV files of FOLDER, and N draws (1) of each pair of a kind of size and a kind of lifetime. Without --seed the seed
is drawn, and printed. Prints a line of JSON for each: the most live, and for each backing [most reserved / most live,
device calls]; then what `auto` and `malloc` miss of what is wanted of them ("wanted" in the code).
"""
import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '../integration/replay')]
import hostile_traces  # noqa: E402
import traces  # noqa: E402
from hostile_traces import GIB  # noqa: E402
from traces import KIB, MIB  # noqa: E402

RECORDED = os.path.join(HERE, '../gpu/results/h100-580.159-2026-11-27/gpt.bfctrace')
WAYS = {
    'auto': ['--backing=pages', '--set', 'BFC_PAGE=auto'],
    'fit': ['--backing=pages', '--set', 'BFC_PAGE=fit'],
    'step': ['--backing=pages', '--set', 'BFC_PAGE=step'],
    'malloc': [],
    'tf': ['--policy=tf'],
    'pytorch': ['--policy=pytorch'],
}


# ---- sizes ----

def log_uniform(draw):
    least = draw.choice([KIB, 64 * KIB, MIB])
    return hostile_traces.between(least, least << draw.randrange(4, 12))


def power_law(draw):
    least, slope = draw.choice([4 * KIB, 64 * KIB]), draw.uniform(.3, 1)
    return lambda random: int(min(256 * MIB, random.paretovariate(slope) * least))


def few_classes(draw):
    sizes = [int(math.exp(draw.uniform(math.log(16 * KIB), math.log(128 * MIB)))) for _ in range(draw.randrange(3, 12))]
    return lambda random: random.choice(sizes)


# ---- lifetimes; each keeps at most `most` bytes ----

def fill(r, size, most):
    """Allocates until `most` bytes or 20,000 blocks are there; returns the blocks."""
    blocks, held = [], 0
    while len(blocks) < 20000:
        bytes_drawn = size(r.random)
        if held + bytes_drawn > most:
            return blocks
        held += bytes_drawn
        blocks.append(r.allocate(bytes_drawn))
    return blocks


def lifo(r, size, most):
    for _ in range(6):
        r.free(*reversed(fill(r, size, most * r.random.uniform(.5, 1))))


def fifo(r, size, most):
    blocks = fill(r, size, most)
    held = sum(r.rows[b][2] for b in blocks)
    for _ in range(2 * len(blocks)):
        drawn = size(r.random)
        while blocks and held + drawn > most:
            held -= r.rows[blocks[0]][2]
            r.free(blocks.pop(0))
        blocks.append(r.allocate(drawn))
        held += drawn


def exponential(r, size, most):
    soup = hostile_traces.Soup(r, most)
    soup.stir(2000 + 2 * len_of(size, most), size)


def two_phase(r, size, most):
    """Some blocks stay; the others come and go in steps, last in first out."""
    fill(r, size, most // 3)
    for _ in range(8):
        kept = fill(r, size, most // 2)
        for block in reversed(kept):
            r.free(r.allocate(r.rows[block][2] / 2))
            r.free(block)


def growing(r, size, most):
    soup = hostile_traces.Soup(r, most / 10)
    for _ in range(10):
        soup.stir(200 + len_of(size, most) // 5, size)
        soup.most += most / 10


def len_of(size, most):
    """About how many blocks fill `most` bytes; at most 10,000."""
    drawn = random.Random(1)
    return min(10000, int(most / (sum(size(drawn) for _ in range(500)) / 500)))


SIZES = log_uniform, power_law, few_classes
LIFETIMES = lifo, fifo, exponential, two_phase, growing


def drawn_traces(seed, draws):
    for i in range(draws):
        for sizes in SIZES:
            for lifetimes in LIFETIMES:
                name = '%s/%s/%d.%d' % (sizes.__name__, lifetimes.__name__, seed, i)
                draw = random.Random(name)
                most = math.exp(draw.uniform(math.log(256 * MIB), math.log(12 * GIB)))
                recorder = traces.Recorder(name)
                lifetimes(recorder, sizes(draw), most)
                yield name, lifetimes not in (exponential, growing, fifo), recorder


def made_traces():
    for kinds, patterned in (traces.KINDS, True), (traces.SOUPS, False):
        for name, kind in kinds.items():
            recorder = traces.Recorder(name)
            kind(recorder)
            yield name, patterned, recorder
    for kind in hostile_traces.KINDS:
        recorder = traces.Recorder(kind.__name__)
        kind(recorder)
        yield 'hostile/' + kind.__name__, False, recorder


def inputs(arguments, folder):
    """Name, whether lifetimes have a pattern, path."""
    yield 'gpt', True, RECORDED
    listed = sorted(os.listdir(arguments.traces)) if arguments.traces and os.path.isdir(arguments.traces) else []
    for name in listed:
        if name.endswith('.csv'):
            yield name[:-4], True, os.path.join(arguments.traces, name)
    path = os.path.join(folder, 'trace.csv')
    for source in made_traces(), drawn_traces(arguments.seed, arguments.draws):
        for name, patterned, recorder in source:
            if arguments.only in name:
                with open(path, 'w') as stream:
                    recorder.write(stream)
                yield name, patterned, path


def replay(bfcreplay, path, options):
    done = subprocess.run([bfcreplay, path, '--json', *options], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def measure(bfcreplay, path):
    seen = {way: replay(bfcreplay, path, options) for way, options in WAYS.items()}
    live = seen['malloc']['peak_live']
    return live, {way: (figures['peak_reserved'] / live, figures['device_calls']) for way, figures in seen.items()}


def missed(live, patterned, seen):
    """What is wanted of `auto` is what `step` has where it holds as little as `fit`, otherwise what `fit` has; of
    `malloc`, no more than the other policies and, with a pattern, 1.10."""
    held, calls = {way: s[0] for way, s in seen.items()}, {way: s[1] for way, s in seen.items()}
    least = min(held['fit'], held['step'])
    better = 'step' if held['step'] <= 1.03 * held['fit'] else 'fit'
    wanted = {
        'auto memory': held['auto'] <= 1.03 * least,
        'auto of live': live < 256 * MIB or held['auto'] <= max(least, 1.03 if live >= GIB else 1.05),
        'auto calls': calls['auto'] <= 1.5 * calls[better] + 3,
        'malloc policies': held['malloc'] <= 1.01 * min(held['tf'], held['pytorch']),
        'malloc pattern': not patterned or live < 256 * MIB or held['malloc'] <= 1.10,
    }
    return [what for what, so in wanted.items() if not so]


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split('\n\n')[1])
    parser.add_argument('bfcreplay')
    parser.add_argument('--traces', default=os.path.join(HERE, '../../../shared/traces'))
    parser.add_argument('--draws', type=int, default=1)
    parser.add_argument('--seed', type=int, default=random.SystemRandom().randrange(1 << 20))
    parser.add_argument('--only', default='')
    arguments = parser.parse_args()
    print(json.dumps({'seed': arguments.seed}), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, patterned, path in inputs(arguments, folder):
            if arguments.only not in name:
                continue
            live, seen = measure(arguments.bfcreplay, path)
            print(json.dumps({'trace': name, 'live_mib': live // MIB, 'pattern': patterned,
                              **{way: (round(held, 4), calls) for way, (held, calls) in seen.items()},
                              'missed': missed(live, patterned, seen)}), flush=True)


if __name__ == '__main__':
    main()
