"""Training steps of a small network of PyTorch's own kernels, with batches of varying lengths; prints
what PyTorch says it holds after each, which no kernel has a say in. At the end what it has taken from the
device; where a pool serves it, bfcstat's figure stands for PyTorch's own.

With STEPS_OWN_ALLOCATOR its allocator is a plain cudaMalloc and cudaFree (CUDAPluggableAllocator)."""
import gc
import os
import subprocess

import told
import torch
from torch import nn

OWN = """#include <stddef.h>
int cudaMalloc(void **, size_t), cudaFree(void *);
void *take(size_t size, int device, void *stream);
void give(void *address, size_t size, int device, void *stream);
void *take(size_t size, int device, void *stream) {
    void *address = 0;
    (void)device, (void)stream;
    return size && cudaMalloc(&address, size) == 0 ? address : 0;
}
void give(void *address, size_t size, int device, void *stream) {
    (void)size, (void)device, (void)stream;
    if (address)
        cudaFree(address);
}
"""


def use_own_allocator():
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", "own.so", "-L", os.environ["LD_LIBRARY_PATH"],
                    "-lcudart"], input=OWN, text=True, check=True,
                   env={name: value for name, value in os.environ.items() if name != "LD_PRELOAD"})
    torch.cuda.memory.change_current_allocator(
        torch.cuda.memory.CUDAPluggableAllocator(os.path.abspath("own.so"), "take", "give"))


def storages():
    """The bytes of all tensors on the device."""
    sizes = {}
    for thing in gc.get_objects():
        if isinstance(thing, torch.Tensor) and thing.is_cuda:
            for tensor in (thing, thing.grad if thing.is_leaf else None):
                if tensor is not None:
                    storage = tensor.untyped_storage()
                    sizes[storage.data_ptr()] = storage.nbytes()
    return sum(sizes.values())


def taken(caches):
    """What PyTorch has from cudaMalloc: its cache's segments, or each tensor's own bytes."""
    return torch.cuda.memory_reserved() if caches else storages()


own = "STEPS_OWN_ALLOCATOR" in os.environ
setting = os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")
if own:
    use_own_allocator()
torch.backends.cudnn.enabled = False
torch.manual_seed(1)
net = nn.Sequential(nn.Conv2d(8, 8, 3, groups=8, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
                    nn.AvgPool2d(2)).cuda()
table = nn.Embedding(1000, 32).cuda()
optimiser = torch.optim.AdamW([*net.parameters(), *table.parameters()])
for step in range(10):
    image = torch.rand(4 + step % 4, 8, 32, 32, device="cuda")
    words = torch.zeros(3 + step % 5, 16, dtype=torch.long, device="cuda")
    loss = net(image).square().mean() + table(words).square().mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    torch.cuda.synchronize()
    del loss
    gc.collect()
    print(step, storages(), 0 if own else torch.cuda.memory_allocated(),
          0 if own else torch.cuda.memory_stats().get("num_ooms", 0))
if not setting:  # otherwise it maps memory itself, or takes it in stream order: no pool serves it
    print("taken", told.requested(taken(not own and "PYTORCH_NO_CUDA_MEMORY_CACHING" not in os.environ)))
