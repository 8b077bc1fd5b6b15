"""Each row of "What to touch for" in docs/architecture.md, tried: the files it names are enough, and none can be left out.

A test changes those files in a copy of the sources, and compiles and runs what depends on the change.
"""
import itertools
import re

import naru
import pytest
import source_tree
from source_tree import ROOT, Tree

if source_tree.missing():
    pytest.skip(source_tree.missing(), allow_module_level=True)

CASES = "python/naru/testing/operator_cases.py"
EXAMPLES = "python/naru/_documentation/examples.doctest"


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    return Tree(tmp_path_factory.mktemp("tree"))


@pytest.fixture
def tree(copied):
    yield copied
    copied.restore_all()


def rows():
    """{what to add: the files and folders (ending in /) that the page names}."""
    section = (ROOT / "docs" / "architecture.md").read_text().partition("## What to touch for")[2].partition("\n## ")[0]
    return {way: set(re.findall(r"`((?:src|include|python)/[\w./]*)`", row)) for way, row in re.findall(r"^\| ([^|`]+) \| (.*`.*) \|$", section, re.M)}


def same_files(way, changed):
    """Whether the row names what was changed: each file, or the folder that it is in."""
    wanted = rows()[way]
    covers = {name: {path for path in wanted if name == path or path.endswith("/") and name.startswith(path)} for name in changed}
    assert all(covers.values()), f"the row '{way}' leaves out {[name for name, by in covers.items() if not by]}"
    assert set().union(*covers.values()) == wanted, f"the row '{way}' names too much: {wanted - set().union(*covers.values())}"


class Without:
    """The tree without the change of one file."""

    def __init__(self, tree, name):
        self.tree, self.name, self.text = tree, name, tree.path(name).read_text()

    def __enter__(self):
        self.tree.restore(self.name)

    def __exit__(self, *error):
        self.tree.write(self.name, self.text)


def compiled(tree, name, *arguments, like=None):
    made, said = tree.compile(name, *arguments, like=like)
    assert made or "-fsyntax-only" in arguments and not said, said
    return made


def built_together(names):
    """The names by folder, except where the build compiles each by itself."""
    return [list(group) for _, group in itertools.groupby(sorted(names), lambda name: name if "/cpu/" in name else name.rpartition("/")[0])]


def lacking(tree):
    """The public names that lack an example."""
    code = "import sys; sys.path += ['.', 'tests/python/project']; import test_docstrings; print(test_docstrings.lacking())"
    return tree.run("python", "-c", code)


def test_each_row_of_the_page_is_tried():
    assert set(rows()) == {way for test in globals().values() for way in getattr(test, "ways", ())}


def tries(*ways):
    """Says which rows of the page a test tries."""

    def mark(test):
        test.ways = ways
        return test

    return mark


ROW = 'NARU_OP1(cube, Float, -3, 3, cube_of(a), g * 3.0 * square(a), "a * a * a.")\n'
CUBES = """
#include <cstdio>
#include "ir/interpreter/interpret.h"
#include "ir/op_ids.h"
#include "ir/program_builder.h"
using namespace naru;
int main() {
  ir::Program p;
  ir::ProgramBuilder b(p);
  const auto a = b.input(DType::F32, DType::F32), g = b.input(DType::F32, DType::F32);
  const auto y = ir::ProgramBuilder::result(b.node(ir::op::cube, DType::F32, {a}), DType::F32);
  b.output(0), b.output(b.node(ir::op::derivative(ir::op::cube, 0), DType::F32, {a, y, g}));
  float in[] = {1, -2, 3}, grad[] = {1, 1, 2}, out[3], slope[3];
  void* operands[] = {in, grad, out, slope};
  ir::interpret(p.lower(), operands, nullptr, 3, 0);
  for (int i = 0; i < 3; ++i) std::printf("%g %g\\n", out[i], slope[i]);
}
"""
USE = """
#include "naru/naru.h"
naru::Tensor use(const naru::Tensor& x) {
  x.cube_();
  return naru::cube(x) + x.cube();
}
"""


