"""JAX: steps of a small transformer, compiled for several lengths of text.

CLIENT_SIZE=small is for trying it where there is no GPU.
"""
import os

import client

SMALL = os.environ.get("CLIENT_SIZE") == "small"
LAYERS, WIDTH, HEADS, BATCH, LENGTHS = (1, 32, 2, 2, (8, 16)) if SMALL else (4, 512, 8, 8, (128, 512))
STATE = {}


def start():
    import jax
    import jax.numpy as jnp
    import numpy

    def normed(x):
        return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)

    def block(x, weights):
        q, k, v = (jnp.einsum("btw,whd->bhtd", normed(x), weights[name]) for name in "qkv")
        scores = jnp.einsum("bhtd,bhsd->bhts", q, k) * (WIDTH // HEADS) ** -0.5
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[2:], bool)), scores, -1e9)
        x = x + jnp.einsum("bhts,bhsd,hdw->btw", jax.nn.softmax(scores), v, weights["out"])
        return x + jax.nn.gelu(normed(x) @ weights["wide"]) @ weights["narrow"]

    def loss(model, x):
        y = x
        for weights in model:
            y = block(y, weights)
        return ((y[:, :-1] - x[:, 1:]) ** 2).mean()

    @jax.jit
    def step(model, x):
        value, slopes = jax.value_and_grad(loss)(model, x)
        return jax.tree.map(lambda w, slope: w - 1e-2 * slope, model, slopes), value

    made = numpy.random.default_rng(1)

    def weights(*shape):
        return jnp.asarray(made.standard_normal(shape, numpy.float32) * 0.02)

    head = WIDTH // HEADS
    STATE.update(
        step=step, jax=jax,
        model=[{**{name: weights(WIDTH, HEADS, head) for name in "qkv"}, "out": weights(HEADS, head, WIDTH),
                "wide": weights(WIDTH, 4 * WIDTH), "narrow": weights(4 * WIDTH, WIDTH)} for _ in range(LAYERS)],
        texts=[jnp.asarray(made.standard_normal((BATCH, length, WIDTH), numpy.float32)) for length in LENGTHS])
    for text in STATE["texts"]:
        jax.block_until_ready(step(STATE["model"], text))
    expected = ("cpu",) if client.ON_CPU else ("gpu", "cuda")
    assert jax.devices()[0].platform in expected, jax.devices()


def work(rounds):
    model, losses = STATE["model"], []
    for number in range(rounds):
        model, loss = STATE["step"](model, STATE["texts"][number % len(LENGTHS)])
        losses.append(float(loss))
    return repr(losses).encode()


client.run("jax_transformer", start, work, 150)
