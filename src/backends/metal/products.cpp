#include "backends/metal/products.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "ir/matrix_product.h"
#include "naru/error.h"

namespace naru::backends::metal {
namespace {

// A matrix as the library is told of it: in rows, `matrices` of them one after another.
struct Described {
  bool transposed;
  UInteger rows, columns, row_bytes, matrix_bytes;
};

// nullopt if the library does not take it: distances between matrices are multiples of a row's, and matrices do not overlap.
std::optional<Described> described(const ir::MatMul::Matrix& x, int64_t rows, int64_t cols, int64_t batch, size_t item) noexcept {
  const std::optional<ir::MatrixRows> lying = ir::rows_of(x, rows, cols);
  if (!lying || reinterpret_cast<uintptr_t>(x.data) % item != 0) return std::nullopt;
  if (lying->transposed) std::swap(rows, cols);
  const int64_t stride = batch == 1 ? rows * lying->step : x.batch_stride;
  if (stride < rows * lying->step || stride % lying->step != 0) return std::nullopt;
  const auto u = [](int64_t n) { return static_cast<UInteger>(n); };
  return Described{lying->transposed, u(rows), u(cols), u(lying->step) * item, u(stride) * item};
}

}  // namespace

bool Products::ready(const MetalDevice& device, const ir::MatMul& q) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  // How float16 is summed is not documented.
  const bool takes = q.dtype == DType::F32 || (q.dtype == DType::F16 && q.precision.reduced_accumulation);
  if (q.precision.deterministic || !takes || std::min({q.m, q.n, q.k, q.batch}) < 1 || std::max({q.m, q.n, q.k, q.batch}) > kMost)
    return false;
  const size_t item = size_of(q.dtype);
  const auto a = described(q.a, q.m, q.k, q.batch, item), b = described(q.b, q.k, q.n, q.batch, item),
             c = described(q.c, q.m, q.n, q.batch, item);
  if (!a || !b || !c || c->transposed) return false;
  const Api& m = api();
  const auto matrix = [&](const Described& d, const void* address) {
    const std::optional<MetalDevice::Place> place = device.find(address);
    if (!place) throw RuntimeError("device {}: an operand of a product is not in its memory ({})", device.device().str(), address);
    const id descriptor = m.matrix_descriptor(m.objc_getClass("MPSMatrixDescriptor"), d.rows, d.columns, static_cast<UInteger>(q.batch),
                                              d.row_bytes, d.matrix_bytes, item == 4 ? MPSDataTypeFloat32 : MPSDataTypeFloat16);
    return descriptor ? Owned(m.init_matrix(m.alloc(m.objc_getClass("MPSMatrix")), place->buffer, place->offset, descriptor)) : Owned();
  };
  matrices_ = {matrix(*a, q.a.data), matrix(*b, q.b.data), matrix(*c, q.c.data)};
  if (!matrices_[0] || !matrices_[1] || !matrices_[2]) return false;
  const auto u = [](int64_t n) { return static_cast<UInteger>(n); };
  const Key key{a->transposed, b->transposed, u(q.m), u(q.n), u(q.k), u(q.batch)};
  if (kernels_.size() >= kMostKernels) kernels_.clear();
  Owned& kernel = kernels_[key];
  if (!kernel) {
    kernel = Owned(m.init_multiplication(m.alloc(m.objc_getClass("MPSMatrixMultiplication")), device.info().device.get(),
                                         key.left_transposed, key.right_transposed, key.rows, key.columns, key.interior, 1, 0));
    if (!kernel) return false;
    m.set_batch_size(kernel.get(), key.batch);
  }
  kernel_ = kernel.get();
  return true;
}

void Products::encode(id commands) {
  const std::array<Owned, 3> used = std::move(matrices_);
  api().encode_product(kernel_, commands, used[0].get(), used[1].get(), used[2].get());
}

void Products::abandon() noexcept {
  for (auto& [key, kernel] : kernels_) kernel.abandon();
  for (Owned& matrix : matrices_) matrix.abandon();
}

}  // namespace naru::backends::metal
