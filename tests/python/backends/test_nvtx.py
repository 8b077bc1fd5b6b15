"""Ranges for NVIDIA's profilers: a small stand-in for a profiler receives the tables that NVTX 3 passes to it."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

import naru
import pytest

INJECTED = r"""
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
typedef void (*Function)(void);
typedef struct { size_t size; int (*table)(int module, Function*** table, unsigned* size); } Callbacks;
typedef struct { size_t size; unsigned version, reserved; void (*set)(unsigned); } Version;
static FILE* out;
static int depth;
static void mark(const char* text) { fprintf(out, "mark %s\n", text), fflush(out); }
static unsigned long long start(const char* text) { fprintf(out, "start %s\n", text), fflush(out); return 1ull << 40; }
static void end(unsigned long long id) { fprintf(out, "end %d\n", id == 1ull << 40), fflush(out); }
static int push(const char* text) { fprintf(out, "push %s\n", text), fflush(out); return depth++; }
static int pop(void) { fprintf(out, "pop\n"), fflush(out); return --depth; }
int InitializeInjectionNvtx2(const void* (*get)(unsigned)) {
  out = fopen(getenv("RANGES"), "w");
  const Callbacks* c = get(1);
  const Version* v = get(3);
  Function** table;
  unsigned size = 0;
  if (get(77) || !c || c->size < sizeof *c || !v || v->version < 2 || c->table(99, &table, &size)) return 0;
  v->set(3);
  if (!c->table(1, &table, &size) || size <= 11) return 0;
  *table[2] = (Function)mark, *table[5] = (Function)start, *table[7] = (Function)end, *table[9] = (Function)push, *table[11] = (Function)pop;
  return 1;
}
"""
PROGRAM = """
import torch
from torch.cuda import nvtx
print(nvtx.range_push("outer"), nvtx.range_push("inner"), nvtx.range_pop(), nvtx.range_pop())
torch.cuda.nvtx.range_end(nvtx.range_start("wide"))
nvtx.mark("here")
with nvtx.range("step {} of {n}", 1, n=2):
    pass
@nvtx.range("a function")
def f(): return 5
try:
    with nvtx.range("failing"):
        raise KeyError
except KeyError:
    print(f())
"""


def said(tmp_path, **variables):
    (tmp_path / "program.py").write_text(PROGRAM)
    env = {**os.environ, "PYTHONPATH": str(Path(naru.__file__).resolve().parents[1]), **variables}
    done = subprocess.run([sys.executable, "-m", "naru", "run", str(tmp_path / "program.py")], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("cc") is None or sys.platform != "linux", reason="no C compiler, which makes the profiler")
def test_a_profiler_hears_of_ranges_and_marks(tmp_path):
    (tmp_path / "injected.c").write_text(INJECTED)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "injected.so", tmp_path / "injected.c"], check=True)
    assert said(tmp_path, NVTX_INJECTION64_PATH=str(tmp_path / "injected.so"), RANGES=str(tmp_path / "ranges")) == ["0", "1", "1", "0", "5"]
    heard = (tmp_path / "ranges").read_text().splitlines()
    assert heard == ["push outer", "push inner", "pop", "pop", "start wide", "end 1", "mark here", "push step 1 of 2", "pop", "push failing", "pop", "push a function", "pop"]


@pytest.mark.parametrize("path", [None, "/nowhere/profiler.so"])
def test_without_a_profiler_they_do_nothing(tmp_path, path):
    assert said(tmp_path, **({"NVTX_INJECTION64_PATH": path} if path else {})) == ["0", "0", "0", "0", "5"]
