"""hypre's driver `ij`: problems of three sizes on a cube, by conjugate gradients with algebraic multigrid. Its results are
the numbers of iterations and the norms of what is left; its times are hypre's own, of setup and solution.
usage: client_hypre.py IJ"""
import hashlib
import json
import os
import re
import subprocess
import sys

SIDES = [int(side) for side in os.environ.get("CLIENT_SIDES", "64,96,128").split(",")]
# By hypre's own kernels, whose sums have one order, and random numbers of the host's.
OPTIONS = ["-27pt", "-solver", "1", "-rlx", "18", "-mv_vendor", "0", "-mm_vendor", "0", "-use_curand", "0"]
RESULT = re.compile(r"^(Iterations = .*|Final Relative Residual Norm = .*)$", re.M)


def solve(program, side):
    """What the driver prints; its complaints, and a preloaded library's summary, go where ours go."""
    done = subprocess.run([program, *OPTIONS, "-n", *[str(side)] * 3], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"ij ended with {done.returncode}: {done.stdout[-300:]}")
    return done.stdout


def main():
    printed = "".join(solve(sys.argv[1], side) for side in SIDES)
    results = RESULT.findall(printed)
    if len(results) != 2 * len(SIDES):
        sys.exit(f"ij does not say what it found: {printed[-300:]}")
    times = re.findall(r"^(?:Setup|Solve) phase times:\n.*?wall clock time = ([0-9.]+)", printed, re.M | re.S)
    seconds = sum(map(float, times))
    print(json.dumps({"client": "hypre", "digest": hashlib.sha256("\n".join(results).encode()).hexdigest(),
                      "seconds": round(seconds, 4)}))


main()
