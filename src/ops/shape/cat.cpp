// Joining tensors (cat, stack, block_diag, meshgrid ...) and splitting them (split, chunk, unbind).
#include "naru/ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/sizes.h"
#include "naru/ops/functions.h"
#include "ops/call/wrapped.h"
#include "ops/complex/complex.h"
#include "ops/elementwise/elementwise.h"
#include "ops/index/addressing.h"
#include "ops/shape/strides.h"
#include "ops/sparse/sparse.h"

namespace naru {
namespace {

using Grads = std::vector<Tensor>&;

std::vector<const Tensor*> pointers(const std::vector<Tensor>& tensors) {
  std::vector<const Tensor*> list;
  for (const Tensor& t : tensors) list.push_back(&t);
  return list;
}

// The common device of a list of tensors, all defined.
Device list_device(const std::vector<Tensor>& tensors, const char* op) {
  const auto on_first = [&](const Tensor& t) {
    return t.defined() && tensors[0].defined() && t.impl()->storage->device == tensors[0].impl()->storage->device;
  };
  if (std::all_of(tensors.begin(), tensors.end(), on_first)) return tensors[0].impl()->storage->device;
  std::vector<std::string> names;
  for (size_t i = 0; i < tensors.size(); ++i) {
    names.push_back(fmt::format("tensors[{}]", i));
    ops::require_defined(tensors[i], op, names[i].c_str());
  }
  std::vector<const char*> roles;
  for (const std::string& n : names) roles.push_back(n.c_str());
  return ops::common_device(pointers(tensors), roles, op);
}

// Copies small parts that are ready on the host immediately. Returns false if it did nothing.
bool cat_immediate(const std::vector<Tensor>& parts, const std::vector<bool>& skip, int64_t dim, const Tensor& out) {
  const TensorImpl& to = *out.impl();
  if (!to.storage->device.is_cpu() || to.numel == 0 || to.numel > ops::kSmall || ops::recording_host() || to.special) return false;
  for (size_t i = 0; i < parts.size(); ++i)
    if (!skip[i] && (parts[i].dtype() != to.dtype || !(parts[i].numel() == 0 || ops::is_host_ready(*parts[i].impl())))) return false;
  int64_t rows = 1, place = 0;
  for (int64_t d = 0; d < dim; ++d) rows *= to.sizes[d];
  const auto item = static_cast<int64_t>(size_of(to.dtype)), step = to.numel / rows * item;
  for (size_t i = 0; i < parts.size(); ++i) {
    const TensorImpl& from = *parts[i].impl();
    if (skip[i] || from.numel == 0) continue;
    const int64_t bytes = from.numel / rows * item;
    const char* const source = static_cast<const char*>(from.address());
    char* const target = static_cast<char*>(to.address()) + place;
    for (int64_t row = 0; row < rows; ++row) std::memcpy(target + row * step, source + row * bytes, static_cast<size_t>(bytes));
    place += bytes;
  }
  return true;
}

// Writes the parts next to each other along `dim` of a new tensor. skip[i]: part i is empty.
Tensor join(const std::vector<Tensor>& parts, const std::vector<bool>& skip, int64_t dim, Dims shape, DType dtype, Device device,
            const char* op, const Dims& strides) {
  Tensor out = ops::make_result(shape, strides, dtype, device, op);
  if (out.is_contiguous() && cat_immediate(parts, skip, dim, out)) return out;
  int64_t offset = out.storage_offset();
  for (size_t i = 0; i < parts.size(); ++i) {
    if (skip[i]) continue;
    shape[dim] = parts[i].sizes()[dim];
    const Tensor place = ops::make_view(out, shape, out.strides(), offset, op);
    const ops::OpOperand from{&parts[i], {}, dtype};
    ops::apply_into(ir::op::copy, {&from, 1}, place);
    offset += shape[dim] * out.strides()[dim];
  }
  return out;
}

// The memory format of all tensors if they agree, else Contiguous.
MemoryFormat common_format(const std::vector<Tensor>& tensors) {
  const MemoryFormat format = ops::suggested_format(tensors[0]);
  const auto agrees = [format](const Tensor& t) { return ops::suggested_format(t) == format; };
  return format == MemoryFormat::Contiguous || std::ranges::all_of(tensors, agrees) ? format : MemoryFormat::Contiguous;
}

template <class F>
Tensor record_list(Tensor out, const char* name, const std::vector<Tensor>& inputs, F f) {
  if (!autograd::recording(std::span<const Tensor>(inputs))) return out;
  auto node = make_ref<autograd::FunctionNode<F>>(name, std::move(f));
  autograd::connect(*node, std::span<const Tensor>(inputs));
  autograd::set_history(out, Ref<autograd::Node>(node));
  return out;
}

}  // namespace

Tensor cat(const std::vector<Tensor>& tensors, int64_t dim) {
  if (tensors.empty()) throw ValueError("torch.cat(): expected a non-empty list of Tensors");
  const Device device = list_device(tensors, "cat");
  const auto entries = [&] { return batching::joined(tensors, dim, false); };
  const auto sparse = [&] { return ops::sparse_cat(tensors, dim); };
  if (auto y = ops::wrapped("cat", naru::cat, tensors, dim, ops::BatchRule{entries}, ops::SparseRule{sparse})) return *std::move(y);
  // 1-d empty tensors are skipped, whatever the rank of the others.
  std::vector<bool> skip;
  int64_t first = -1;
  DType dtype = tensors[0].dtype();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    if (t.dim() == 0) throw RuntimeError("zero-dimensional tensor (at position {}) cannot be concatenated", i);
    skip.push_back(t.dim() == 1 && t.numel() == 0);
    if (!skip[i] && first < 0) first = static_cast<int64_t>(i);
    dtype = promote(dtype, t.dtype());
  }
  const Dims& model = tensors[first < 0 ? 0 : first].sizes();
  if (first < 0) dim = 0;  // all tensors are skipped: dim is not checked
  dim = wrap_dim(dim, static_cast<int64_t>(model.size()));
  Dims shape = model, lengths;
  shape[dim] = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Dims& sizes = tensors[i].sizes();
    lengths.push_back(skip[i] ? 0 : sizes[dim]);
    if (skip[i]) continue;
    if (sizes.size() != model.size())
      throw RuntimeError("Tensors must have same number of dimensions: got {} and {} (tensor number {} in the list)", model.size(),
                         sizes.size(), i);
    for (size_t d = 0; d < sizes.size(); ++d)
      if (static_cast<int64_t>(d) != dim && sizes[d] != model[d])
        throw RuntimeError(
            "Sizes of tensors must match except in dimension {}. Expected size {} but got size {} for tensor number {} "
            "in the list.",
            dim, model[d], sizes[d], i);
    shape[dim] = plus(shape[dim], sizes[dim]);
  }
  std::vector<DType> types;
  for (const Tensor& t : tensors) types.push_back(t.dtype());
  const auto backward = [dim, lengths, skip, types](Grads g, Grads, autograd::Needed needed) {
    std::vector<Tensor> r(types.size());
    if (!g[0].defined()) return r;
    int64_t start = 0;
    for (size_t i = 0; i < r.size(); ++i) {
      if (!skip[i] && needed[i])
        r[i] = ops::gradient_as(g[0].narrow(dim, start, lengths[i]), types[i]);
      else if (skip[i])
        r[i] = zeros({0}, Options(types[i], g[0].device()));
      start += lengths[i];
    }
    return r;
  };
  const auto jvp = [dim, lengths, skip, shape, dtype, device](Grads t, Grads) {
    std::vector<Tensor> parts;
    Dims part = shape;
    for (size_t i = 0; i < t.size(); ++i) {
      if (skip[i]) continue;
      part[dim] = lengths[i];
      parts.push_back(t[i].defined() ? t[i] : zeros(part, Options(dtype, device)));
    }
    return cat(parts, dim);
  };
  const Dims strides = ops::format_strides(shape, common_format(tensors));
  return record_list(join(tensors, skip, dim, shape, dtype, device, "cat", strides), "CatBackward0", tensors,
                     autograd::WithJvp(backward, jvp));
}

