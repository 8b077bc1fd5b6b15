"""naru's own declarations of OpenCL, which it needs because it builds without headers, agree with Khronos' headers."""
import os
import re
import subprocess
from pathlib import Path

import pytest

HOME = Path(__file__).resolve().parents[3]
TYPES = r"""
#include "backends/opencl/api.h"
constexpr long long kOurs[] = {OURS};
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <type_traits>
// As many parameters, each a pointer or a number of the same size.
template <class R, class... A, class S, class... B>
constexpr bool alike(R (*)(A...), S (*)(B...)) {
  if constexpr (sizeof...(A) != sizeof...(B)) return false;
  else if constexpr (!std::is_void_v<R>) return sizeof(R) == sizeof(S) && ((sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>) && ...);
  else return std::is_void_v<S> && ((sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>) && ...);
}
#define SAME(result, name, parameters) static_assert(alike(decltype(naru::backends::opencl::Api::name){}, decltype(&::name){}), #name);
NARU_OPENCL(SAME)
NARU_OPENCL_2(SAME)
"""


def test_numbers_and_functions_are_those_of_khronos_headers(tmp_path):
    places = ["/usr/include", *os.environ.get("CPLUS_INCLUDE_PATH", "").split(":")]
    if not any((Path(place) / "CL" / "cl_ext.h").exists() for place in places):
        pytest.skip("Khronos' headers are not on this machine (Debian: apt install opencl-c-headers)")
    folder = HOME / "src" / "backends" / "opencl"
    names = re.findall(r"\b(CL_[A-Z_0-9]+) = ", (folder / "api.h").read_text())
    assert len(names) > 40
    same = "".join(f'static_assert(kOurs[{i}] == static_cast<long long>({name}), "{name}");\n' for i, name in enumerate(names))
    errors = re.findall(r"\{(-\d+), \"(CL_\w+)\"", (folder / "api.cpp").read_text())
    assert len(errors) > 10
    same += "".join(f'static_assert({number} == {name}, "{name}");\n' for number, name in errors)
    program = tmp_path / "same.cpp"
    program.write_text(TYPES.replace("OURS", ", ".join(f"naru::backends::opencl::{name}" for name in names)) + same)
    done = subprocess.run(["c++", "-std=c++20", "-fsyntax-only", "-w", f"-I{HOME}/src", f"-I{HOME}/include", str(program)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-4000:]
