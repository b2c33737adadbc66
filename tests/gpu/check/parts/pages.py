"""BFC_BACKING=pages: what the driver's calls cost and wait for (docs/pages.md); then the conformance programs and
the demo with it."""

from ..session import sources
from . import conformance, demo, measure

PAGES = {"BFC_BACKING": "pages"}


def run(session):
    measure.measure_program(session, "pages", "page_costs", sources("tests/gpu/page_costs.c"), "-lpthread")
    demo.check(session, "pages", **PAGES)
    conformance.check(session, "pages", ["driver"], **PAGES)
