"""NVIDIA's cuda.core: buffers of each kind of memory, in streams, with their contents read back."""
import ctypes

from cuda.bindings import driver
from cuda.core import Device

SIZES = (1, 512, 4096, 65536, 1 << 20, (4 << 20) + 7)


def kinds(device):
    """What allocates, by name."""
    yield "device's own", device.allocate
    for name in ("DeviceMemoryResource", "LegacyPinnedMemoryResource", "PinnedMemoryResource",
                 "ManagedMemoryResource"):
        try:
            core = __import__("cuda.core", fromlist=[name])
            kind = getattr(core, name)
            resource = kind(device) if name == "DeviceMemoryResource" else kind()
        except Exception as error:  # pylint: disable=broad-exception-caught
            print(name, "refused", type(error).__name__)
            continue
        yield name, resource.allocate


def right(allocate, stream, size):
    """Whether a buffer holds what was written into it."""
    buffer = allocate(size, stream=stream)
    sent, got = (ctypes.c_char * size)(*bytes(i % 251 for i in range(size))), (ctypes.c_char * size)()
    pointer = int(buffer.handle)
    errors = [driver.cuMemcpyHtoD(pointer, ctypes.addressof(sent), size)[0],
              driver.cuMemcpyDtoH(ctypes.addressof(got), pointer, size)[0]]
    buffer.close(stream)
    return sent.raw == got.raw and all(error == 0 for error in errors)


device = Device()
device.set_current()
stream = device.create_stream()
print(device.name, device.compute_capability)
for name, allocate in kinds(device):
    for size in SIZES:
        try:
            print(name, size, "right" if right(allocate, stream, size) else "wrong")
        except Exception as error:  # pylint: disable=broad-exception-caught
            print(name, size, type(error).__name__)
first, second = stream.record(), device.create_stream()
second.wait(first)
second.sync()
print("event", first.is_done, "right" if stream.handle != second.handle else "wrong")
