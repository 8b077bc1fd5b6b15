"""The public headers compile with every installed compiler, without warnings, each on its own, and do not include fmt."""
import functools
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

INCLUDE = Path(__file__).resolve().parents[3] / "include"
# Old header paths: each contains one line that includes the new header. (torch/ and distributed/ are compiled by their own tests.)
FORWARD = re.compile(r'^// Its name before headers had folders\.\n#pragma once\n#include "(naru/[^"]+)"\n$')
ALL = {p.relative_to(INCLUDE).as_posix(): p.read_text() for p in sorted((INCLUDE / "naru").rglob("*.h")) if not {"torch", "distributed"} & set(p.parts)}
OLD = {name: match[1] for name, text in ALL.items() if (match := FORWARD.match(text))}
HEADERS = [name for name in ALL if name not in OLD]
WARNINGS = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror".split()
FOR_OTHERS = {"naru/interop/eigen.h": "Eigen/Core", "naru/interop/xtensor.h": "xtensor/xadapt.hpp", "naru/format.h": "fmt/format.h"}  # opt-in: third-party


# Precompiled for the headers that include them, the last one first; each of those sees exactly what it includes.
SHARED = ("naru/tensor.h", "naru/ops.h")


def compile_headers(compiler, standard, headers, more=()):
    text = "".join(f"#include <{h}>\n" for h in headers)
    command = [compiler, f"-std=c++{standard}", *WARNINGS, *more, f"-I{INCLUDE}", "-fsyntax-only", "-x", "c++", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True)


@functools.cache
def included_by(header):
    """All of naru's headers that it includes, through others too (some meet themselves again), and the header itself."""
    found, left = set(), [header]
    while left:
        if (name := left.pop()) not in found:
            found.add(name)
            left += re.findall(r'#\s*include\s+"(naru/[^"]+)"', (INCLUDE / name).read_text())
    return found


def precompile(header, folder):
    target = folder / f"{Path(header).stem}.h"
    target.write_text(f"#include <{header}>\n")
    command = ["g++", "-std=c++20", *WARNINGS, f"-I{INCLUDE}", "-x", "c++-header", target, "-o", f"{target}.gch"]
    subprocess.run(command, check=True, capture_output=True)
    return target


@pytest.mark.parametrize("standard", ["20", "2b"])
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_all_of_naru_compiles_without_warnings(compiler, standard):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    done = compile_headers(compiler, standard, ["naru/naru.h"])
    assert done.returncode == 0, done.stderr[:3000]


def test_each_header_stands_alone(tmp_path):
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")

    def alone(header):
        shared = [name for name in SHARED if name in included_by(header) and header not in included_by(name)]
        return header, compile_headers("g++", "20", [header], ["-include", made[shared[-1]], "-Winvalid-pch"] if shared else [])

    with ThreadPoolExecutor(2) as pool:
        made = dict(zip(SHARED, pool.map(lambda h: precompile(h, tmp_path), SHARED)))
        results = pool.map(alone, [h for h in HEADERS if h not in FOR_OTHERS])
        failed = {h: done.stderr[:500] for h, done in results if done.returncode}
    assert not failed


def test_the_old_name_of_a_header_leads_to_it():
    assert len(OLD) > 40
    assert {name: header for name, header in OLD.items() if header not in HEADERS} == {}
    inside = {name: old for name, text in ALL.items() if name not in OLD for old in re.findall(r'#\s*include\s+"(naru/[^"]+)"', text) if old in OLD}
    assert inside == {}, "naru's own headers use the new names"


def test_public_headers_include_only_each_other_and_the_standard_library():
    for header in set(HEADERS) - set(FOR_OTHERS):
        for name in re.findall(r'#\s*include\s+[<"]([^">]+)[">]', (INCLUDE / header).read_text()):
            own = header == "naru/standard.h" and name.startswith("bits/")  # if the library is known and installed
            assert own or name.startswith("naru/") or re.fullmatch(r"[a-z_]+", name), f"{header} includes {name}"


# Headers that cost more compile time than all of naru (g++ 12 includes <ostream> in <memory>).
COSTLY = {"complex", "sstream", "iostream", "fstream", "regex", "mutex", "future", "thread", "chrono", "ranges", "variant", "unordered_set", "random"}
# Headers that naru/standard.h exists for.
COSTLY |= {"functional", "memory", "unordered_map", "algorithm", "stl_algo.h"}


def test_naru_brings_no_costly_headers_along():
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    command = ["g++", "-std=c++20", f"-I{INCLUDE}", "-M", "-x", "c++", "-"]
    made = subprocess.run(command, input="#include <naru/naru.h>\n", capture_output=True, text=True, check=True).stdout
    assert COSTLY.isdisjoint(Path(name).name for name in made.split())


