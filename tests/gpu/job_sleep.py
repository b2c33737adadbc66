"""A job of PyTorch whose memory is checked: each line of its input is a count of rounds, and the answer is a digest of
all of it afterwards and how long the first round took. A round adds to every tensor, in a graph and outside it.
usage: job_sleep.py GIB"""

import hashlib
import json
import sys
import time

import torch

GIB = 1 << 30
ROWS = 1024


def digest(tensors):
    sums = torch.stack([tensor.view(ROWS, -1).sum(1) for tensor in tensors])
    return hashlib.sha256(sums.cpu().numpy().tobytes()).hexdigest()


def main():
    count = int(sys.argv[1])
    tensors = [torch.arange(GIB // 8, device="cuda") * (number + 3) for number in range(count)]
    small = torch.zeros(1 << 20, dtype=torch.int64, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        small.add_(5)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    print("ready", flush=True)
    for line in sys.stdin:
        begin = time.monotonic()
        for number in range(int(line)):
            graph.replay()
            for tensor in tensors:
                tensor.add_(7)
            torch.cuda.synchronize()
            if not number:
                first = time.monotonic() - begin
        print(json.dumps({"digest": digest([*tensors, small]), "first": round(first, 3),
                          "seconds": round(time.monotonic() - begin, 3)}), flush=True)


main()
