"""What the safety of reuse rests on and documentation leaves open (docs/internals/safety.md): each asked by one experiment."""

from ..decisions import NOT_ASKED
from ..session import sources
from .measure import measure_program


def run(session):
    measure_program(session, "unknowns", "unknowns", sources("tests/gpu/unknowns.c"), "-lpthread", "-ldl")
    for question, given in list(session.results.all["parts"].get("unknowns", {}).items()):
        if isinstance(given, dict) and given["answer"] not in (given["expected"], NOT_ASKED) \
                and given["expected"] != "either":
            session.results.complain("unknowns", question, "surprises",
                                     f"{given['answer']}, not {given['expected']}. If {given['decides']}")
