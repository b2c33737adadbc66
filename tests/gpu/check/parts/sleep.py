"""Sleep: a job of PyTorch gives its memory back, another takes it, and the first goes on; and two take turns."""

import json

from .clients import script_command

LIMIT = 150  # seconds


def run(session):
    command = script_command(session, "sleep", "sleep", "pytorch")
    if not command or session.has("sleep", "jobs"):
        return
    status, out, error = session.run([*command, session.library, session.bfcstat, session.work], LIMIT)
    try:
        found = json.loads(out.strip().splitlines()[-1])
    except (ValueError, IndexError):
        session.fail("sleep", "jobs", f"exit status {status}: {out}{error}")
        return
    session.note("sleep", "jobs", "done")
    for wrong in found.pop("wrong"):
        session.fail("sleep", "jobs", wrong)
    for name, figure in found.items():
        session.note("sleep", name, figure)
