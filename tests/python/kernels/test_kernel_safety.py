"""User kernels on the host can't end the program, run forever, or use more than arithmetic and math functions."""

import os
import random
import subprocess
import sys
import textwrap

import pytest

import naru



def computed(expression, types, values, result="long", before=""):
    """What a kernel makes of an expression over a, b ..."""
    names = "abcdefgh"[: len(types)]
    params = ", ".join(f"const {t}* {n}_" for n, t in zip(names, types))
    reads = " ".join(f"{t} {n} = {n}_[i];" for n, t in zip(names, types))
    source = f"{before}\nkernel void f({params}, {result}* out) {{ int i = global_id(0); {reads} out[i] = {expression}; }}"
    dtypes = {"int": naru.int32, "long": naru.int64, "short": naru.int16, "char": naru.int8, "unsigned char": naru.uint8, "float": naru.float32, "double": naru.float64}
    columns = [naru.tensor(list(c), dtype=dtypes[t]) for c, t in zip(zip(*values), types)]
    out = naru.zeros(len(values), dtype=dtypes[result])
    naru.kernel(source, "f")(*columns, out, grid=len(values))
    return out.tolist()


def wrapped(n, bits):
    return (n + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def quotient(a, b, bits):
    return 0 if b == 0 else wrapped(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1), bits)


def remainder(a, b, bits):
    return 0 if b == 0 else wrapped(a - b * (abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)), bits)


@pytest.mark.parametrize("kind, bits", [("int", 32), ("long", 64), ("short", 32), ("char", 32)])
def test_integer_division_is_defined_as_in_the_operators(kind, bits):
    width = {"int": 32, "long": 64, "short": 16, "char": 8}[kind]
    edge = [0, 1, -1, 5, -7, 2 ** (width - 1) - 1, -(2 ** (width - 1))]
    pairs = [(a, b) for a in edge for b in edge]
    assert computed("a / b", [kind] * 2, pairs) == [quotient(a, b, bits) for a, b in pairs]
    assert computed("a % b", [kind] * 2, pairs) == [remainder(a, b, bits) for a, b in pairs]
    small = [(a, b) for a, b in pairs if b]
    assert computed("a / b", [kind] * 2, small) == [quotient(a, b, bits) for a, b in small]
    assert computed("(a /= b, a)", [kind] * 2, pairs) == [wrapped(quotient(a, b, bits), width) for a, b in pairs]
    assert computed("(a %= b, a)", [kind] * 2, pairs) == [wrapped(remainder(a, b, bits), width) for a, b in pairs]
    if kind in ("int", "long"):
        a, b = (naru.tensor(c, dtype=getattr(naru, "int32" if kind == "int" else "int64")) for c in zip(*small))
        assert computed("a / b", [kind] * 2, small) == naru.div(a, b, rounding_mode="trunc").tolist()


EXPRESSIONS = [
    "a / b / c", "a / b * c", "a * b / c % d", "-a / b", "a - b / c", "a + -b / -c", "(a + b) / (c - d)", "a / (b / c)", "a / b + c / d * a % b",
    "(int)a / (short)b", "a > b ? a / c : b % d", "a / (b ? b : c)", "~a / b", "!a / b", "a / +b", "(long)-a / b", "(short)(a / b) % c",
    "a << 1 | b / c", "a & b / c ^ d", "a == b / c", "f2(a / b, c % d) / d", "t[(a / b & 3)] / c", "s.x / s.y", "p->x % p->y", "t[0]++ / b",
    "a / b, c / d", "min(a / b, c) / d", "a / sizeof(int)", "sizeof a / b", "a / 3 / b", "DIV(a, b)", "HALF(a) / b", "OVER(a + b, c)", "a / 0x10 % b",
    "(real)a / b", "a / (real)b", "-(real)a / b", "(real)-a / b", "((unsigned)a) / b", "a / 7u / b", "({ int q = a / b; q % c; })", "*&a / *&b",
]  # fmt: skip
BEFORE = """
#define DIV(x, y) ((x) / (y))
#define HALF(x) x / 2
#define OVER(x, y) x / y
typedef float real;
typedef struct { int x, y; } pair;
int f2(int x, int y) { int r = x; r /= y; if (y > 3) r %= y; return r; }
"""


