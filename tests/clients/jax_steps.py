"""Arrays in JAX that come and go, their contents read back. Nothing is compiled: that needs cuDNN, which
brings NVIDIA's static runtime, and this refuses the stand-in."""
import numpy
from jax._src import hardware_utils

# JAX looks for a device's files in /dev before it loads the driver; the stand-in has none.
hardware_utils.has_visible_nvidia_gpu = lambda: True

import jax  # noqa: E402  # pylint: disable=wrong-import-position

device = jax.devices()[0]
made = numpy.random.default_rng(1)
held = []
for step in range(60):
    host = made.standard_normal((64 + step * 37 % 200, 1024), dtype=numpy.float32)
    held.append((host, jax.device_put(host, device)))
    if step % 3:
        held.pop(step % len(held))[1].delete()
    right = sum(numpy.array_equal(here, there) for here, there in held[-3:])
    print(step, len(held), "right", right)
