#include "backends/cuda/launcher.h"

#include <array>
#include <atomic>
#include <cstdio>

#include "ir/op_ids.h"
#include "naru/error.h"

namespace naru::backends::cuda {
namespace {

// c += bias.
ir::Map bias_added(const ir::MatMul& q) {
  ir::Map map;
  ir::Program& p = map.program;
  p.nodes_count = p.outputs_count = 1, p.inputs_count = 2;
  p.outputs[0] = 0;
  p.nodes[0].op = ir::op::add, p.nodes[0].out = q.dtype, p.nodes[0].args_count = 2;
  for (uint16_t i = 0; i < 2; ++i) {
    p.inputs[i] = {q.dtype, false};
    p.nodes[0].args[i] = {ir::Program::From::Input, q.dtype, i};
  }
  const ir::View c{q.c.data, q.dtype, {q.c.batch_stride, q.c.row_stride, q.c.col_stride}};
  map.shape = {q.batch, q.m, q.n};
  map.inputs = {c, {const_cast<void*>(q.bias), q.dtype, {0, 0, q.bias_stride}}};
  map.outputs = {c};
  return map;
}

}  // namespace

void LibraryLauncher::warn_out_of_workspace(Product library, const char* what) const {
  static std::array<std::array<std::atomic<bool>, 128>, kProducts> told{};
  if (told[static_cast<size_t>(library)][static_cast<size_t>(device_.device().index)].exchange(true)) return;
  std::fprintf(
      stderr,
      "naru: warning: %s has no memory left for %s to work in: %s are done by naru's own kernels, which are slower. Free some memory, "
      "or use smaller batches\n",
      device_.device().str().c_str(), label_of(library), what);
}

bool LibraryLauncher::run(const ir::Instruction& instruction) {
  if (const auto* m = std::get_if<ir::MatMul>(&instruction)) return matmul_by_library(*m);
  if (const auto* c = std::get_if<ir::Convolution>(&instruction)) return convolve_by_library(*c);
  if (const auto* f = std::get_if<ir::Fft>(&instruction)) return transform(*f), true;
  if (const auto* l = std::get_if<ir::Lapack>(&instruction)) return factor(*l), true;
  if (const auto* a = std::get_if<ir::Attention>(&instruction)) return attend(*a), true;
  return false;
}

bool LibraryLauncher::matmul_by_library(const ir::MatMul& q) {
  bool starved = false;
  const auto memory = [&](size_t bytes) -> void* {
    try {
      return scratch(bytes);
    } catch (const OutOfMemoryError&) {
      starved = true;
      return nullptr;
    }
  };
  if (by_library(q, memory)) return true;
  // If the library can't add the bias, add it afterwards.
  if (ir::MatMul plain = q; q.bias && !starved) {
    plain.bias = nullptr;
    if (by_library(plain, memory)) {
      render::c::run(bias_added(q), launcher_);
      return true;
    }
  }
  if (starved) warn_out_of_workspace(Product::CublasLt, "matrix products");
  return false;
}

bool LibraryLauncher::by_library(ir::MatMul q, const Products::Workspace& memory) {
  Products& products = device_.products();
  // Factors without unit stride (repeated elements, every other column) are copied first.
  struct Copy {
    ir::MatMul::Matrix* factor;
    Dims shape;
    ir::View from;
  };
  std::vector<Copy> copies;
  const auto line_up = [&](ir::MatMul::Matrix& x, int64_t rows, int64_t cols) {
    if (unit_stride(x, rows, cols)) return;
    const int64_t batch = x.batch_stride == 0 ? 1 : q.batch;
    copies.push_back({&x, {batch, rows, cols}, {x.data, q.dtype, {x.batch_stride, x.row_stride, x.col_stride}}});
    x = {x.data, batch == 1 ? 0 : rows * cols, cols, 1};
  };
  line_up(q.a, q.m, q.k), line_up(q.b, q.k, q.n);
  if (!copies.empty()) {
    if (!for_library(q, true) || !products.available()) return false;
    for (const Copy& c : copies) {
      c.factor->data = memory(static_cast<size_t>(product(c.shape)) * size_of(q.dtype));
      if (!c.factor->data) return false;
      render::c::run(ir::copy_of(c.shape, c.from, {c.factor->data, q.dtype, contiguous_strides(c.shape)}), launcher_);
    }
  }
  return products.start(q, only_prepares_ ? nullptr : stream_, memory);
}

}  // namespace naru::backends::cuda
