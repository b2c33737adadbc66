"""A notebook of PyTorch that falls asleep between its cells, in which nothing is computed: its tensors are what
they were, and it goes on. The settings (BFC_SLEEP_IDLE) have it sleep where it is preloaded."""
import json
import os
import subprocess
import time

import torch


def shown():
    """What bfcstat tells of this job's sleep; None natively."""
    if "LD_PRELOAD" not in os.environ:
        return None
    clean = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    said = subprocess.run([os.environ["STEPS_BFCSTAT"], "--json", str(os.getpid())], env=clean,
                          capture_output=True, text=True)
    return json.loads(said.stdout)["sleep"] if said.returncode == 0 else None


def falls_asleep(number):
    """Waits for the job's next sleep; natively there is none to wait for."""
    until = time.monotonic() + 60
    while (sleep := shown()) and (sleep["state"] != "asleep" or sleep["falls"] < number):
        if time.monotonic() > until:
            return f"never asleep: {sleep}"
        time.sleep(0.05)
    return "right"


host = [torch.arange(1000 + 300000 * number, dtype=torch.int64) for number in range(8)]
tensors = [one.cuda() for one in host]
side = torch.cuda.Stream()
for cell in range(4):
    print("sleep", cell, falls_asleep(cell + 1))
    with torch.cuda.stream(side):
        tensors[cell].copy_(host[cell].flip(0).cuda(non_blocking=True))
    side.synchronize()
    host[cell] = host[cell].flip(0)
    for number, (tensor, one) in enumerate(zip(tensors, host)):
        print("cell", cell, number, "right" if torch.equal(tensor.cpu(), one) else "wrong")