@tries("an elementwise operator")
def test_an_elementwise_operator(tree):
    mathematics, table = "src/ir/math/math.h", "include/naru/elementwise.inc"
    folder = [str(p.relative_to(ROOT)) for p in sorted((ROOT / "src" / "ir").glob("*.cpp"))]
    tree.replace(table, "// Selection\n", ROW + "\n// Selection\n")
    tree.replace(mathematics, "V sign(V x);\n", "V sign(V x);\nV cube_of(V x);\n")
    tree.write("src/ir/math/cube.cpp", '#include "ir/math/math.h"\nnaru::ir::V naru::ir::cube_of(V x) { return x * x * x; }\n')
    # What the table's functions and a program see.
    tree.path("use.cpp").write_text(USE)
    compiled(tree, "src/ops/elementwise/functions.cpp", "-fsyntax-only")
    compiled(tree, "use.cpp", "-fsyntax-only", like="src/nn/layers.cpp")
    # What runs it. Kernels for processors and devices are made of the same expressions.
    ir, said = tree.compile_together(folder)
    assert ir, said
    tree.path("cubes.cpp").write_text(CUBES)
    main = compiled(tree, "cubes.cpp", like=folder[0])
    cube = compiled(tree, "src/ir/math/cube.cpp", like="src/ir/math/pow.cpp")
    assert tree.link("cubes", [main, ir, cube]) == ""
    assert tree.run("cubes") == "1 3\n-8 12\n27 54\n"

    assert "cube_of" in tree.link("cubes", [main, ir])
    with Without(tree, mathematics):
        assert "cube_of" in tree.compile(folder[folder.index("src/ir/op_table.cpp")], "-fsyntax-only")[1]
    with Without(tree, table):
        assert "cube" in tree.compile("use.cpp", "-fsyntax-only", like="src/nn/layers.cpp")[1]
    # What Python needs is tried the other way around, with an operator that loses it: a new one would need the whole extension compiled.
    tree.write(EXAMPLES, re.sub(r"(?m)^softsign\n(>>>.*\n(.+\n)+)+", "", tree.path(EXAMPLES).read_text()))
    assert "naru._C.softsign example" in lacking(tree)
    tree.write(CASES, re.sub(r'"softsign": lambda.*?\), ', "", tree.path(CASES).read_text()))
    assert "KeyError: 'softsign'" in tree.run("python", "-c", "import naru.testing.operator_cases")
    same_files("an elementwise operator", tree.changed)


OPERATOR = """
#include "autograd/history/history.h"
#include "naru/ops/functions.h"
#include "ops/tensor/common.h"

namespace naru {

Tensor scaled_square(const Tensor& x, double scale) {
  ops::require_defined(x, "scaled_square", "input");
  const DType t = x.dtype();
  const Tensor square = ops::apply(ir::op::mul, {{&x, {}, t}, {&x, {}, t}}, t, "scaled_square");
  const Tensor out = ops::apply(ir::op::mul, {{&square, {}, t}, {nullptr, scale, t}}, t, "scaled_square");
  return autograd::record(out, "ScaledSquareBackward0", {&x}, {&x}, [scale](std::vector<Tensor>& g, std::vector<Tensor>& saved) {
    return std::vector<Tensor>{g[0] * saved[0] * (2 * scale)};
  });
}

}  // namespace naru
"""
BINDING = """  def(kFunction, "scaled_square", "input, alpha=1", "alpha * input * input.",
      [](const Tensor& t, double scale) { return scaled_square(t, scale); });
"""
EXAMPLE = "scaled_square: alpha\n>>> naru.scaled_square(naru.tensor([1.0, 2.0]), 3)\ntensor([ 3., 12.])\n\n"
CASE = '        C("scaled_square", lambda a: t.scaled_square(a, 3), lambda a: 3 * a * a, [(5, 7)]),\n'
RUN_CASE = """
import naru
from naru.testing.operator_cases import CASES, compare, on_device
for case in CASES:
    if case.name == "scaled_square":
        arrays = case.operands(0)
        for type in (naru.float32, naru.float64):
            compare(case, case.run(*on_device(arrays, "cpu", type)), arrays, type)
        x = naru.tensor([1.0, 2.0], requires_grad=True)
        naru.scaled_square(x, 3).sum().backward()
        print(x.grad.tolist())
"""


