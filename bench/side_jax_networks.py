"""JAX's side of lines 11 and 13b to 15: everything under jit, gradients by vjp, with the operands of side_networks.py."""
import math

import jax
import jax.numpy as jnp
import numpy as np
from operands import drawn, parameter, summary

HEAVY = {"repetitions": 5, "warm": 1, "target": 0.01, "limit": 4.0}


def found(*arrays):
    return [v for a in arrays for v in summary(np.asarray(a, np.float32))]


def with_gradients(function):
    """function(*operands) -> the gradients of all of them, for the gradient of the result."""
    def both(g, *operands):
        return jax.vjp(function, *operands)[1](g)
    return both


def lstm(w, x):
    """One layer; w: w_ih, w_hh, b_ih, b_hh."""
    w_ih, w_hh, b_ih, b_hh = w
    from_input = x @ w_ih.T + (b_ih + b_hh)

    def step(state, row):
        h, c = state
        i, f, g, o = jnp.split(row + h @ w_hh.T, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h
    zeros = jnp.zeros((x.shape[1], w_hh.shape[1]))
    return jax.lax.scan(step, (zeros, zeros), from_input)[1]


def gru(w, x):
    w_ih, w_hh, b_ih, b_hh = w
    from_input = x @ w_ih.T + b_ih

    def step(h, row):
        (r, z, n), (hr, hz, hn) = jnp.split(row, 3, -1), jnp.split(h @ w_hh.T + b_hh, 3, -1)
        n, z = jnp.tanh(n + jax.nn.sigmoid(r + hr) * hn), jax.nn.sigmoid(z + hz)
        h = n + z * (h - n)
        return h, h
    return jax.lax.scan(step, jnp.zeros((x.shape[1], w_hh.shape[1])), from_input)[1]


def attention(q, k, v, causal):
    t = q.shape[-2]
    weights = q @ jnp.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    if causal:
        weights = jnp.where(jnp.tril(jnp.ones((t, t), bool)), weights, -jnp.inf)
    return jax.nn.softmax(weights, -1) @ v


def layer_norm(x, w, b):
    m = x.mean(-1, keepdims=True)
    return (x - m) * jax.lax.rsqrt(jnp.square(x - m).mean(-1, keepdims=True) + 1e-5) * w + b


def gpt(p, tokens, heads=4):
    """minGPT's network; p: its parameters in the order of networks.gpt."""
    p = iter(p)
    wte, wpe = next(p), next(p)
    x = wte[tokens] + wpe[: tokens.shape[1]]
    for _ in range(4):
        w1, b1, wa, ba, wp, bp, w2, b2, wf, bf, wo, bo = (next(p) for _ in range(12))
        b, t, c = x.shape
        q, k, v = (part.reshape(b, t, heads, c // heads).swapaxes(1, 2) for part in jnp.split(layer_norm(x, w1, b1) @ wa.T + ba, 3, -1))
        x = x + attention(q, k, v, True).swapaxes(1, 2).reshape(b, t, c) @ wp.T + bp
        x = x + jax.nn.gelu(layer_norm(x, w2, b2) @ wf.T + bf, approximate=True) @ wo.T + bo
    return layer_norm(x, next(p), next(p)) @ next(p).T


def gpt_shapes(vocabulary=65, block=128, width=128):
    one = [(width,), (width,), (3 * width, width), (3 * width,), (width, width), (width,), (width,), (width,), (4 * width, width), (4 * width,), (width, 4 * width), (width,)]
    return [(vocabulary, width), (block, width), *one * 4, (width,), (width,), (vocabulary, width)]


class NetworkLines:
    def line_11(self):
        for label, dtype in (("bf16", jnp.bfloat16), ("fp16", jnp.float16)):
            for n in (256, 512, 1024, 2048, 4096):
                a, b = (jnp.asarray(drawn((n, n), s), dtype) for s in range(2))
                self.time(f"matmul {label} {n}", jnp.matmul, a, b, check=found(a @ b), tolerance=0.05, **HEAVY)

    def line_13b(self):
        for kind, gates, function in (("LSTM", 4, lstm), ("GRU", 3, gru)):
            for label, (steps, batch, width, hidden) in (("T 64, B 16, 128 to 128", (64, 16, 128, 128)), ("T 50, B 1, 64 to 128", (50, 1, 64, 128)),
                                                         ("T 64, B 16, 32 to 32", (64, 16, 32, 32))):
                shapes = [(gates * hidden, width), (gates * hidden, hidden), (gates * hidden,), (gates * hidden,)]
                w, x = [jnp.asarray(parameter(s, i)) for i, s in enumerate(shapes)], jnp.asarray(drawn((steps, batch, width)))
                g = jnp.asarray(drawn((steps, batch, hidden), 1))
                self.time(f"{kind}, {label}, forward", function, w, x, check=found(jax.jit(function)(w, x)))
                both = with_gradients(function)
                dw, dx = jax.jit(both)(g, w, x)
                self.time(f"{kind}, {label}, forward and backward", both, g, w, x, check=found(dx, *dw))

    def line_14(self):
        draws = (np.abs(drawn((12, 129))) * 1e4).astype(np.int64) % 65
        x, y = jnp.asarray(draws[:, :-1]), jnp.asarray(draws[:, 1:])

        def loss(p):
            logits = jax.nn.log_softmax(gpt(p, x), -1)
            return -jnp.take_along_axis(logits, y[..., None], -1).mean()

        def step(p, m, v, t, rate):
            value, g = jax.value_and_grad(loss)(p)
            t = t + 1
            m, v = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g), jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
            a, b = 1 - 0.9**t, 1 - 0.999**t
            p = jax.tree.map(lambda p, m, v: p * (1 - rate * 0.01) - rate * (m / a) / (jnp.sqrt(v / b) + 1e-8), p, m, v)
            return value, p, m, v, t
        compiled = jax.jit(step, donate_argnums=(0, 1, 2, 3))
        p = [jnp.asarray(parameter(s, i)) for i, s in enumerate(gpt_shapes())]
        state = (p, [jnp.zeros_like(a) for a in p], [jnp.zeros_like(a) for a in p], jnp.float32(0))
        losses = []
        for _ in range(3):
            value, *state = compiled(*state, jnp.float32(1e-4))
            losses.append(float(value))

        def call():
            nonlocal state
            value, *state = jax.block_until_ready(compiled(*state, jnp.float32(1e-6)))
        self.report([f"char-GPT step, 12 × 128 tokens, {how}, AdamW" for how in ("naive attention", "sdpa")], call, check=losses, **HEAVY)

    def line_14c(self):
        for t in (128, 512, 1024, 2048):  # 4096: JAX keeps all weights, 4 GiB
            q, k, v, g = (jnp.asarray(drawn((8, 8, t, 64), s)) for s in range(4))
            for label, causal in (("", False), (", causal", True)):
                def forward(q, k, v, causal=causal):
                    return attention(q, k, v, causal)
                both = with_gradients(forward)
                self.time(f"attention (8, 8, {t}, 64){label}, forward", forward, q, k, v, check=found(jax.jit(forward)(q, k, v)), **HEAVY)
                self.time(f"attention (8, 8, {t}, 64){label}, forward and backward", both, g, q, k, v, check=found(*jax.jit(both)(g, q, k, v)), **HEAVY)

    def line_15(self):
        lax = jax.lax
        plain = ("NHWC", "HWIO", "NHWC")  # the layout that XLA's processors like best

        def conv(stride, padding, groups=1):
            return lambda x, w: lax.conv_general_dilated(x, w, (stride, stride), [(padding, padding)] * 2, dimension_numbers=plain, feature_group_count=groups)

        def pool(x, w):
            return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), [(0, 0), (1, 1), (1, 1), (0, 0)])

        def norm(x, w):
            m = x.mean((0, 1, 2))
            return (x - m) * lax.rsqrt(jnp.square(x - m).mean((0, 1, 2)) + 1e-5) * w + w
        works = (("conv 3 × 3, (32, 64, 56, 56)", (32, 64, 56, 56), (64, 64, 3, 3), conv(1, 1)), ("conv 1 × 1, (32, 64, 56, 56)", (32, 64, 56, 56), (64, 64, 1, 1), conv(1, 0)),
                 ("conv depthwise, (32, 64, 56, 56)", (32, 64, 56, 56), (64, 1, 3, 3), conv(1, 1, 64)),
                 ("conv 7 × 7, stride 2, (8, 3, 224, 224)", (8, 3, 224, 224), (64, 3, 7, 7), conv(2, 3)),
                 ("max pool 3 × 3, stride 2, (32, 64, 56, 56)", (32, 64, 56, 56), (1,), pool), ("batch norm, (32, 64, 56, 56)", (32, 64, 56, 56), (64,), norm))
        back = lambda t: np.asarray(t).transpose(0, 3, 1, 2)  # noqa: E731
        for label, shape, weight, function in works:
            x, w = jnp.asarray(drawn(shape).transpose(0, 2, 3, 1)), drawn(weight, 1)
            w = jnp.asarray(w.transpose(2, 3, 1, 0) if w.ndim == 4 else w)
            y = jax.jit(function)(x, w)
            n, h, wide, c = y.shape
            g, both, names = jnp.asarray(drawn((n, c, h, wide), 2).transpose(0, 2, 3, 1)), with_gradients(function), lambda what: [f"{label}, {what}{end}" for end in ("", ", channels_last")]
            dx, dw = jax.jit(both)(g, x, w)
            gradients = [*found(back(dx)), *(found(np.asarray(dw).transpose(3, 2, 0, 1) if dw.ndim == 4 else dw) if not label.startswith("max") else [])]
            self.time(names("forward"), function, x, w, check=found(back(y)), **HEAVY)
            self.time(names("forward and backward"), both, g, x, w, check=gradients, **HEAVY)
