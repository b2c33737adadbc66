#!/usr/bin/env python3
"""Ten training steps of a small network in PyTorch, of kernels of its own: embedding, depthwise convolution,
normalisation, pooling, elementwise work, reductions, an optimiser. The batches' lengths vary.

Prints after each step the bytes of the tensors that live on the device, and last one line of JSON."""

import gc
import json
import time

import torch
from torch import nn

STEPS, WARM_UP = 10, 2


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(1000, 64)
        self.picture = nn.Sequential(
            nn.Conv2d(16, 16, 3, groups=16, padding=1), nn.BatchNorm2d(16), nn.GELU(), nn.AvgPool2d(2),
            nn.Conv2d(16, 16, 3, groups=16, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2))
        self.norm = nn.LayerNorm(64)

    def forward(self, words, picture):
        meaning = torch.softmax(self.norm(self.words(words)), dim=-1).mean(dim=1)
        return meaning.square().mean() + self.picture(picture).square().mean()


def live():
    """The bytes of the tensors on the device, each storage once."""
    found = {}
    for thing in gc.get_objects():
        if type(thing) in (torch.Tensor, nn.Parameter) and thing.is_cuda:
            for tensor in (thing, thing.grad if thing.is_leaf else None):
                if tensor is not None:
                    storage = tensor.untyped_storage()
                    found[storage.data_ptr()] = storage.nbytes()
    return sum(found.values())


def main():
    torch.backends.cudnn.enabled = False
    network = Network().cuda()
    optimiser = torch.optim.AdamW(network.parameters())
    seconds = []
    for step in range(WARM_UP + STEPS):
        begin = time.perf_counter()
        words = torch.zeros(4 + step % 5, 32, dtype=torch.long, device="cuda")
        picture = torch.rand(4 + step % 3, 16, 64, 64, device="cuda")
        loss = network(words, picture)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
        del loss, words, picture
        print(step, live())
    warm = sorted(seconds[WARM_UP:])
    print(json.dumps({"us_per_step": round(warm[len(warm) // 2] * 1e6, 1)}))


if __name__ == "__main__":
    main()
