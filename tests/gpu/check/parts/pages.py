"""BFC_BACKING=pages: the conformance programs and the demo with it."""

from . import conformance, demo

PAGES = {"BFC_BACKING": "pages"}


def run(session):
    conformance.check(session, "pages", ["driver"], **PAGES)
    demo.check(session, "pages", **PAGES)
