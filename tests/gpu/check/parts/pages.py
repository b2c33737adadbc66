"""BFC_BACKING=pages: the demo and the conformance programs with it."""

from . import conformance, demo

PAGES = {"BFC_BACKING": "pages"}


def run(session):
    demo.check(session, "pages", **PAGES)
    conformance.check(session, "pages", ["driver"], **PAGES)