Tensor stack(const std::vector<Tensor>& tensors, int64_t dim) {
  if (tensors.empty()) throw RuntimeError("stack expects a non-empty TensorList");
  const Device device = list_device(tensors, "stack");
  const Dims& model = tensors[0].sizes();
  dim = wrap_dim(dim, tensors[0].dim() + 1);
  const auto entries = [&] { return batching::joined(tensors, dim, true); };
  const auto sparse = [&] {
    std::vector<Tensor> rows;
    for (const Tensor& t : tensors) rows.push_back(t.unsqueeze(dim));
    return ops::sparse_cat(rows, dim);
  };
  if (auto y = ops::wrapped("stack", naru::stack, tensors, dim, ops::BatchRule{entries}, ops::SparseRule{sparse})) return *std::move(y);
  DType dtype = tensors[0].dtype();
  std::vector<Tensor> parts;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!(tensors[i].sizes() == model))
      throw RuntimeError("stack expects each tensor to be equal size, but got {} at entry 0 and {} at entry {}", model.str(),
                         tensors[i].sizes().str(), i);
    dtype = promote(dtype, tensors[i].dtype());
    parts.push_back(tensors[i].detach().unsqueeze(dim));
  }
  Dims shape = model;
  const auto count = static_cast<int64_t>(tensors.size());
  shape.insert(static_cast<size_t>(dim), count);
  Dims strides = contiguous_strides(shape);
  if (const MemoryFormat format = common_format(tensors); format != MemoryFormat::Contiguous && dim < tensors[0].dim()) {
    // The layout of cat's result, whose dimension is split in two.
    Dims joined = model;
    joined[dim] = times(joined[dim], count);
    strides = ops::format_strides(joined, format);
    strides.insert(static_cast<size_t>(dim), strides[dim] * model[dim]);
  }
  std::vector<DType> types;
  for (const Tensor& t : tensors) types.push_back(t.dtype());
  return record_list(join(parts, std::vector<bool>(parts.size()), dim, shape, dtype, device, "stack", strides), "StackBackward0", tensors,
                     autograd::WithJvp(
                         [dim, types](Grads g, Grads, autograd::Needed needed) {
                           std::vector<Tensor> r(types.size());
                           for (size_t i = 0; g[0].defined() && i < r.size(); ++i)
                             if (needed[i]) r[i] = ops::gradient_as(g[0].select(dim, static_cast<int64_t>(i)), types[i]);
                           return r;
                         },
                         [dim, like = autograd::TensorLike(tensors[0]), dtype](Grads t, Grads) {
                           for (Tensor& each : t)
                             if (!each.defined()) each = zeros(like.sizes, Options(dtype, like.device));
                           return stack(t, dim);
                         }));
}

