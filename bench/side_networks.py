"""Lines 11 and 13b to 20 of naru and of PyTorch, whose API is one. Every work also says what its results are (`summary`), which run.py compares.

As the library `channels_last`, PyTorch runs lines 15 and 15b in that layout. naru runs them in both, as works of their own, and either counts beside
the faster layout of PyTorch.
"""
import resource
import subprocess
import sys
import time
from pathlib import Path

import networks
from operands import drawn, summary

PROGRAMS = Path(__file__).resolve().parent / "programs"
HEAVY = {"repetitions": 5, "warm": 1, "target": 0.01, "limit": 4.0}  # for work of tens of milliseconds and more


class NetworkLines:
    def given(self, *shape, seed=0, **options):
        return self.torch.from_numpy(drawn(shape, seed)).requires_grad_(options.get("requires_grad", False))

    def found(self, *tensors):
        """The summaries of tensors, one behind the other."""
        return [v for t in tensors for v in summary(t.detach().float().cpu().numpy())]

    def line_11(self):
        for label, dtype in (("bf16", self.torch.bfloat16), ("fp16", self.torch.float16)):
            for n in (256, 512, 1024, 2048, 4096):
                a, b = self.given(n, n).to(dtype), self.given(n, n, seed=1).to(dtype)
                self.time(f"matmul {label} {n}", lambda a, b: a @ b, a, b, check=self.found(a @ b), tolerance=0.05, **HEAVY)

    def line_13b(self):
        torch = self.torch
        works = (("T 64, B 16, 128 to 128", (64, 16, 128, 128), {}), ("T 50, B 1, 64 to 128", (50, 1, 64, 128), {}), ("T 64, B 16, 32 to 32", (64, 16, 32, 32), {}),
                 ("T 64, B 16, 128 to 128, 2 layers, both directions", (64, 16, 128, 128), {"num_layers": 2, "bidirectional": True}))
        for kind in ("LSTM", "GRU"):
            for label, (steps, batch, width, hidden), options in works:
                model = networks.filled(torch, getattr(torch.nn, kind)(width, hidden, **options))
                x = self.given(steps, batch, width, requires_grad=True)
                g = self.given(*model(x)[0].shape, seed=1)

                def forward():
                    with torch.no_grad():
                        self.done(model(x)[0])

                def both():
                    model(x)[0].backward(g)
                    self.clear((x, *model.parameters()))
                with torch.no_grad():
                    wanted = self.found(model(x)[0])
                model(x)[0].backward(g)
                gradients = self.found(x.grad, *(p.grad for p in model.parameters()))
                self.report(f"{kind}, {label}, forward", forward, check=wanted)
                self.report(f"{kind}, {label}, forward and backward", both, check=gradients)

    def clear(self, leaves):
        for t in leaves:
            if t.grad is not None:
                self.done(t.grad)
                t.grad = None

    def line_14(self):
        torch = self.torch
        tokens = torch.from_numpy((abs(drawn((12, 129))) * 1e4).astype("int64") % 65)
        loss_of = torch.nn.functional.cross_entropy
        for label, fused in (("naive attention", False), ("sdpa", True)):
            model = networks.gpt(torch, fused)
            self.steps(f"char-GPT step, 12 × 128 tokens, {label}, AdamW", model, lambda p: torch.optim.AdamW(p, lr=1e-4, **self.fused()),
                       lambda model, x, y: loss_of(model(x).view(-1, 65), y.reshape(-1)), tokens[:, :-1], tokens[:, 1:])

    def fused(self):
        """PyTorch's optimizers as fast as they go."""
        return {} if self.library == "naru" else {"fused": True}

    def steps(self, work, model, optimizer, loss_of, x, y):
        """Training steps; the losses of the first three are what is compared."""
        opt, loss = optimizer(model.parameters()), self.compiled(loss_of)

        def step():
            opt.zero_grad()
            value = loss(model, x, y)
            value.backward()
            opt.step()
            return value
        losses = [float(step().detach()) for _ in range(3)]
        for group in opt.param_groups:
            group["lr"] = 1e-6
        self.report(work, lambda: self.done(step().detach()), check=losses, **HEAVY)

    def line_14b(self):
        torch = self.torch
        model = networks.gpt(torch, True, block=256).eval()

        def generate(count=256):
            token, past, seen = torch.tensor([[1]]), [None] * 4, []
            empty = torch.zeros(1, 4, 0, 32)
            past = [(empty, empty)] * 4
            with torch.no_grad():
                for position in range(count):
                    logits, past = model.step(token, torch.tensor([position]), past)
                    token = logits[:, -1].argmax(-1, keepdim=True)
                    seen.append(token)
            return [float(t) for t in torch.cat(seen).flatten().tolist()], logits
        tokens, logits = generate(16)
        self.report("generation, batch 1, 256 tokens, with a cache", generate, check=[*tokens, *self.found(logits)], **HEAVY)

    def line_14c(self):
        attention = self.torch.nn.functional.scaled_dot_product_attention
        for t in (128, 512, 1024, 2048, 4096):
            q, k, v = (self.given(8, 8, t, 64, seed=s, requires_grad=True) for s in range(3))
            g = self.given(8, 8, t, 64, seed=3)
            for label, causal in (("", False), (", causal", True))[t == 4096:]:  # the longest takes seconds a call
                def forward(q, k, v, causal=causal):
                    return attention(q, k, v, is_causal=causal)

                def alone():
                    with self.torch.no_grad():
                        self.done(forward(q, k, v))

                def both():
                    forward(q, k, v).backward(g)
                    self.clear((q, k, v))
                out = forward(q, k, v)
                out.backward(g)
                wanted, gradients = self.found(out), self.found(q.grad, k.grad, v.grad)
                del out
                self.clear((q, k, v))
                self.report(f"attention (8, 8, {t}, 64){label}, forward", alone, check=wanted, **HEAVY)
                self.report(f"attention (8, 8, {t}, 64){label}, forward and backward", both, check=gradients, **HEAVY)

    def layouts(self):
        """(the format, the endings of the works' names that it is measured for) of this side."""
        last = ", channels_last"
        if self.library == "naru":
            return ((self.torch.contiguous_format, ("",)), (self.torch.channels_last, (last,)))
        return (((self.torch.channels_last if self.library == "channels_last" else self.torch.contiguous_format), ("", last)),)

    def line_15(self):
        F = self.torch.nn.functional
        works = (
            ("conv 3 × 3, (32, 64, 56, 56)", (32, 64, 56, 56), (64, 64, 3, 3), lambda x, w: F.conv2d(x, w, padding=1)),
            ("conv 1 × 1, (32, 64, 56, 56)", (32, 64, 56, 56), (64, 64, 1, 1), F.conv2d),
            ("conv depthwise, (32, 64, 56, 56)", (32, 64, 56, 56), (64, 1, 3, 3), lambda x, w: F.conv2d(x, w, padding=1, groups=64)),
            ("conv 7 × 7, stride 2, (8, 3, 224, 224)", (8, 3, 224, 224), (64, 3, 7, 7), lambda x, w: F.conv2d(x, w, stride=2, padding=3)),
            ("conv transposed, stride 2, (32, 64, 28, 28)", (32, 64, 28, 28), (64, 64, 3, 3), lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1)),
            ("max pool 3 × 3, stride 2, (32, 64, 56, 56)", (32, 64, 56, 56), (1,), lambda x, w: F.max_pool2d(x, 3, 2, 1)),
            ("batch norm, (32, 64, 56, 56)", (32, 64, 56, 56), (64,), lambda x, w: F.batch_norm(x, None, None, w, w, training=True)),
        )
        for layout, endings in self.layouts():
            for label, shape, weight, function in works:
                if self.library == "compile" and label.startswith("conv"):
                    continue  # compiled, it is the same call
                self.one_layer(label, endings, layout, self.given(*shape), self.given(*weight, seed=1), self.compiled(function))

    def one_layer(self, label, endings, layout, x, w, function):
        """Forward, each gradient alone, and forward with backward."""
        grad = self.torch.autograd.grad
        x = x.contiguous(memory_format=layout).requires_grad_()
        w = (w.contiguous(memory_format=layout) if w.dim() == 4 else w).requires_grad_()
        y = function(x, w)
        g = self.given(*y.shape, seed=2).contiguous(memory_format=layout)
        used = (x, w) if not label.startswith("max") else (x,)
        wanted, gradients = self.found(y), [self.found(t) for t in grad(y, used, g)]

        def forward():
            with self.torch.no_grad():
                self.done(function(x, w))
        works = [("forward", forward, wanted), ("forward and backward", lambda: self.done(grad(function(x, w), used, g)[0]), sum(gradients, []))]
        # A gradient alone runs backward over one graph; torch.compile's graphs compute all at once.
        if self.library != "compile":
            kept = function(x, w)
            for name, t, check in zip(("input", "weight"), used, gradients):
                works.append((f"gradient of the {name}", lambda t=t: self.done(grad(kept, t, g, retain_graph=True)[0]), check))
        for what, call, check in works:
            self.report([f"{label}, {what}{end}" for end in endings], call, check=check, **HEAVY)

    def line_15b(self):
        torch = self.torch
        loss_of, sgd = torch.nn.functional.cross_entropy, lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9, **self.fused())
        ask = lambda model, x, y: loss_of(model(x), y)  # noqa: E731
        classes = lambda *shape: torch.from_numpy((abs(drawn(shape, 5)) * 1e4).astype("int64") % 10)  # noqa: E731
        for layout, endings in self.layouts():
            place = lambda t, layout=layout: t.contiguous(memory_format=layout)  # noqa: E731
            there = lambda model, layout=layout: model.to(memory_format=layout)  # noqa: E731
            named = lambda work, endings=endings: [work + end for end in endings]  # noqa: E731
            self.steps(named("MNIST CNN step, batch 64"), there(networks.mnist_cnn(torch)), sgd, ask, place(self.given(64, 1, 28, 28)), classes(64))
            self.steps(named("ResNet-18 step, (8, 3, 64, 64)"), there(networks.resnet18(torch)), sgd, ask, place(self.given(8, 3, 64, 64)), classes(8))
            self.steps(named("U-Net step, (4, 3, 64, 64)"), there(networks.unet(torch)), sgd, ask, place(self.given(4, 3, 64, 64)), classes(4, 64, 64) % 2)
            model, x = there(networks.resnet18(torch)).eval(), place(self.given(1, 3, 224, 224))
            forward = self.compiled(model)

            def infer():
                with torch.no_grad():
                    return forward(x)
            self.report(named("ResNet-18 inference, (1, 3, 224, 224)"), lambda infer=infer: self.done(infer()), check=self.found(infer()), **HEAVY)

    def line_20(self):
        """Whole programs, import included, in a process of their own: processor time on one thread, else time. Their last line of numbers is compared."""
        for program in sorted(PROGRAMS.glob("*.py")):
            command = [sys.executable, *(["-m", "naru", "run"] if self.library == "naru" else []), str(program)]
            times = []
            for _ in range(3):
                used, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode != 0:
                    sys.exit(done.stderr)
                now = resource.getrusage(resource.RUSAGE_CHILDREN)
                times.append(now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime if self.threads == 1 else time.perf_counter() - start)
            self.row(f"program {program.stem}", sorted(times)[1], check=[float(v) for v in done.stdout.splitlines()[-1].split()], tolerance=0.02)
