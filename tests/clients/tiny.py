"""Training steps in tinygrad; prints what it holds after each, which no kernel has a say in."""
import gc

from tinygrad import Context, Device, GlobalCounters, Tensor
from tinygrad.nn.optim import SGD

print(Device.DEFAULT)
weights = [Tensor.ones(64, 64).contiguous().realize()]
optimiser = SGD(weights, lr=0.1)
for step in range(2):
    x = Tensor.ones(16 + 8 * step, 64).contiguous().realize()
    for weight in weights:
        x = x.matmul(weight).relu()
    loss = x.square().mean()
    optimiser.zero_grad()
    loss.backward()
    with Context(TRAINING=1):
        optimiser.step()
    loss.numpy()
    gc.collect()
    print(step, loss.shape, GlobalCounters.mem_used)