namespace {
// Bounds the number of pieces: each one is a Tensor object.
void require_pieces(int64_t count, const char* op) {
  constexpr int64_t kMost = int64_t{1} << 28;
  if (count > kMost) throw RuntimeError("{}: {} pieces are more than fit into memory (at most {})", op, count, kMost);
}
}  // namespace

std::vector<Tensor> split(const Tensor& t, const Dims& sizes, int64_t dim) {
  ops::require_defined(t, "split", "input");
  if (t.dim() == 0) throw RuntimeError("split expects at least a 1-dimensional tensor");
  dim = wrap_dim(dim, t.dim());
  int64_t total = 0;
  for (int64_t s : sizes) {
    if (s < 0)
      throw RuntimeError("split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={}", sizes.str());
    total = plus(total, s);
  }
  if (total != t.size(dim))
    throw RuntimeError(
        "split_with_sizes expects split_sizes to sum exactly to {} (input tensor's size at dimension {}), but got "
        "split_sizes={}",
        t.size(dim), dim, sizes.str());
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (int64_t s : sizes) {
    parts.push_back(t.narrow(dim, start, s));
    start += s;
  }
  return parts;
}

std::vector<Tensor> split(const Tensor& t, int64_t size, int64_t dim) {
  ops::require_defined(t, "split", "input");
  if (t.dim() == 0) throw RuntimeError("split expects at least a 1-dimensional tensor");
  dim = wrap_dim(dim, t.dim());
  const int64_t n = t.size(dim);
  if (size < 0) throw RuntimeError("split expects split_size be non-negative, but got split_size={}", size);
  if (size == 0 && n != 0) throw RuntimeError("split_size can only be 0 if dimension size is 0, but got dimension size of {}", n);
  if (size > 0) require_pieces(n / size, "split");
  Dims sizes;
  for (int64_t left = n; left > 0; left -= std::min(size, left)) sizes.push_back(std::min(size, left));
  if (sizes.empty()) sizes.push_back(0);
  return split(t, sizes, dim);
}

std::vector<Tensor> chunk(const Tensor& t, int64_t count, int64_t dim) {
  ops::require_defined(t, "chunk", "input");
  if (t.dim() == 0) throw RuntimeError("chunk expects at least a 1-dimensional tensor");
  if (count <= 0) throw RuntimeError("chunk expects `chunks` to be greater than 0, got: {}", count);
  const int64_t n = t.size(dim);
  if (n == 0) require_pieces(count, "chunk");
  if (n == 0) return split(t, Dims(static_cast<size_t>(count), 0), dim);
  return split(t, (n - 1) / count + 1, dim);
}

std::vector<Tensor> unbind(const Tensor& t, int64_t dim) {
  ops::require_defined(t, "unbind", "input");
  if (t.dim() == 0) throw IndexError("Dimension specified as {} but tensor has no dimensions", dim);
  dim = wrap_dim(dim, t.dim());
  require_pieces(t.size(dim), "unbind");
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < t.size(dim); ++i) parts.push_back(t.select(dim, i));
  return parts;
}

