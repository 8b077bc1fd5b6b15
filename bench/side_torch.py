"""The side of naru and of PyTorch, whose API is one; `compile` is PyTorch through torch.compile. Lines from 13b on: side_networks.py."""
import statistics
import time

from side_networks import NetworkLines


class Side(NetworkLines):
    def __init__(self, library, threads, row, report, import_seconds):
        if library == "naru":
            import naru as torch
        else:
            import torch
        self.torch, self.library, self.threads = torch, library, threads
        self.row, self.report, self.import_seconds = row, report, import_seconds
        torch.manual_seed(0)
        torch.set_num_threads(threads)
        # naru holds elementwise work back; asking for the memory's address makes it run, and costs PyTorch next to nothing.
        self.done = torch.Tensor.data_ptr

    def run(self, line):
        getattr(self, f"line_{line}", lambda: None)()

    def compiled(self, function):
        return self.torch.compile(function) if self.library == "compile" else function

    def time(self, work, function, *args, **options):
        function, done = self.compiled(function), self.done
        self.report(work, lambda: done(function(*args)), **options)

    def line_2(self):
        torch = self.torch
        x, y = torch.rand(1), torch.rand(1)
        xr = torch.rand(1, requires_grad=True)
        self.report("x + y, n=1, Python", lambda: x + y)
        self.report("x + y, n=1, requires_grad, Python", lambda: xr + y)

        def backward():
            (xr * y).sum().backward()
            xr.grad = None
        self.report("(x * y).sum().backward(), n=1, Python", backward)
        self.row("import, beyond NumPy's", self.import_seconds(self.library))

    def line_3(self):
        self.time("zeros 64 MiB in a loop", lambda: self.torch.zeros(1 << 24))

    def line_4(self):
        torch = self.torch

        def gelu(x):
            return 0.5 * x * (1.0 + torch.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))
        small = torch.randn(1 << 20)
        self.done(small)
        first = self.compiled(gelu)
        times = []
        for _ in range(2):
            start = time.perf_counter()
            self.done(first(small))
            times.append(time.perf_counter() - start)
        self.row("gelu written out in 9 ops, 1 M: the first call, beyond the second", max(times[0] - times[1], 1e-9))
        for n, label in ((1 << 20, "1 M"), (1 << 24, "16 M")):
            self.time(f"gelu written out in 9 ops, {label}", gelu, torch.randn(n), repetitions=5)

    def line_5(self):
        torch = self.torch
        x, y = torch.randn(1 << 24), torch.randn(1 << 24)
        self.time("x + y, 16 M, fresh output", lambda x, y: x + y, x, y)
        self.time("exp, 16 M, fresh output", torch.exp, x)

    def line_6(self):
        v, x = self.torch.randn(1 << 24), self.torch.randn(4096, 1024)
        self.time("sum, 16 M", lambda v: v.sum(), v)
        self.time("max, 16 M", lambda v: v.max(), v)
        self.time("sum(0), (4096, 1024)", lambda x: x.sum(0), x)
        self.time("var(0), (4096, 1024)", lambda x: x.var(0), x)
        self.time("argmax(1), (4096, 1024)", lambda x: x.argmax(1), x)
        self.time("cumsum(1), (4096, 1024)", lambda x: x.cumsum(1), x)
        self.time("sort(1), (4096, 1024)", lambda x: x.sort(1)[0], x, repetitions=5)

    def line_7(self):
        torch = self.torch
        x, g = torch.randn(4096, 1024, requires_grad=True), torch.randn(4096, 1024)
        w, b = torch.ones(1024, requires_grad=True), torch.zeros(1024, requires_grad=True)
        leaves = (x, w, b)
        works = (("softmax", lambda x, w, b: torch.softmax(x, 1)),
                 ("layer_norm", lambda x, w, b: torch.nn.functional.layer_norm(x, (1024,), w, b)))
        for name, function in works:
            self.time(f"{name}, (4096, 1024)", function, *(t.detach() for t in leaves))
            function = self.compiled(function)

            def with_backward():
                function(*leaves).backward(g)
                self.done(x.grad)
                for t in leaves:
                    t.grad = None
            self.report(f"{name} with backward, (4096, 1024)", with_backward)

    def line_8(self):
        self.time("transpose, (4096, 4096)", lambda x: x.t().contiguous(), self.torch.randn(4096, 4096), repetitions=5)

    def line_9(self):
        for n in (256, 512, 1024, 2048, 4096):
            self.time(f"matmul fp32 {n}", lambda a, b: a @ b, self.torch.randn(n, n), self.torch.randn(n, n), repetitions=5)

    def line_10(self):
        torch, nn = self.torch, self.torch.nn
        for n in (8, 64):
            self.time(f"matmul fp32 {n}, Python", lambda a, b: a @ b, torch.randn(n, n), torch.randn(n, n))
        model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
        with torch.no_grad():
            for n in (1, 64):
                self.time(f"MLP 784-256-10 forward, batch {n}", model, torch.randn(n, 784))

    def line_12(self):
        torch, nn = self.torch, self.torch.nn
        x, y = torch.randn(64, 784), torch.randint(0, 10, (64,))
        self.training("MLP 784-256-10 training step, batch 64", lambda: nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)),
                      torch.nn.functional.cross_entropy, x, y)

    def line_13(self):
        torch, nn = self.torch, self.torch.nn
        self.training("MLP 2-16-1 training step, batch 4", lambda: nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1)),
                      torch.nn.functional.mse_loss, torch.randn(4, 2), torch.randn(4, 1))

    def training(self, work, make, loss_of, x, y):
        torch = self.torch
        # PyTorch's Adam as fast as it goes: fused.
        fused = {} if self.library == "naru" else {"fused": True}
        for label, optimizer in (("SGD", lambda p: torch.optim.SGD(p, lr=1e-6)), ("Adam", lambda p: torch.optim.Adam(p, lr=1e-6, **fused))):
            model = make()
            opt = optimizer(model.parameters())
            loss = self.compiled(lambda model, x, y: loss_of(model(x), y))

            def step():
                opt.zero_grad()
                loss(model, x, y).backward()
                opt.step()
            self.report(f"{work}, {label}", step, warm=10)
            for p in model.parameters():
                self.done(p)

    def line_16(self):
        torch = self.torch
        from importlib import import_module
        data = import_module(torch.__name__ + ".utils.data")
        pairs = data.TensorDataset(torch.randn(8192, 784), torch.randint(0, 10, (8192,)))

        def epochs(**options):
            loader = data.DataLoader(pairs, batch_size=64, shuffle=True, **options)
            while True:
                yield from loader
        batches = epochs()
        self.report("loader in memory, batch 64, a batch", lambda: next(batches))
        if self.threads > 1:
            self.row("loader in memory, batch 64, the wait for a prefetched batch", wait_seconds(epochs(num_workers=1)))


def wait_seconds(batches, work=3e-4, count=300):
    """The median time that a program waits for its next batch which works `work` seconds on each."""
    times = []
    for _ in range(count):
        until = time.perf_counter() + work
        while time.perf_counter() < until:
            pass
        start = time.perf_counter()
        next(batches)
        times.append(time.perf_counter() - start)
    return statistics.median(times)