@pytest.mark.parametrize("n", range(4))
def test_divisions_are_spelled_anew_as_c_reads_them(n):
    """Each expression as it is, in a program of the machine's C compiler: where that does not trap, the values are the same."""
    rng = random.Random(n)
    values = [tuple(rng.choice([1, 2, 3, -1, -2, 5, -9, 100, 77]) for _ in range(4)) for _ in range(40)]
    body = "int t[4] = {a, b, c, d}; pair s = {a, b}; pair* p = &s; out[k] = %s;"
    mine = EXPRESSIONS[n::4]
    program = "#include <setjmp.h>\n#include <signal.h>\n#include <stdio.h>\nstatic sigjmp_buf out_of;\nstatic void trap(int s) { siglongjmp(out_of, 1); }\n#define min(a, b) ((a) < (b) ? (a) : (b))\n" + BEFORE + "int main(void) { signal(SIGFPE, trap); static const int v[][4] = {" + ",".join(
        "{%d,%d,%d,%d}" % v for v in values) + "};\n double out[1]; const int k = 0; for (int i = 0; i < %d; ++i) { int a, b, c, d;\n" % len(values) + "\n".join(
        "a = v[i][0], b = v[i][1], c = v[i][2], d = v[i][3]; if (sigsetjmp(out_of, 1)) puts(\"trap\"); else { " + body % e + ' printf("%.17g\\n", out[0]); }' for e in mine) + "}}\n"  # fmt: skip
    kernel = BEFORE.replace("pair* p", "private pair* p") + "kernel void k(const int* v, double* o) { int i = global_id(0); int a, b, c, d; double out[1]; const int k = 0;\n" + "\n".join(
        "a = v[i * 4], b = v[i * 4 + 1], c = v[i * 4 + 2], d = v[i * 4 + 3]; { " + body % e + f" o[i * {len(mine)} + {j}] = out[0]; }}" for j, e in enumerate(mine)) + "}"  # fmt: skip
    out = naru.zeros(len(values) * len(mine), dtype=naru.float64)
    naru.kernel(kernel, "k")(naru.tensor(values, dtype=naru.int32), out, grid=len(values))
    folder = os.environ.get("TMPDIR", "/tmp")
    path = os.path.join(folder, f"naru-division-{os.getpid()}-{n}")
    try:
        subprocess.run(["cc", "-w", "-x", "c", "-std=gnu11", "-fwrapv", "-ffp-contract=off", "-", "-o", path], input=program, text=True, check=True)
        wanted = subprocess.run([path], capture_output=True, text=True, check=True).stdout.split()
    finally:
        if os.path.exists(path):
            os.unlink(path)
    for j, e in enumerate(mine):
        same = [(got, float(want)) for got, want in zip(out.tolist()[j :: len(mine)], wanted[j :: len(mine)]) if want != "trap"]
        assert len(same) > 5 and all(got == want for got, want in same), e


def test_divisions_in_statements_of_every_kind():
    source = """
    #define N 8
    constant int steps[N / 2] = {1, 2, 3, 8 / 2};
    int g(int x, int y) { return x / y; }
    kernel void k(const int* x, int* out) {
      int i = global_id(0), zero = x[0];
      int t[N / 4];
      t[0] = 3, t[1] = 4;
      if (i > 0) { t[0] /= zero; }
      t[1] %= zero ? zero : 3;
      for (int j = N; j / 2 > zero; j /= 2) t[0] += j / (j - j);
      while (t[1] / (zero + 1) > 100) t[1] /= 2;
      switch (i) { case N / 8: t[1] += 10 / zero; break; default: t[1] -= 10 % zero; }
      if (i / zero) t[0] /= zero; else t[0] *= -7 / -zero + 1;
      out[i] = g(t[0], t[1]) + g(t[1], zero) + steps[i % 4] / (zero - 0) + 1000 * t[1];
      do out[i] += t[0] / zero; while (0);
    }"""
    out = naru.zeros(3, dtype=naru.int32)
    naru.kernel(source, "k")(naru.tensor([0], dtype=naru.int32), out, grid=3)
    assert out.tolist() == [1003, 1000, 1000]


def raises(kind, *words):
    return pytest.raises(kind, match="(?s)" + ".*".join(words))