std::vector<Tensor> meshgrid(const std::vector<Tensor>& tensors, bool ij) {
  if (tensors.empty()) throw RuntimeError("meshgrid expects a non-empty TensorList");
  list_device(tensors, "meshgrid");
  Dims shape;
  for (const Tensor& t : tensors) {
    if (t.dim() > 1) throw RuntimeError("torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: shape {}", t.sizes().str());
    if (t.dtype() != tensors[0].dtype()) throw RuntimeError("meshgrid expects all tensors to have the same dtype");
    shape.push_back(t.numel());
  }
  std::vector<Tensor> grids;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Dims one(tensors.size(), 1);
    one[i] = tensors[i].numel();
    Tensor grid = tensors[i].view(one).expand(shape);
    // "xy" indexing: swap the first two dimensions.
    grids.push_back(!ij && tensors.size() > 1 ? grid.transpose(0, 1) : grid);
  }
  return grids;
}

Tensor cartesian_prod(const std::vector<Tensor>& vectors) {
  if (vectors.empty()) throw RuntimeError("meshgrid expects a non-empty TensorList (cartesian_prod)");
  for (const Tensor& t : vectors)
    if (t.dim() != 1) throw RuntimeError("Expect a 1D vector, but got shape {}", t.sizes().str());
  if (vectors.size() == 1) return vectors[0];
  std::vector<Tensor> columns;
  for (const Tensor& g : meshgrid(vectors)) columns.push_back(g.reshape({-1}));
  return stack(columns, 1);
}

Tensor combinations(const Tensor& t, int64_t r, bool with_replacement) {
  ops::require_defined(t, "combinations", "input");
  if (t.dim() != 1) throw RuntimeError("Expect a 1D vector, but got shape {}", t.sizes().str());
  if (r < 0) throw RuntimeError("Expect a non-negative number, but got {}", r);
  if (r == 0) return empty({0}, Options(t.dtype(), t.device()));
  // Make all index tuples, then keep the ascending ones.
  const std::vector<Tensor> grids =
      meshgrid(std::vector<Tensor>(static_cast<size_t>(r), arange(0, t.numel(), 1, Options(DType::I64, t.device()))));
  Tensor keep = ones(grids[0].sizes(), Options(DType::Bool, t.device()));
  for (size_t i = 1; i < grids.size(); ++i) keep = keep & (with_replacement ? grids[i - 1] <= grids[i] : grids[i - 1] < grids[i]);
  std::vector<Tensor> columns;
  for (const Tensor& g : grids) columns.push_back(index_select(t, 0, masked_select(g, keep)));
  return stack(columns, 1);
}

namespace {

// Without autograd and with one dtype: copies the blocks into zeros. Returns an undefined tensor otherwise.
Tensor block_diag_immediate(const std::vector<Tensor>& blocks, int64_t width) {
  int64_t height = 0;
  for (const Tensor& b : blocks) {
    if (b.dtype() != blocks[0].dtype() || b.device() != blocks[0].device() || (b.requires_grad() && grad_enabled()) || ops::have_parts(b))
      return {};
    height += b.size(0);
  }
  const Tensor out = zeros({height, width}, Options(blocks[0].dtype(), blocks[0].device()));
  for (int64_t row = 0, column = 0; const Tensor& b : blocks) {
    if (b.numel() > 0) ops::make_view(out, b.sizes(), out.strides(), row * width + column, "block_diag").copy_(b);
    row += b.size(0), column += b.size(1);
  }
  return out;
}

}  // namespace

Tensor block_diag(const std::vector<Tensor>& matrices) {
  std::vector<Tensor> blocks;
  int64_t width = 0;
  for (size_t i = 0; i < matrices.size(); ++i) {
    const Tensor& t = matrices[i];
    if (t.dim() > 2)
      throw RuntimeError("torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {} has {} dimensions", i, t.dim());
    blocks.push_back(t.dim() == 2 ? t : t.reshape({1, -1}));
    width += blocks.back().size(1);
  }
  if (blocks.empty()) return empty({1, 0});
  if (Tensor out = block_diag_immediate(blocks, width); out.defined()) return out;
  std::vector<Tensor> rows;
  for (int64_t at = 0; const Tensor& b : blocks) {
    const auto gap = [&](int64_t n) { return zeros({b.size(0), n}, Options(b.dtype(), b.device())); };
    rows.push_back(cat({gap(at), b, gap(width - at - b.size(1))}, 1));
    at += b.size(1);
  }
  return cat(rows, 0);
}

}  // namespace naru
