"""What NVIDIA's management library knows of the device: who else uses it, and how much memory is in use."""

import contextlib
import ctypes
import threading

EVERY = 0.01  # seconds between two looks at the memory in use
MOST_PROCESSES = 64


class Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("instance", ctypes.c_uint),
                ("compute", ctypes.c_uint)]


class NotThere(Exception):
    pass


class Device:
    def __init__(self, uuid, library="libnvidia-ml.so.1"):
        """`uuid`: without a prefix; it may be a part of a device (MIG)."""
        try:
            self.library = ctypes.CDLL(library)
            self.handle = ctypes.c_void_p()
            self.must("nvmlInit_v2")
        except (OSError, AttributeError) as problem:
            raise NotThere(str(problem)) from problem
        for prefix in "GPU-", "MIG-":
            with contextlib.suppress(NotThere):
                self.must("nvmlDeviceGetHandleByUUID", (prefix + uuid).encode(), ctypes.byref(self.handle))
                self.is_part = prefix == "MIG-"
                return
        raise NotThere(f"no device {uuid}")

    def must(self, name, *arguments):
        try:
            status = getattr(self.library, name)(*arguments)
        except AttributeError as problem:
            raise NotThere(str(problem)) from problem
        if status:
            raise NotThere(f"{name} answers {status}")

    def used(self):
        """Bytes in use on the device, by all."""
        memory = Memory()
        self.must("nvmlDeviceGetMemoryInfo", self.handle, ctypes.byref(memory))
        return memory.used

    def other_processes(self):
        """How many compute on it, or None. To be called while no program of ours does."""
        count, found = ctypes.c_uint(MOST_PROCESSES), (Process * MOST_PROCESSES)()
        with contextlib.suppress(NotThere):
            self.must("nvmlDeviceGetComputeRunningProcesses_v3", self.handle, ctypes.byref(count), found)
            return count.value
        return None

    def number(self, name):
        """Of a function that gives one number; None where it is not known."""
        number, rest = ctypes.c_uint(), ctypes.c_uint()
        with contextlib.suppress(NotThere):
            self.must(name, self.handle, ctypes.byref(number), ctypes.byref(rest))
            return number.value
        return None


class Peak:
    """The most memory in use while the body runs, above what was in use before; sampled, so a short peak may be
    missed. `bytes` is None where it cannot be known."""

    def __init__(self, device):
        self.device, self.bytes, self.over = device, None, threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def __enter__(self):
        if self.device:
            with contextlib.suppress(NotThere):
                self.before = self.most = self.device.used()
                self.thread.start()
        return self

    def watch(self):
        with contextlib.suppress(NotThere):
            while not self.over.wait(EVERY):
                self.most = max(self.most, self.device.used())

    def __exit__(self, *_):
        self.over.set()
        if self.thread.ident:
            self.thread.join()
            self.bytes = self.most - self.before
