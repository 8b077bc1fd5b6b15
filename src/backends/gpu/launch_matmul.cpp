// Products on a stream: copies factors to layouts that the library supports, calls it, and adds a bias that it does not take.
#include <vector>

#include "backends/gpu/launcher.h"
#include "backends/gpu/matmul.h"
#include "ir/matrix_product.h"
#include "naru/error.h"

namespace naru::backends::gpu {
namespace {

bool by_library(ir::MatMul q, Products& products, StreamLauncher& launcher, const Products::Workspace& memory) {
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
      render::c::run(ir::copy_of(c.shape, c.from, {c.factor->data, q.dtype, contiguous_strides(c.shape)}), launcher);
    }
  }
  return products.start(q, launcher.only_prepares() ? nullptr : launcher.stream(), memory);
}

}  // namespace

bool multiply_by_library(const ir::MatMul& q, Products& products, StreamLauncher& launcher) {
  bool starved = false;
  const auto memory = [&](size_t bytes) -> void* {
    try {
      return launcher.scratch(bytes);
    } catch (const OutOfMemoryError&) {
      starved = true;
      return nullptr;
    }
  };
  if (by_library(q, products, launcher, memory)) return true;
  // If the library can't add the bias, add it afterwards.
  if (ir::MatMul plain = q; q.bias && !starved) {
    plain.bias = nullptr;
    if (by_library(plain, products, launcher, memory)) {
      render::c::run(ir::bias_added(q), launcher);
      return true;
    }
  }
  if (starved) products.warn_out_of_workspace();
  return false;
}

}  // namespace naru::backends::gpu
