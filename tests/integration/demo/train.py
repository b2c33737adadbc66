#!/usr/bin/env python3
"""A training loop in Python, straight on the CUDA runtime through ctypes (no packages needed).

train.py [ITERATIONS [WARM-UP [pause]]]: the like of train.c, smaller. Layers allocate going
forward and free in reverse going back; sizes vary by iteration; what each layer left is compared
with what it must be. Prints one line of JSON when warm and one at the end; with `pause` it waits
for a line on standard input after each. Over sim the lines also carry the driver's counts.
"""

import ctypes
import json
import sys
import time
import zlib

LAYERS, STREAMS, PIECE = 6, 2, 4096
TO_HOST, ON_DEVICE = 2, 3


def load_runtime():
    for name in ("libcudart.so.13", "libcudart.so.12", "libcudart.so"):
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            problem = error
    sys.exit(f"train.py: {problem}")


RUNTIME = load_runtime()
RUNTIME.cudaGetErrorString.restype = ctypes.c_char_p


def call(name, *arguments):
    error = getattr(RUNTIME, name)(*arguments)
    if error:
        sys.exit(f"train.py: {name}: {RUNTIME.cudaGetErrorString(error).decode()}")


class Run:
    def __init__(self):
        self.allocations = self.frees = self.mismatches = self.checksum = 0
        self.held, self.most_held = {}, 0  # bytes of device memory, by address
        self.allocating = 0.0  # seconds in cudaMalloc and cudaFree
        self.streams = [ctypes.c_void_p() for _ in range(STREAMS)]
        for stream in self.streams:
            call("cudaStreamCreateWithFlags", ctypes.byref(stream), 1)
        self.weights = [self.allocate(size(0, layer)) for layer in range(LAYERS)]
        self.left = self.allocate(LAYERS * PIECE)
        self.seen = ctypes.create_string_buffer(LAYERS * PIECE)

    def allocate(self, size_in_bytes):
        address = ctypes.c_void_p()
        begin = time.perf_counter()
        call("cudaMalloc", ctypes.byref(address), ctypes.c_size_t(size_in_bytes))
        self.allocating += time.perf_counter() - begin
        self.allocations += 1
        self.held[address.value] = size_in_bytes
        self.most_held = max(self.most_held, sum(self.held.values()))
        return address

    def free(self, address):
        begin = time.perf_counter()
        call("cudaFree", address)
        self.allocating += time.perf_counter() - begin
        self.frees += 1
        del self.held[address.value]

    def iterate(self, number):
        activations = []
        for layer in range(LAYERS):
            stream = self.streams[layer % STREAMS]
            activation = self.allocate(size(number, layer))
            workspace = self.allocate(size(number, layer) // 3)
            mark = ctypes.c_int(mark_of(number, layer))
            call("cudaMemsetAsync", workspace, mark, ctypes.c_size_t(PIECE), stream)
            self.copy(activation.value, workspace.value, stream)
            self.free(workspace)
            activations.append(activation)
        for layer in reversed(range(LAYERS)):
            stream = self.streams[layer % STREAMS]
            gradient = self.allocate(size(number, layer))
            self.copy(gradient.value, activations[layer].value, stream)
            self.copy(self.left.value + layer * PIECE, gradient.value, stream)
            self.free(gradient)
            self.free(activations[layer])
        call("cudaDeviceSynchronize")
        self.compare(number)

    def copy(self, to, source, stream):
        call(
            "cudaMemcpyAsync", ctypes.c_void_p(to), ctypes.c_void_p(source),
            ctypes.c_size_t(PIECE), ON_DEVICE, stream,
        )

    def compare(self, number):
        call("cudaMemcpy", self.seen, self.left, ctypes.c_size_t(LAYERS * PIECE), TO_HOST)
        expected = b"".join(bytes([mark_of(number, layer)]) * PIECE for layer in range(LAYERS))
        self.mismatches += self.seen.raw != expected
        self.checksum = zlib.crc32(self.seen.raw, self.checksum)

    def finish(self):
        for address in [*self.weights, self.left]:
            self.free(address)
        for stream in self.streams:
            call("cudaStreamDestroy", stream)


def size(number, layer):
    """1 MiB to 27 MiB, odd sizes, a different length in each of 8 iterations."""
    return (layer % 3 + 1) * (5 + number * 5 % 8) * 750001


def mark_of(number, layer):
    return (number * 31 + layer * 7 + 1) % 256


def driver_counts():
    """The stand-in driver counts its calls; a real one does not tell."""
    keys = {
        "driver_allocations": b"cuMemAlloc_v2",
        "driver_frees": b"cuMemFree_v2",
        "driver_calls": b"total",
        "driver_waits": b"waits",
    }
    try:
        count = ctypes.CDLL("libcuda.so.1").sim_call_count
    except (OSError, AttributeError):
        return dict.fromkeys(keys)
    count.restype = ctypes.c_ulonglong
    return {key: count(name) for key, name in keys.items()}


def report(run, mark, iterations, microseconds, pause):
    print(
        json.dumps(
            {
                "mark": mark,
                "iterations": iterations,
                "us": microseconds,
                "allocations": run.allocations,
                "frees": run.frees,
                "mismatches": run.mismatches,
                "checksum": f"{run.checksum:08x}",
                "allocating_us": run.allocating * 1e6,
                "most_held": run.most_held,
                **driver_counts(),
            }
        ),
        flush=True,
    )
    if pause:
        sys.stdin.readline()


def main(arguments):
    iterations = int(arguments[0]) if arguments else 100
    warm_up = int(arguments[1]) if len(arguments) > 1 else 24
    pause = arguments[2:3] == ["pause"]
    run = Run()
    for number in range(warm_up):
        run.iterate(number)
    report(run, "warm", warm_up, 0, pause)
    begin = time.perf_counter()
    for number in range(warm_up, warm_up + iterations):
        run.iterate(number)
    report(run, "done", iterations, (time.perf_counter() - begin) * 1e6, pause)
    run.finish()
    return run.mismatches != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
