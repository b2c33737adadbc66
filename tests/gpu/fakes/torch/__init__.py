"""A framework that hangs, takes no notice of signals, and has a process in a session of its own that
hangs too."""
import os
import signal
import subprocess
import sys
import time

signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"],
                         start_new_session=True)
with open(os.environ["FAKE_PIDS"], "a", encoding="utf-8") as file:
    print(os.getpid(), child.pid, file=file, flush=True)
time.sleep(1000)
