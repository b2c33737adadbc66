"""A framework that hangs, with a process of its own that hangs too, and takes no notice of signals."""
import os
import signal
import subprocess
import sys
import time

signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
with open(os.environ["FAKE_PIDS"], "a", encoding="utf-8") as file:
    print(os.getpid(), child.pid, file=file, flush=True)
time.sleep(1000)
