"""The parts of scripts/gpu-check, in the order in which they run."""

import collections

from . import (build, clients, conformance, demo, measure, meson, pages, programs, routes, sleep, smoke, stress,
               submissions, tools, unknowns)

# What is worth most comes first, since the device may be there for a short time only. `weight` is a share of
# the time; what a part leaves over goes to the later ones. It takes no more than `most` seconds, until all
# parts have had their turn.
Part = collections.namedtuple("Part", "weight most run")

PARTS = {
    "build": Part(30, 240, build.run),
    "smoke": Part(5, 60, smoke.run),
    "conformance": Part(20, 90, conformance.run),
    "measure": Part(12, 60, measure.run),
    "unknowns": Part(8, 60, unknowns.run),
    "submissions": Part(30, 110, submissions.run),
    "sleep": Part(20, 150, sleep.run),
    "demo": Part(12, 90, demo.run),
    "programs": Part(60, 240, programs.run),
    "clients": Part(30, 150, clients.run),
    "routes": Part(8, 60, routes.run),
    "runtimes": Part(20, 90, conformance.run_runtimes),
    "pages": Part(15, 60, pages.run),
    "tools": Part(12, 60, tools.run),
    "stress": Part(10, 60, stress.run),
    "meson": Part(5, 60, meson.run),
}