@tries("another operator", "a Python name")
def test_another_operator_and_its_python_name(tree):
    source, header, binding = "src/ops/special/scaled_square.cpp", "include/naru/ops/functions.h", "python/bindings/ops/counting.cpp"
    tree.write(source, OPERATOR)
    text = tree.path(header).read_text()
    tree.write(header, text[: text.rindex("}  // namespace naru")] + "Tensor scaled_square(const Tensor& x, double scale);\n\n}  // namespace naru\n")
    tree.replace(binding, "void define_counting() {\n", "void define_counting() {\n" + BINDING)
    tree.write(EXAMPLES, EXAMPLE + tree.path(EXAMPLES).read_text())
    tree.replace(CASES, "    return [\n        C(\"sum\",", f"    return [\n{CASE}        C(\"sum\",")
    objects = [compiled(tree, source, like="src/ops/special/gamma.cpp"), compiled(tree, binding)]
    assert tree.link_extension(objects) == ""
    assert lacking(tree) == "[]\n"
    assert tree.run("python", "-c", RUN_CASE) == "[6.0, 12.0]\n"
    same_files("another operator", tree.changed)
    same_files("a Python name", {binding, EXAMPLES})

    with Without(tree, EXAMPLES):
        assert lacking(tree) == "['naru._C.scaled_square example']\n"
    with Without(tree, CASES):
        assert tree.run("python", "-c", RUN_CASE) == ""
    with Without(tree, header):
        assert "scaled_square" in tree.compile(binding, "-fsyntax-only")[1]
    assert tree.link_extension(objects[1:]) == ""
    assert "undefined symbol" in tree.run("python", "-c", "import naru")
    tree.own_extension()
    assert not hasattr(naru, "scaled_square")


INSTRUCTION = """
// out[i] = in[count - 1 - i].
struct Flip {
  int64_t count = 0;
  View in, out;

  static constexpr const char* kFamily = "index";
  static constexpr const char* kNames[] = {"flip"};
  const char* name() const { return kNames[0]; }
  template <class F>
  void each_operand(F&& f) {
    in.describe(f, "input of a flip", false, std::span(&count, 1)), out.describe(f, "result of a flip", true, std::span(&count, 1));
  }
};

using Instruction = std::variant<"""
ON_THE_HOST = """
#include <cstring>
#include "backends/cpu/exec/instructions.h"

void naru::cpu::run(const ir::Flip& flip) {
  const size_t item = size_of(flip.in.dtype);
  for (int64_t i = 0; i < flip.count; ++i)
    std::memcpy(static_cast<char*>(flip.out.data) + static_cast<size_t>(i) * item,
                static_cast<const char*>(flip.in.data) + static_cast<size_t>(flip.count - 1 - i) * item, item);
}
"""
ON_DEVICES = """
#include "render/c/launch.h"

void naru::render::c::run(const ir::Flip& flip, Launcher& launcher) {
  const Target& target = launcher.target();
  Head head;
  head.memory = {"f32", "=f32"}, head.numbers = 1, head.group = kGroup;
  void* const memory[] = {flip.in.data, flip.out.data};
  Arguments arguments(2, false);
  arguments.add(flip.count);
  const auto text = [&] {
    return opening(head, target) + "  const I i = GROUP * 64 + ITEM;\\n  if (i < a.d[0]) m1[i] = m0[a.d[0] - 1 - i];\\n}\\n";
  };
  launcher.start({{Kind::Flip}, text, memory, arguments.bytes(), (flip.count + kGroup - 1) / kGroup, kGroup});
}
"""
FLIPS = """
#include <cstdio>
#include "backends/cpu/exec/execute.h"
#include "ir/inspect.h"
#include "render/c/launch.h"
using namespace naru;
struct Reader final : render::c::Launcher {
  Reader() { target_.dialect = &render::c::cuda(); }
  const render::c::Target& target() const override { return target_; }
  void start(const render::c::Launch& launch) override { std::puts(launch.text().c_str()); }
  void* scratch(size_t) override { return nullptr; }
  void* faults(int, render::c::FaultError) override { return nullptr; }
  render::c::Target target_;
};
int main() {
  float in[] = {1, 2, 3}, out[3] = {};
  ir::Instruction instruction = ir::Flip{3, {in, DType::F32, {1}}, {out, DType::F32, {1}}};
  ir::each_operand(instruction, [](void*& address, const ir::OperandUse& use) { std::printf("%s: %d\\n", use.what, address != nullptr); });
  cpu::execute(instruction);
  std::printf("%g %g %g\\n", out[0], out[1], out[2]);
  Reader reader;
  render::c::run(std::get<ir::Flip>(instruction), reader);
}
"""


