"""What the Python clients share: the digest of what they computed, and how much of it was pooled.

For trying them where there is no GPU: CLIENT_DEVICE=cpu, for those whose library can do without, and
CLIENT_ROUNDS=N, for how much they do.
"""

import hashlib
import json
import os
import subprocess
import sys
import time


ON_CPU = os.environ.get("CLIENT_DEVICE") == "cpu"


def coverage():
    """bfcstat's own words about this process, where it is there; else nothing."""
    bfcstat = os.environ.get("BFCSTAT")
    if not bfcstat or "bfcpreload" not in os.environ.get("LD_PRELOAD", ""):
        return None
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    shown = subprocess.run([bfcstat, "--json", str(os.getpid())], env=env, capture_output=True,
                           text=True)
    if shown.returncode:
        return {"error": shown.stderr.strip()}
    job = json.loads(shown.stdout)
    pools = job.get("pools", [])
    return {
        "pooled": job["coverage"]["pooled_allocations"],
        "bypassed": job["coverage"]["bypassed_calls"],
        "advice": job["coverage"].get("advice"),
        "hits": sum(pool["hits"] for pool in pools),
        "misses": sum(pool["misses"] for pool in pools),
        "peak_reserved": sum(pool["peak_reserved"] for pool in pools),
        "fences": sum(pool["fences"] for pool in pools),
        "device_waits": sum(pool["device_waits"] for pool in pools),
        "gate": job["gate"],
    }


def run(name, warm_up, work, rounds):
    """`work(rounds)` returns the bytes that must be the same natively and preloaded; it alone is timed."""
    try:
        warm_up()
    except ImportError as error:
        print(json.dumps({"client": name, "skipped": str(error)}))
        sys.exit(77)
    begin = time.perf_counter()
    result = work(int(os.environ.get("CLIENT_ROUNDS", rounds)))
    seconds = time.perf_counter() - begin
    print(json.dumps({
        "client": name,
        "digest": hashlib.sha256(result).hexdigest(),
        "seconds": round(seconds, 4),
        "coverage": coverage(),
    }))
