"""First of all: memory is allocated, filled, read back and freed, by each route, natively and in each mode."""

from ..session import MODES, sources

RIGHT = "contents are right\n"


def run(session):
    for route, flags in routes(session).items():
        program = session.compile("smoke", "smoke-" + route.replace(" ", "-"), sources("tests/gpu/smoke.c"), *flags)
        if program and natively(session, route, program):
            for mode in MODES:
                preloaded(session, route, program, mode)


def routes(session):
    return {
        "driver": ("-DROUTE_DRIVER", *session.driver()),
        "shared runtime": session.toolkit.runtime(),
        "static runtime": (session.toolkit.libraries() + "/libcudart_static.a", "-ldl", "-lrt", "-lpthread"),
    }


def natively(session, route, program):
    status, out, error = session.run([program], 30)
    if (status, out) != (0, RIGHT):
        session.surprise("smoke", route + ", native", f"exit status {status}: {out}{error}")
        return False
    session.note("smoke", route + ", native", "ok")
    return True


def preloaded(session, route, program, mode):
    name = f"{route}, {mode}"
    status, out, error = session.preloaded([program], mode, 30, BFC_SUMMARY="1")
    if (status, out) != (0, RIGHT):
        session.fail("smoke", name, f"exit status {status}: {out}{error}")
    elif "8 allocations, 8 frees" not in error:
        session.fail("smoke", name, "not all was pooled: " + error)
    else:
        session.note("smoke", name, "ok")
