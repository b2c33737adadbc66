#!/usr/bin/env python3
"""Made-up allocation traces, each of one kind of program: id,lower,upper,size.

usage: traces.py --list | NAME [OUT.csv]   NAME: one of those that --list prints
"""
import random
import sys

MIB = 1 << 20
KIB = 1 << 10


class Recorder:
    """Counts allocations and frees as time; writes the lifetimes."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.time = 0
        self.rows = []
        self.live = {}

    def allocate(self, size):
        name = len(self.rows)
        self.rows.append([self.time, None, max(1, int(size))])
        self.time += 1
        return name

    def free(self, *names):
        for name in names:
            self.rows[name][1] = self.time
            self.time += 1

    def write(self, stream):
        stream.write('id,lower,upper,size\n')
        for name, (lower, upper, size) in enumerate(self.rows):
            stream.write('%d,%d,%d,%d\n' % (name, lower, self.time if upper is None else upper, size))


def transformer(r):
    """Training steps with a sequence length of their own: activations are kept for the way back."""
    width, layers = 2048, 24
    parameters = [r.allocate(12 * width * width * 2 / parts) for _ in range(layers) for parts in (3, 3, 6, 6)]
    moments = [r.allocate(r.rows[p][2] * 2) for p in parameters]
    for _ in range(12):
        tokens = 8 * r.random.randrange(128, 1025, 16)
        kept = []
        for _ in range(layers):
            attention = r.allocate(tokens * width * 3 * 2)
            scores = r.allocate(tokens * 1024)
            hidden = r.allocate(tokens * width * 4 * 2)
            out = r.allocate(tokens * width * 2)
            r.free(scores)
            kept.append((attention, hidden, out))
        logits = r.allocate(tokens * 32000)
        gradients = []
        for i, held in enumerate(reversed(kept)):
            flow = r.allocate(tokens * width * 2)
            temporary = r.allocate(tokens * width * 4 * 2)
            gradients += [r.allocate(r.rows[p][2]) for p in parameters[4 * (layers - 1 - i):4 * (layers - i)]]
            r.free(temporary, *held)
            r.free(flow)
        r.free(logits, *gradients)


def experts(r):
    """A mixture of experts: each step shares its tokens out unevenly."""
    width = 1024
    weights = [r.allocate(8 * width * width * 2) for _ in range(8 * 12)]
    for _ in range(20):
        kept = []
        for _ in range(12):
            tokens = 16384
            shares = [r.random.expovariate(1) for _ in range(8)]
            whole = sum(shares)
            routed = [r.allocate(max(1, int(tokens * s / whole)) * width * 2) for s in shares]
            inner = [r.allocate(max(1, int(tokens * s / whole)) * width * 4 * 2) for s in shares]
            r.free(*routed)
            kept += inner
            kept.append(r.allocate(tokens * width * 2))
        for name in reversed(kept):
            flow = r.allocate(r.rows[name][2] / 2)
            r.free(name, flow)
    r.free(*weights)


def paged_cache(r):
    """Inference: the cache of keys and values grows by blocks while requests come and go."""
    weights = [r.allocate(s * MIB) for s in [96] * 16 + [24] * 32 + [250]]
    running = []
    for _ in range(1500):
        if len(running) < 48 and r.random.random() < 0.5:
            prompt = r.random.randrange(16, 1500)
            scratch = r.allocate(prompt * 16 * KIB)
            running.append([r.random.randrange(16, 400), [r.allocate(2 * MIB) for _ in range(1 + prompt // 64)]])
            r.free(scratch)
        work = r.allocate(max(1, len(running)) * 300 * KIB)
        for request in running:
            request[0] -= 8
            if r.random.random() < 0.12:
                request[1].append(r.allocate(2 * MIB))
        r.free(work)
        for request in [x for x in running if x[0] <= 0]:
            r.free(*request[1])
            running.remove(request)
    for request in running:
        r.free(*request[1])
    r.free(*weights)


def multigrid(r):
    """A solver on grids that halve: V-cycles with smoother and residual temporaries, and rebuilt operators."""
    points = 256 ** 3
    for _ in range(3):
        levels = []
        for level in range(7):
            n = points >> (3 * level)
            levels.append((n, [r.allocate(7 * n * 4), r.allocate(n * 4), r.allocate(n * 4)]))
        for _ in range(12):
            held = []
            for n, _ in levels:
                smoother = r.allocate(n * 4)
                residual = r.allocate(n * 4)
                r.free(smoother)
                held.append(residual)
            for (n, _), residual in zip(reversed(levels), reversed(held)):
                correction = r.allocate(n * 4 + 4096)
                smoother = r.allocate(n * 4)
                r.free(residual, smoother)
                r.free(correction)
        for _, arrays in levels:
            r.free(*arrays)


def table_soup(r):
    """Sorting, scanning and joining tables: temporaries as large as what they work on."""
    tables = []
    for _ in range(600):
        if len(tables) > 90 or (tables and r.random.random() < 0.3):
            r.free(tables.pop(r.random.randrange(len(tables))))
        rows = int(2 ** r.random.uniform(12, 23))
        table = r.allocate(rows * 8)
        temporary = r.allocate(rows * 8 + 512 * 1024)
        histogram = r.allocate(256 * 4 * 120)
        r.free(histogram)
        scan = r.allocate(rows // 256 * 4 + 1)
        flags = r.allocate(rows)
        r.free(scan, temporary)
        result = r.allocate(rows * r.random.uniform(0.1, 1) * 8)
        r.free(flags, table)
        tables.append(result)
    r.free(*tables)


def plan_cache(r):
    """FFT plans of many sizes, kept in a cache of the last ones used; each has a workspace."""
    cache = []
    signals = [r.allocate(160 * MIB) for _ in range(6)]
    for _ in range(600):
        size = r.random.choice([2, 3, 5, 7, 9, 15, 21]) * 2 ** r.random.randrange(10, 20)
        hit = [p for p in cache if p[0] == size]
        if hit:
            cache.remove(hit[0])
            cache.append(hit[0])
        else:
            cache.append((size, r.allocate(size * 2 + 4096), r.allocate(size * 4)))
            if len(cache) > 48:
                _, twiddles, work = cache.pop(0)
                r.free(work, twiddles)
        output = r.allocate(size * 8)
        r.free(output)
    for _, twiddles, work in cache:
        r.free(work, twiddles)
    r.free(*signals)


def batches_ahead(r):
    """A graph network on sampled neighbourhoods: no two batches have the same sizes."""
    features = r.allocate(900 * MIB)
    weights = [r.allocate(s) for s in (256 * KIB, 1 * MIB, 256 * KIB, 4 * MIB)]
    ahead = []
    for _ in range(150):
        nodes = int(r.random.lognormvariate(9.8, 0.5))
        edges = int(nodes * r.random.uniform(4, 15))
        ahead.append([r.allocate(edges * 8), r.allocate(nodes * 8), r.allocate(nodes * 128 * 4)])
        if len(ahead) < 6:
            continue
        batch = ahead.pop(0)
        nodes = r.rows[batch[1]][2] // 8
        kept = []
        for shrink in (1, 3, 9):
            message = r.allocate(r.rows[batch[0]][2] // shrink * 8)
            kept.append(r.allocate(nodes // shrink * 256 * 4))
            r.free(message)
        for name in reversed(kept):
            flow = r.allocate(r.rows[name][2])
            r.free(name, flow)
        r.free(*batch)
    for batch in ahead:
        r.free(*batch)
    r.free(features, *weights)


def image_workers(r):
    """Images of all sizes are decoded, filtered and written by many workers at once."""
    workers = [[] for _ in range(48)]
    for _ in range(6000):
        worker = r.random.choice(workers)
        if worker and worker[-1] == 'done':
            worker.pop()
            r.free(*worker)
            worker.clear()
            continue
        if not worker:
            pixels = int(r.random.uniform(0.3, 12) * 1e6)
            worker.append(r.allocate(pixels * r.random.choice((1, 3, 4))))
        elif len(worker) < r.random.randrange(3, 7):
            worker.append(r.allocate(r.rows[worker[0]][2] * r.random.choice((0.25, 1, 1, 4))))
        else:
            r.free(worker.pop(1))
            worker.append('done')
    for worker in workers:
        r.free(*[x for x in worker if x != 'done'])


def sort_scan(r):
    """Queries over partitions: filter, scan, sort, join and aggregate, each with its temporaries."""
    resident = [r.allocate(r.random.uniform(8, 24) * MIB) for _ in range(64)]
    for _ in range(12):
        rows = int(2 ** 20 * r.random.uniform(0.5, 1.5))
        columns = [r.allocate(rows * width) for width in (8, 8, 4, 4)]
        results = []
        for _ in range(24):
            part = int(rows * r.random.uniform(0.8, 1))
            flags = r.allocate(part)
            counts = r.allocate(part // 256 * 4 + 1)
            kept = r.allocate(part * 8)
            r.free(counts, flags)
            temporary = r.allocate(part * 8 + 512 * KIB)
            histogram = r.allocate(256 * 4 * 120)
            r.free(histogram)
            order = r.allocate(part * 4)
            r.free(temporary)
            joined = r.allocate(part * 12)
            r.free(order, kept)
            results.append(r.allocate(part * 2))
            r.free(joined)
        r.free(*results)
        r.free(*columns)
    r.free(*resident)


def fft_plans(r):
    """Spectral steps: plans for a set of sizes, transforms with them, then another set."""
    fields = [r.allocate(64 * MIB) for _ in range(12)]
    for _ in range(10):
        plans = []
        for _ in range(10):
            size = r.random.choice((2, 3, 5, 7, 9, 15)) * 2 ** r.random.randrange(14, 20)
            plans.append((size, r.allocate(size * 2 + 4096), r.allocate(size * 8)))
        for _ in range(4):
            for size, _, _ in plans:
                spectrum = r.allocate(size * 8)
                product = r.allocate(size * 8)
                r.free(spectrum)
                r.free(product)
        for _, twiddles, work in reversed(plans):
            r.free(work, twiddles)
    r.free(*fields)


def graph_batches(r):
    """A graph network: each step works on a sampled neighbourhood of its own size."""
    features = r.allocate(1400 * MIB)
    weights = [r.allocate(s) for s in (256 * KIB, 1 * MIB, 256 * KIB, 4 * MIB)]
    for _ in range(150):
        nodes = int(r.random.lognormvariate(10, 0.3))
        edges = int(nodes * r.random.uniform(4, 15))
        batch = [r.allocate(edges * 8), r.allocate(nodes * 8), r.allocate(nodes * 128 * 4)]
        kept = []
        for shrink in (1, 3, 9):
            message = r.allocate(edges // shrink * 64)
            kept.append(r.allocate(nodes // shrink * 256 * 4))
            r.free(message)
        for name in reversed(kept):
            flow = r.allocate(r.rows[name][2])
            r.free(name)
            r.free(flow)
        r.free(*batch)
    r.free(features, *weights)


def image_pipeline(r):
    """Batches of images of all sizes: decoded, filtered, scaled to one size, then a model's step."""
    model = [r.allocate(s * MIB) for s in (90, 45, 45)]
    for _ in range(60):
        decoded = [r.allocate(r.random.uniform(0.3, 12) * 1e6 * 3) for _ in range(32)]
        scaled = [r.allocate(512 * 512 * 3 * 4) for _ in range(32)]
        for name in decoded:
            blurred = r.allocate(r.rows[name][2])
            r.free(name)
            r.free(blurred)
        activations = [r.allocate(32 * 512 * 512 // shrink) for shrink in (1, 1, 2, 4, 8)]
        r.free(*reversed(activations))
        r.free(*scaled)
    r.free(*model)


def two_models(r):
    """Two models take turns; what belongs to one of them is freed before the other one starts."""
    for _ in range(6):
        for layers, unit in ((40, 3 * MIB + 5000), (18, 11 * MIB + 70000)):
            weights = [r.allocate(unit * 2) for _ in range(layers)]
            for _ in range(3):
                kept = []
                for layer in range(layers):
                    kept.append(r.allocate(unit * (1 + layer % 5) / 2))
                    r.free(r.allocate(unit * (1 + layer % 3)))
                for name in reversed(kept):
                    flow = r.allocate(r.rows[name][2])
                    r.free(name)
                    r.free(flow)
            r.free(*weights)


def checkpoints(r):
    """A training loop that gathers its state in a few large buffers at every fifth step."""
    weights = [r.allocate(r.random.randrange(1, 40) * MIB) for _ in range(60)]
    for step in range(25):
        kept = [r.allocate((i * 7919 % 19900 + 100) * KIB) for i in range(90)]
        for name in reversed(kept):
            r.free(r.allocate(r.rows[name][2] / 2))
            r.free(name)
        if step % 5 == 4:
            shards = [r.allocate(sum(r.rows[w][2] for w in weights[i::3])) for i in range(3)]
            staging = r.allocate(64 * MIB)
            r.free(staging, *shards)
    r.free(*weights)


def by_name(*kinds):
    return {kind.__name__.replace('_', '-'): kind for kind in kinds}


KINDS = by_name(transformer, experts, paged_cache, multigrid, sort_scan, fft_plans, graph_batches, image_pipeline,
                two_models, checkpoints)
# Lifetimes that follow no pattern: what any placement without knowledge of the future breaks up.
SOUPS = by_name(table_soup, plan_cache, batches_ahead, image_workers)


def make(name, stream):
    """Writes the trace of that name; the same one each time."""
    recorder = Recorder(name)
    (KINDS | SOUPS)[name](recorder)
    recorder.write(stream)


def main():
    if len(sys.argv) < 2 or (sys.argv[1] != '--list' and sys.argv[1] not in KINDS | SOUPS):
        sys.exit('usage: traces.py --list | NAME [OUT.csv]')
    if sys.argv[1] == '--list':
        print('\n'.join(KINDS | SOUPS))
    elif len(sys.argv) > 2:
        with open(sys.argv[2], 'w') as stream:
            make(sys.argv[1], stream)
    else:
        make(sys.argv[1], sys.stdout)


if __name__ == '__main__':
    main()