@tries("an instruction")
def test_an_instruction(tree):
    host, device = "src/backends/cpu/index/flip.cpp", "src/render/c/flip.cpp"
    declared, launch = "src/backends/cpu/exec/instructions.h", "src/render/c/launch.h"
    tree.replace("src/ir/instruction.h", "\nusing Instruction = std::variant<", INSTRUCTION)
    tree.replace("src/ir/instruction.h", "UserKernel, Exchange>;", "UserKernel, Exchange, Flip>;")
    tree.replace(declared, "void run(const ir::Map&);\n", "void run(const ir::Map&);\nvoid run(const ir::Flip&);\n")
    tree.replace(launch, "void run(const ir::Map&, Launcher&);\n", "void run(const ir::Map&, Launcher&);\nvoid run(const ir::Flip&, Launcher&);\n")
    tree.replace(launch, "  Rows,\n", "  Rows,\n  Flip,\n")
    tree.write(host, ON_THE_HOST)
    tree.write(device, ON_DEVICES)
    same_files("an instruction", tree.changed)
    tree.path("flips.cpp").write_text(FLIPS)
    execute, any_launch = "src/backends/cpu/exec/execute.cpp", "src/render/c/launch.cpp"
    execute_object, main = compiled(tree, execute), compiled(tree, "flips.cpp", like=execute)
    of_host, of_devices = compiled(tree, host, like=execute), compiled(tree, device)
    compiled(tree, any_launch, "-fsyntax-only")
    assert tree.link("flips", [main, execute_object, of_host, of_devices]) == ""
    printed = tree.run("flips")
    assert printed.startswith("input of a flip: 1\nresult of a flip: 1\n3 2 1\n") and "m1[i] = m0[a.d[0] - 1 - i]" in printed

    said = tree.link("flips", [main, execute_object])
    assert "naru::cpu::run(naru::ir::Flip const&)" in said and "naru::render::c::run(naru::ir::Flip const&" in said
    with Without(tree, declared):
        assert "run(i)" in tree.compile(execute, "-fsyntax-only")[1]
    with Without(tree, launch):
        assert "run(i, launcher)" in tree.compile(any_launch, "-fsyntax-only")[1]
    with Without(tree, "src/ir/instruction.h"):
        assert "Flip" in tree.compile(host, "-fsyntax-only", like=execute)[1]


