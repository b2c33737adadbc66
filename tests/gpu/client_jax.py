"""JAX: the same compiled step many times, with arrays that come and go."""
import client

STATE = {}


def start():
    import jax
    import jax.numpy as jnp
    import numpy

    @jax.jit
    def step(weights, inputs):
        hidden = jnp.tanh(inputs @ weights[0])
        return [w - 1e-3 * g for w, g in zip(weights, (inputs.T @ hidden, hidden.T @ inputs))]

    made = numpy.random.default_rng(1)
    STATE.update(
        step=step, numpy=numpy,
        weights=[jnp.asarray(made.standard_normal(shape, numpy.float32) / 32)
                 for shape in ((512, 1024), (1024, 512))],
        inputs=[jnp.asarray(made.standard_normal((rows, 512), numpy.float32) / 32)
                for rows in (256, 512, 1024)])
    for inputs in STATE["inputs"]:
        jax.block_until_ready(step(STATE["weights"], inputs))
    expected = ("cpu",) if client.ON_CPU else ("gpu", "cuda")
    assert jax.devices()[0].platform in expected, jax.devices()


def work(rounds):
    weights = STATE["weights"]
    for number in range(rounds):
        weights = STATE["step"](weights, STATE["inputs"][number % 3])
    return b"".join(STATE["numpy"].asarray(w).tobytes() for w in weights)


client.run("jax", start, work, 300)