# A function of naru's, or a method of a nested class: result type, name, parameters.
FUNCTION = re.compile(r"^(?=\w)(?:inline )?(?!return|throw|using|explicit|friend)[\w:<>, ]+?[ &*]+(\w+)\(((?:[^()]|\([^()]*\))*)\)(?: const)?(?:;| \{)", re.M)
# How dims are declared, and the default if they may be omitted.
FORMS = ["1", "size_t{1}", "{0, 1}", "{0, x.dim() - 1}", "{size_t{0}, 1u}", "Dims{0, 1}", "std::vector<int64_t>{0, 1}"]
OF_NONE = ["{}", "std::nullopt", "std::optional<Dims>()"]


def split_parameters(text):
    """The parts between the commas of a list of parameters, (type, has a default) each."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "<({[") - (c in ">)}]")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    declared = [(part.split("=")[0].split(), "=" in part) for part in parts if part.strip()]
    return [(" ".join(words[:-1]), default) for words, default in declared]


def functions_with_dims():
    """(what is called, the types of its parameters) of all functions, and methods of Tensor, that take a list of dims."""
    found = []

    def look(scope, text):
        for name, parameters in FUNCTION.findall(re.sub(r"//[^\n]*|^template <[^\n]*\n[^\n]*", "", text, flags=re.M)):
            types = split_parameters(" ".join(parameters.split()))
            if "detail" not in scope and any("Dims" in t for t, _ in types):
                found.append((scope + name, types))

    for header in set(HEADERS) - set(FOR_OTHERS):
        text = re.sub(r"^namespace \w+ \{\nclass \w+;\n\}\n", "", (INCLUDE / header).read_text(), flags=re.M)
        spaces = []
        for part in re.split(r"^(namespace [\w:]+ \{|\}  // namespace.*)$", text, flags=re.M):
            if part.startswith("namespace"):
                spaces.append(part.split()[1])
            elif part.startswith("}  // namespace"):
                spaces.pop()
            elif spaces:
                look("".join(f"{space}::" for space in spaces), part)
    for name in ("tensor.h", "tensor_methods.inc", "function_methods.inc"):
        text = (INCLUDE / "naru" / name).read_text()
        text = text[text.find("\nclass Tensor {") + 1 :].split("\n private:")[0]
        look("x.", re.sub(r"^  ", "", text, flags=re.M))
    return found


def test_all_functions_take_dims_as_a_number_in_braces_and_as_a_list():
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    lines = []
    for called, types in functions_with_dims():
        for i, (kind, _) in enumerate(types):
            assert "optional<Dims>" not in kind, f"{called} takes a std::optional<Dims>, which no braces make: it should be an OptionalDims"
            if kind not in ("const Dims&", "Dims", "const OptionalDims&"):
                continue
            last = max([i] + [k for k, (_, default) in enumerate(types) if not default])
            for form in FORMS + (OF_NONE if "Optional" in kind else []):
                given = [form if k == i else f"made<{t}>()" for k, (t, _) in enumerate(types[: last + 1])]
                lines.append(f"  (void){called}({', '.join(given)});")
    names = {line.split("(void)")[1].split("(")[0] for line in lines}
    assert {"naru::sum", "naru::var_mean", "naru::linalg::vector_norm", "naru::fft::fftn", "naru::masked::sum", "naru::zeros", "x.amax", "x.permute"} <= names
    text = "#include <naru/naru.h>\nusing namespace naru;\nusing namespace naru::nn::functional;\ntemplate <class T> T made();\nvoid all(const Tensor& x) {\n" + "\n".join(lines) + "\n}\n"
    command = ["g++", "-std=c++20", *WARNINGS, f"-I{INCLUDE}", "-fsyntax-only", "-x", "c++", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    assert done.returncode == 0, "\n".join(re.findall(r".*error.*\n.*", done.stderr))[:3000]


VIEW = """
#include <naru/naru.h>
#ifndef __cpp_lib_mdspan
#error there is no mdspan
#endif
float corner(const naru::Tensor& t) {
  const auto view = naru::mdspan_of<float, 2>(t);
  static_assert(decltype(view)::rank() == 2);
  return view[view.extent(0) - 1, 0];
}
"""


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_tensors_are_seen_as_mdspans_where_the_library_has_them(compiler):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    command = [compiler, "-std=c++2b", *WARNINGS, f"-I{INCLUDE}", "-fsyntax-only", "-x", "c++", "-"]
    done = subprocess.run(command, input=VIEW, capture_output=True, text=True)
    if "there is no mdspan" in done.stderr:
        pytest.skip(f"the standard library of {compiler} has no mdspan")
    assert done.returncode == 0, done.stderr[:3000]


def test_a_module_that_cannot_be_registered_is_refused_in_a_sentence():
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    source = """#include <naru/naru.h>
struct Net : naru::nn::Module {
  naru::nn::Linear first{3, 4};
  Net() { register_module("first", first); }
};
"""
    command = ["g++", "-std=c++20", f"-I{INCLUDE}", "-fsyntax-only", "-x", "c++", "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    errors = [line for line in done.stderr.splitlines() if "error:" in line]
    assert done.returncode != 0 and len(errors) == 1 and "Make the member a pointer: std::shared_ptr<Linear> first = register_module" in errors[0]