@tries("a dtype")
def test_a_dtype(tree):
    header = "include/naru/dtype.h"
    tree.replace(header, "  F64,\n  //", "  F64,\n  F6,\n  //")
    row = '    {"float6", "Float6", "c10::Float6", Category::Floating, true, 1, 3, 28, DType::F32, DType::F6},\n'
    tree.replace(header, '    {"complex32",', row + '    {"complex32",')
    # The types past the enumerators move up by one.
    text = re.sub(r"\b(k[A-Z]\w+\{|kDTypes = )(\d+)", lambda m: f"{m[1]}{int(m[2]) + 1}", tree.path(header).read_text())
    tree.write(header, text.replace("kSparseForm = 16", "kSparseForm = 32"))
    mentions = [str(path.relative_to(ROOT)) for folder in ("src", "python/bindings") for path in sorted((ROOT / folder).rglob("*.*"))
                if path.suffix in (".cpp", ".h", ".inc") and re.search(r"\bPerDType<|case (DType::)?BF16", path.read_text())]  # fmt: skip
    # These sources, and one that includes each of the others.
    sources = [name for name in mentions if name.endswith(".cpp")] + ["src/ir/interpreter/interpret_plain.cpp", "src/backends/cpu/gemm/matmul.cpp"]
    said = [tree.compile_together(list(names), "-fsyntax-only", "-Wswitch-enum")[1] for names in built_together(sources)]
    found = re.findall(rf"^{tree.folder}/(\S+?):\d+:\d+: (?:error: no matching function .*PerDType|warning: enumeration value .F6.)", "\n".join(said), re.M)
    elsewhere = {name for name in mentions if "/a64/" in name or "/x86/" in name} - set(found)  # compiled on that processor alone
    assert set(found) | elsewhere == set(mentions)
    same_files("a dtype", {*tree.changed, *mentions})


KIND = 'NARU_DEVICE_KIND(Npu, "npu", "NPU", "npu", "NPU_VISIBLE", nullptr, "NPU out of memory. Tried to allocate {0}.", nullptr)\n'
KINDS = """
#include <cstdio>
#include "core/device_kinds.h"
using namespace naru;
int main() {
  const Device d("npu:1");
  std::printf("%s %s %d %s\\n", d.str().c_str(), kind_of(d.type).visible, d.type == DeviceType::Npu, names_of(accelerator_kinds()).c_str());
}
"""


@tries("a kind of device")
def test_a_kind_of_device(tree):
    table, package = "include/naru/device_kinds.inc", "python/naru/xpu/__init__.py"
    tree.replace(table, "NARU_DEVICE_KIND(Meta,", KIND + "NARU_DEVICE_KIND(Meta,")
    core = [str(p.relative_to(ROOT)) for p in sorted((ROOT / "src" / "core").glob("*.cpp")) if p.name != "version.cpp"]
    tree.path("kinds.cpp").write_text(KINDS)
    main = compiled(tree, "kinds.cpp", like=core[0])
    device = compiled(tree, "src/core/device.cpp")
    assert tree.link("kinds", [main, device]) == ""
    assert tree.run("kinds") == "npu:1 NPU_VISIBLE 1 cuda, rocm, xpu, mps, npu\n"
    with Without(tree, table):
        assert "Npu" in tree.compile("kinds.cpp", "-fsyntax-only", like=core[0])[1]
    # A kind whose namespace is gone: its row says that PyTorch has one.
    tree.write(package, "raise ModuleNotFoundError\n")
    assert "ModuleNotFoundError" in tree.run("python", "-c", "import naru; naru.xpu.device_count()")
    same_files("a kind of device", tree.changed)


CONFIGURE = ("-DCMAKE_BUILD_TYPE=Release", *(f"-DNARU_{part}=OFF" for part in ("PYTHON", "TESTS", "EXAMPLES", "BENCH", "INSTALL")))
ON_THE_TOY = """
#include <cstdio>
#include "naru/naru.h"
int main() {
  const naru::Tensor x = naru::ones({3}).to("rocm:0") + 1;
  std::printf("%s %g\\n", x.device().str().c_str(), x.sum().item<double>());
}
"""


