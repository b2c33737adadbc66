"""The parts of scripts/gpu-check, in the order in which they run."""

import collections

from . import build, clients, conformance, demo, measure, meson, pages, roads, stress, tools

# `weight` is a share of the time; what a part leaves over goes to the later ones.
Part = collections.namedtuple("Part", "weight run")

PARTS = {
    "build": Part(30, build.run),
    "measure": Part(10, measure.run),
    "pages": Part(20, pages.run),
    "roads": Part(8, roads.run),
    "demo": Part(8, demo.run),
    "clients": Part(35, clients.run),
    "tools": Part(12, tools.run),
    "conformance": Part(25, conformance.run),
    "stress": Part(10, stress.run),
    "meson": Part(5, meson.run),
}
