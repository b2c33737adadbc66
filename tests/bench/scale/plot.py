#!/usr/bin/env python3
"""Draws what the benchmark `scale` prints: plot.py ROWS.json OUT.svg

Four panels of lines, one line an allocator: the time of a pair by live blocks, threads and regions, and the host's
memory a live block. Both axes are logarithmic.
"""

import json
import math
import sys

NAMES = {"pool": ("this pool", "#0072b2"), "tf": ("TensorFlow's rules", "#d55e00"),
         "pytorch": ("PyTorch's rules", "#009e73")}
PANELS = (  # title, which rows, x and y
    ("ns a pair, by live blocks", {"threads": 1, "regions": 1}, "live", "ns"),
    ("by threads, 100,000 live blocks", {"live": 100000, "regions": 1}, "threads", "ns"),
    ("by regions, 100,000 live blocks", {"live": 100000, "threads": 1}, "regions", "ns"),
    ("bytes of the host a live block", {"threads": 1, "regions": 1}, "live", "host_bytes"),
)
WIDTH, HEIGHT, LEFT, TOP, GAP = 190, 170, 44, 46, 52


def points(rows, who, chosen, x, y):
    return sorted((row[x], row[y]) for row in rows
                  if row["allocator"] == who and all(row[key] == value for key, value in chosen.items()))


def short(value):
    return f"{value:,}" if value < 1000 else f"10{'⁰¹²³⁴⁵⁶⁷⁸⁹'[round(math.log10(value))]}"


class Scale:
    """Places of values along an axis, by their logarithm."""

    def __init__(self, values, start, length):
        self.low, self.start, self.length = math.log10(min(values)), start, length
        self.span = (math.log10(max(values)) - self.low) or 1

    def __call__(self, value):
        return round(self.start + self.length * (math.log10(value) - self.low) / self.span, 1)


def text(x, y, words, how=""):
    return f'<text x="{x}" y="{y}"{how}>{words}</text>'


def panel(rows, number, title, chosen, x, y):
    left = LEFT + number * (WIDTH + GAP)
    lines = {who: points(rows, who, chosen, x, y) for who in NAMES}
    xs = sorted({a for line in lines.values() for a, _ in line})
    ys = [row[y] for row in rows]  # of all panels, so that they can be compared
    tens = range(math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys))) + 1)
    across, up = Scale(xs, left, WIDTH), Scale([10 ** ten for ten in tens], TOP + HEIGHT, -HEIGHT)
    yield text(left, TOP - 12, title, ' class="title"')
    for ten in tens:
        yield f'<path class="grid" d="M{left} {up(10 ** ten)}h{WIDTH}"/>'
        yield text(left - 6, up(10 ** ten) + 4, short(10 ** ten), ' text-anchor="end"')
    for value in xs:
        yield text(across(value), TOP + HEIGHT + 16, short(value), ' text-anchor="middle"')
    for who, line in lines.items():
        places = [(across(a), up(b)) for a, b in line]
        color = NAMES[who][1]
        yield f'<path fill="none" stroke="{color}" stroke-width="2" d="M{" ".join(f"{a} {b}" for a, b in places)}"/>'
        for (a, b), (_, value) in zip(places, line):
            yield f'<circle cx="{a}" cy="{b}" r="3" fill="{color}"><title>{NAMES[who][0]}: {value:,.0f}</title></circle>'


def drawn(rows):
    width, height = LEFT + len(PANELS) * (WIDTH + GAP), TOP + HEIGHT + 46
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
           'font-family="sans-serif" font-size="11" fill="#333">')
    yield "<style>.title{font-weight:bold}.grid{stroke:#ddd}</style>"
    yield f'<rect width="{width}" height="{height}" fill="#fff"/>'
    for number, spec in enumerate(PANELS):
        yield from panel(rows, number, *spec)
    for i, (name, color) in enumerate(NAMES.values()):
        x, y = LEFT + i * 150, TOP + HEIGHT + 34
        yield f'<path stroke="{color}" stroke-width="2" d="M{x} {y - 4}h16"/>'
        yield text(x + 22, y, name)
    yield "</svg>"


def svg(path):
    with open(path, encoding="utf-8") as file:
        return "\n".join(drawn(json.load(file))) + "\n"


if __name__ == "__main__":
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        out.write(svg(sys.argv[1]))
