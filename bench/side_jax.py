"""JAX's side of the benchmark lines: everything under jit, whole steps as one pure function; outputs donated in lines 4 and 5."""
import os

os.environ["JAX_PLATFORMS"] = "cpu"
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from side_jax_networks import NetworkLines  # noqa: E402


class Side(NetworkLines):
    def __init__(self, library, threads, row, report, import_seconds):
        self.row, self.report, self.import_seconds = row, report, import_seconds
        self.rng = np.random.default_rng(0)

    def run(self, line):
        getattr(self, f"line_{line}", lambda: None)()

    def normal(self, *shape):
        return jnp.asarray(self.rng.standard_normal(shape, np.float32))

    def time(self, work, function, *args, **options):
        compiled = jax.jit(function)
        self.report(work, lambda: jax.block_until_ready(compiled(*args)), **options)

    def time_donated(self, work, function, *args, **options):
        """The result written to memory that the caller gives up: the first argument, which is not read."""
        compiled = jax.jit(lambda memory, *args: function(*args), donate_argnums=0, keep_unused=True)
        memory = jnp.zeros_like(args[0])

        def call():
            nonlocal memory
            memory = jax.block_until_ready(compiled(memory, *args))
        self.report(work, call, **options)

    def line_2(self):
        x, y = self.normal(1), self.normal(1)
        add = jax.jit(lambda x, y: x + y)
        grad = jax.jit(jax.grad(lambda x, y: (x * y).sum()))
        self.report("x + y, n=1, Python", lambda: add(x, y))
        self.report("(x * y).sum().backward(), n=1, Python", lambda: grad(x, y))
        self.row("import, beyond NumPy's", self.import_seconds("jax"))

    def line_3(self):
        self.time("zeros 64 MiB in a loop", lambda: jnp.zeros(1 << 24))

    def line_4(self):
        def gelu(x):
            return 0.5 * x * (1.0 + jnp.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))
        for n, label in ((1 << 20, "1 M"), (1 << 24, "16 M")):
            self.time_donated(f"gelu written out in 9 ops, {label}", gelu, self.normal(n), repetitions=5)

    def line_5(self):
        x, y = self.normal(1 << 24), self.normal(1 << 24)
        self.time_donated("x + y, 16 M, fresh output", lambda x, y: x + y, x, y)
        self.time_donated("exp, 16 M, fresh output", jnp.exp, x)

    def line_6(self):
        v, x = self.normal(1 << 24), self.normal(4096, 1024)
        self.time("sum, 16 M", jnp.sum, v)
        self.time("max, 16 M", jnp.max, v)
        self.time("sum(0), (4096, 1024)", lambda x: x.sum(0), x)
        self.time("var(0), (4096, 1024)", lambda x: x.var(0, ddof=1), x)
        self.time("argmax(1), (4096, 1024)", lambda x: x.argmax(1), x)
        self.time("cumsum(1), (4096, 1024)", lambda x: x.cumsum(1), x)
        self.time("sort(1), (4096, 1024)", lambda x: (jnp.sort(x, 1), jnp.argsort(x, 1)), x, repetitions=3)

    def line_7(self):
        x, g = self.normal(4096, 1024), self.normal(4096, 1024)
        w, b = self.normal(1024), self.normal(1024)

        def layer_norm(x, w, b):
            m = x.mean(1, keepdims=True)
            v = jnp.square(x - m).mean(1, keepdims=True)
            return (x - m) * jax.lax.rsqrt(v + 1e-5) * w + b

        def with_backward(f):
            def both(g, *args):
                y, back = jax.vjp(f, *args)
                return y, back(g)
            return both
        softmax = lambda x: jax.nn.softmax(x, 1)  # noqa: E731
        self.time("softmax, (4096, 1024)", softmax, x)
        self.time("layer_norm, (4096, 1024)", layer_norm, x, w, b)
        self.time("softmax with backward, (4096, 1024)", with_backward(softmax), g, x)
        self.time("layer_norm with backward, (4096, 1024)", with_backward(layer_norm), g, x, w, b)

    def line_8(self):
        self.time("transpose, (4096, 4096)", lambda x: x.T.copy(), self.normal(4096, 4096), repetitions=5)

    def line_9(self):
        for n in (256, 512, 1024, 2048, 4096):
            self.time(f"matmul fp32 {n}", jnp.matmul, self.normal(n, n), self.normal(n, n), repetitions=5)

    def line_10(self):
        for n in (8, 64):
            self.time(f"matmul fp32 {n}, Python", jnp.matmul, self.normal(n, n), self.normal(n, n))
        params = self.mlp(784, 256, 10)
        for n in (1, 64):
            self.time(f"MLP 784-256-10 forward, batch {n}", forward, params, self.normal(n, 784))

    def line_12(self):
        labels = jnp.asarray(self.rng.integers(0, 10, 64))

        def loss(params, x):
            return -jnp.take_along_axis(jax.nn.log_softmax(forward(params, x)), labels[:, None], 1).mean()
        self.training("MLP 784-256-10 training step, batch 64", loss, self.mlp(784, 256, 10), self.normal(64, 784))

    def line_13(self):
        y = self.normal(4, 1)
        self.training("MLP 2-16-1 training step, batch 4", lambda params, x: jnp.square(forward(params, x, jnp.tanh) - y).mean(), self.mlp(2, 16, 1), self.normal(4, 2))

    def mlp(self, *widths):
        return [(self.normal(a, b) / a**0.5, jnp.zeros(b)) for a, b in zip(widths, widths[1:])]

    def training(self, work, loss, params, x):
        def sgd(params, state, x):
            return jax.tree.map(lambda p, g: p - 1e-6 * g, params, jax.grad(loss)(params, x)), state

        def adam(params, state, x):
            m, v, t = state
            g, t = jax.grad(loss)(params, x), t + 1
            m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
            v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
            a, b = 1 - 0.9**t, 1 - 0.999**t
            return jax.tree.map(lambda p, m, v: p - 1e-6 * (m / a) / (jnp.sqrt(v / b) + 1e-8), params, m, v), (m, v, t)
        for label, step in (("SGD", sgd), ("Adam", adam)):
            p = jax.tree.map(jnp.copy, params)
            state = () if step is sgd else (jax.tree.map(jnp.zeros_like, p), jax.tree.map(jnp.zeros_like, p), jnp.float32(0))
            compiled = jax.jit(step, donate_argnums=(0, 1))

            def call():
                nonlocal p, state
                p, state = jax.block_until_ready(compiled(p, state, x))
            self.report(f"{work}, {label}", call, warm=10)


def forward(params, x, activation=jax.nn.relu):
    (w1, b1), (w2, b2) = params
    return activation(x @ w1 + b1) @ w2 + b2