FOREIGN = {
    "a function of the C library": ('system("true"); o[0] = 1;', "", RuntimeError, "system"),
    "one that is declared": ('o[0] = system("true");', "int system(const char*);", RuntimeError, "system"),
    "one under another name": ('o[0] = run("true");', 'int run(const char*) __asm__("system");', ValueError, "__asm__"),
    "memory": ("float* p = malloc(4); o[0] = *p;", "", RuntimeError, "malloc"),
    "the end of the program": ("exit(3);", "void exit(int);", RuntimeError, "exit"),
    "a variable of the C library": ("o[0] = environ != 0;", "extern char** environ;", RuntimeError, "environ"),
    "machine code": ('__asm__("ud2"); o[0] = 1;', "", ValueError, "__asm__"),
    "a header": ("o[0] = 1;", "#include <stdlib.h>", ValueError, "#include"),
    "any file": ("o[0] = 1;", '#  include "/etc/passwd"', ValueError, "#include"),
    "a header by other signs": ("o[0] = 1;", "%:include <stdlib.h>", ValueError, "%:"),
    "a compiler's own": ("o[0] = __builtin_alloca(1 << 30) != 0;", "", ValueError, "__builtin_alloca"),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_kernels_have_no_library_but_mathematics(what):
    body, before, kind, word = FOREIGN[what]
    o = naru.zeros(1)
    with raises(kind, "naru.kernel", word):
        naru.kernel(f"{before}\nkernel void k(float* o) {{ {body} }}", "k")(o, grid=1)
    assert o.item() == 0


def test_mathematics_of_the_machine_is_there():
    o = naru.full((1,), 8.0)
    naru.kernel("kernel void k(float* o) { o[0] = cbrtf(o[0]) + tgammaf(4.0f) + roundf(0.6f) + ldexpf(1.0f, 3) + fmaxf(o[0], 1) + abs(-3); }", "k")(o, grid=1)
    assert o.item() == 2 + 6 + 1 + 8 + 8 + 3


@pytest.mark.parametrize("body, words", [
    ("float t[100000000]; for (int i = 0; i < 100000000; i++) t[i] = i; o[0] = t[5];", ["arrays of their own beyond 262144 bytes"]),
    ("shared float t[100000000]; t[99999999] = 1; barrier(); o[0] = t[99999999];", ["shared arrays have 4000000.. bytes; at most 1048576"]),
    ("int n = (int)o[0] + 100000000; float t[n]; for (int i = 0; i < n; i++) t[i] = i; o[0] = t[5];", ["variable length array"]),
])
def test_arrays_beyond_what_a_thread_has_are_refused(body, words):
    o = naru.zeros(1)
    with raises(RuntimeError, "naru.kernel 'k'", *words):
        naru.kernel(f"kernel void k(float* o) {{ {body} }}", "k")(o, grid=1)


def test_arrays_that_fit_are_fine():
    o = naru.zeros(64)
    naru.kernel("kernel void k(float* o) { float t[50000]; for (int i = 0; i < 50000; i++) t[i] = i + global_id(0); o[global_id(0)] = t[49999] - global_id(0); }", "k")(o, grid=64)
    assert (o == 49999).all()


ENDLESS = {
    "a loop": "kernel void k(float* o) { while (1) o[0] += 1; }",
    "a loop over nothing": "kernel void k(float* o) { volatile int i = 0; for (;;) i++; o[0] = i; }",
    "a goto": "kernel void k(float* o) { again: o[0] += 1; goto again; }",
    "a loop between barriers": "kernel void k(float* o) { barrier(); while (1) { o[local_id(0)] += 1; barrier(); } }",
    "a loop of every item": "kernel void k(float* o) { int i = global_id(0); while (o[i % 8] >= 0) o[i % 8] += 1; }",
}

PROGRAM = """
import os, signal, sys, threading, time
import naru
device, source = sys.argv[1], sys.argv[2]
o = naru.zeros(8, device=device)
k = naru.kernel(source, "k")
k(o, grid=0)
naru._C.synchronize(naru.device(device)) if device != "cpu" else None
other = naru.kernel("kernel void f(float* o) { for (int i = 0; i < 10; i++) o[0] += 1; }", "f")
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    k(o, grid=100000, threads=8)
    o.sum().item()
    print("it ended by itself")
except KeyboardInterrupt:
    print("interrupted")
if device != "cpu":
    try:
        naru._C.synchronize(naru.device(device))
    except RuntimeError as error:
        print("kept" if "interrupted" in str(error) else error)
x = naru.zeros(8, device=device)
other(x, grid=1)
print(x[0].item())
"""


@pytest.mark.parametrize("what", ENDLESS)
@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_a_kernel_without_end_is_ended_by_ctrl_c_and_the_device_goes_on(what, device):
    done = subprocess.run([sys.executable, "-c", PROGRAM, device, ENDLESS[what]], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "NARU_VIRTUAL": "cuda:1"})  # fmt: skip
    kept = "kept\n" if device != "cpu" else ""
    assert (done.returncode, done.stdout) == (0, f"interrupted\n{kept}10.0\n"), done.stderr




def test_a_handler_that_raises_nothing_lets_a_kernel_of_python_threads_run_on():
    """Only the main thread is interrupted; what other threads compute is not."""
    program = """
    import os, signal, threading
    import naru
    signal.signal(signal.SIGINT, lambda *a: print("noted", flush=True))
    k = naru.kernel("kernel void k(float* o) { for (int i = 0; i < 400000000; i++) o[0] = o[0] * 0.5f + 1; }", "k")
    o = naru.zeros(1)
    k(o, grid=0)
    t = threading.Thread(target=lambda: k(o, grid=1))
    t.start()
    os.kill(os.getpid(), signal.SIGINT)
    t.join()
    print(o.item())
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "noted\n2.0\n"), done.stderr