@tries("a backend")
def test_a_backend(tree):
    source, listed = "src/backends/toy/toy.cpp", "src/backends/CMakeLists.txt"
    toy = (ROOT / "tests" / "extending" / "toy_backend.cpp").read_text()
    tree.write(source, toy[: toy.index("// What CMake writes")] + "}  // namespace naru\n")
    tree.replace(listed, "naru_backend(meta)\n", "naru_backend(toy)\nnaru_backend(meta)\n")
    same_files("a backend", tree.changed)
    configure = ("cmake", "-G", "Ninja", "-S", str(tree.folder), "-B", str(tree.folder / "build"), *CONFIGURE)
    said = tree.run(*configure)
    assert "exit status" not in said, said
    tree.path("on_the_toy.cpp").write_text(ON_THE_TOY)
    objects = [compiled(tree, "on_the_toy.cpp", like="src/nn/layers.cpp"), compiled(tree, source, like="src/backends/meta/meta.cpp"),
               compiled(tree, "build/src/backends/backend_list.cpp", like="src/backends/meta/meta.cpp")]  # fmt: skip
    assert tree.link("on_the_toy", objects) == ""
    assert tree.run("on_the_toy") == "rocm:0 6\n"

    with Without(tree, listed):
        assert "exit status" not in tree.run(*configure)
        assert "toy" not in tree.path("build/src/backends/backend_list.cpp").read_text()
    tree.path(source).rename(tree.path("toy.cpp"))
    assert "exit status" in tree.run(*configure)
    tree.path("toy.cpp").rename(tree.path(source))


LAYER = '''

class Doubling(Module):
    """Twice the input.

    >>> naru.nn.Doubling()(naru.tensor([1.0, 2.0]))
    tensor([2., 4.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return input * 2
'''
DOUBLED = """
#include <cstdio>
#include "naru/nn.h"
int main() {
  naru::nn::Sequential model{naru::nn::Linear(2, 2), naru::nn::Doubling()};
  std::printf("%s\\n%g\\n", model.str().c_str(), naru::nn::Doubling()(naru::ones({3})).sum().item<double>());
}
"""


@tries("a layer of networks")
def test_a_layer_of_networks(tree):
    header, source, shell = "include/naru/nn/activations.h", "src/nn/activation_modules.cpp", "python/naru/nn/modules/flatten.py"
    declared = "class Doubling : public Layer<Doubling> {\n public:\n  using Layer::Layer;\n  Doubling();\n};\n"
    tree.replace(header, "class Flatten : ", declared + "class Flatten : ")
    defined = 'Doubling::Doubling() : Layer(named("Doubling", [](const Tensor& x) { return x * 2; })) {}\n'
    tree.replace(source, "Flatten::Flatten(", defined + "Flatten::Flatten(")
    tree.replace(shell, '"Unflatten"]', '"Unflatten", "Doubling"]')
    tree.write(shell, tree.path(shell).read_text() + LAYER)
    same_files("a layer of networks", tree.changed)
    tree.path("doubled.cpp").write_text(DOUBLED)
    main, layers = compiled(tree, "doubled.cpp", like=source), compiled(tree, source)
    assert tree.link("doubled", [main, layers]) == ""
    assert tree.run("doubled").endswith("(1): Doubling()\n)\n6\n")
    rows = "from tools import parity; print([row for row in parity.rows('nn') if row[0] == 'Doubling'])"
    of_both = tree.run("python", "-c", f"import naru; print(naru.nn.Doubling()(naru.ones(2)))\n{rows}")
    assert of_both == "tensor([2., 2.])\n[('Doubling', 'naru::nn::Doubling', '')]\n"

    assert "naru::nn::Doubling::Doubling()" in tree.link("doubled", [main])
    with Without(tree, header):
        assert tree.run("python", "-c", rows) == "[('Doubling', None, '')]\n"
    with Without(tree, shell):
        assert tree.run("python", "-c", rows) == "[]\n"
