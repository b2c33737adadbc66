#!/usr/bin/env python3
"""scripts/pictures leaves nothing behind when it is told to end.

usage: test_pictures.py SCRIPT
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SCRIPT = sys.argv[1]
BODY = """
import importlib.machinery, importlib.util, sys
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("pictures", sys.argv[1])
pictures = importlib.util.module_from_spec(importlib.util.spec_from_loader("pictures", loader))
loader.exec_module(pictures)
pictures.end_when_told()
pictures.screen_of(["sh", "-c", 'echo $$ >"$0"; exec sleep 600', sys.argv[2]], "what it never shows")
"""

if not shutil.which("tmux"):
    print("tmux is not installed")
    sys.exit(77)
with tempfile.TemporaryDirectory() as folder:
    started = os.path.join(folder, "started")
    environment = {**os.environ, "TMUX_TMPDIR": folder}
    run = subprocess.Popen([sys.executable, "-c", BODY, SCRIPT, started], stderr=subprocess.PIPE, text=True, env=environment)
    end = time.monotonic() + 50
    while not (os.path.exists(started) and os.path.getsize(started)):
        assert run.poll() is None and time.monotonic() < end, run.stderr.read()
        time.sleep(0.05)
    with open(started, encoding="utf-8") as file:
        pid = int(file.read())
    run.send_signal(signal.SIGTERM)
    said = run.communicate()[1]
    assert said == "pictures: told to end\n", said
    while os.path.exists(f"/proc/{pid}"):
        assert time.monotonic() < end, "what tmux ran is still there"
        time.sleep(0.05)
