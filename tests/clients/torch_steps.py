"""Training steps of a small network of PyTorch's own kernels, with batches of varying lengths; prints
what PyTorch says it holds after each, which no kernel has a say in."""
import gc

import torch
from torch import nn

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
    print(step, torch.cuda.memory_allocated(), torch.cuda.memory_stats().get("num_ooms", 0))
