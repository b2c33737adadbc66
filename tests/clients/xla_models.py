"""Compiles models for the processor, so that XLA dumps what it assigns (XLA_FLAGS)."""

import jax
import jax.numpy as jnp


def perceptron(x, *weights):
    for w in weights:
        x = jnp.tanh(x @ w)
    return (x * x).sum()


def convolutions(x, *kernels):
    for k in kernels:
        x = jax.nn.relu(jax.lax.conv_general_dilated(x, k, (1, 1), "SAME"))
    return (x * x).mean()


def attention(x, *weights):
    for _ in range(2):
        q, k, v, o = (x @ w for w in weights)
        x = x + jax.nn.gelu(jax.nn.softmax(q @ k.T / 16) @ v) * o
    return (x * x).sum()


def loop(x, w):
    def step(carry, _):
        carry = jnp.sin(carry @ w)
        return carry, carry.sum()
    return jax.lax.scan(step, x, None, length=8)[1].sum()


def pyramid(x, *kernels):
    levels = []
    for k in kernels:
        x = jax.nn.relu(jax.lax.conv_general_dilated(x, k, (2, 2), "SAME"))
        levels.append(x)
    return sum((level ** 2).mean() for level in levels)


def compile_gradient(model, *shapes):
    arguments = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    jax.jit(jax.grad(model, argnums=tuple(range(1, len(shapes))))).lower(*arguments).compile()


compile_gradient(perceptron, (64, 256), *[(256, 256)] * 6)
compile_gradient(convolutions, (4, 8, 32, 32), (16, 8, 3, 3), (16, 16, 3, 3))
compile_gradient(attention, (96, 128), *[(128, 128)] * 4)
compile_gradient(loop, (64, 64), (64, 64))
compile_gradient(pyramid, (2, 3, 64, 64), (8, 3, 3, 3), (16, 8, 3, 3), (32, 16, 3, 3))
