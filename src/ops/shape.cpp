// Joining, cutting and rearranging tensors.
#include "naru/ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/sizes.h"
#include "ops/addressing.h"
#include "ops/autocast.h"
#include "ops/complex.h"
#include "ops/elementwise.h"
#include "ops/host_loop.h"
#include "ops/sparse.h"
#include "ops/strides.h"
#include "ops/unsigned.h"

namespace naru {
namespace {

using Grads = std::vector<Tensor>&;

std::vector<const Tensor*> pointers(const std::vector<Tensor>& tensors) {
  std::vector<const Tensor*> list;
  for (const Tensor& t : tensors) list.push_back(&t);
  return list;
}

// The common device of a list of tensors that must all be on it, numbers or not.
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

// Small parts that the host finds at hand are moved at once.
bool joined_at_once(const std::vector<Tensor>& parts, const std::vector<bool>& skip, int64_t dim, const Tensor& out) {
  const TensorImpl& to = *out.impl();
  if (!to.storage->device.is_cpu() || to.numel == 0 || to.numel > ops::kSmall || ops::recording_host() || !in_programs(to.dtype))
    return false;
  for (size_t i = 0; i < parts.size(); ++i)
    if (!skip[i] && (parts[i].dtype() != to.dtype || !(parts[i].numel() == 0 || ops::is_at_hand(*parts[i].impl())))) return false;
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

// Writes the parts side by side along `dim` of a new tensor. skip[i]: part i has nothing to give.
Tensor join(const std::vector<Tensor>& parts, const std::vector<bool>& skip, int64_t dim, Dims shape, DType dtype, Device device,
            const char* op, MemoryFormat format = MemoryFormat::Contiguous) {
  Tensor out = ops::make_result(shape, ops::format_strides(shape, format), dtype, device, op);
  if (format == MemoryFormat::Contiguous && joined_at_once(parts, skip, dim, out)) return out;
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

// That of all tensors, if they agree.
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
  if (const autocast::Casts c("cat", tensors); c) return cat(c.all(), dim);
  if (tensors.empty()) throw ValueError("torch.cat(): expected a non-empty list of Tensors");
  const Device device = list_device(tensors, "cat");
  if (ops::any_sparse(tensors)) [[unlikely]]
    return ops::sparse_cat(tensors, dim);
  // Empty tensors of one dimension are left out, whatever the others are.
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
  if (first < 0) dim = 0;  // nothing but what is left out: no dimension is looked at
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
  return record_list(join(tensors, skip, dim, shape, dtype, device, "cat", common_format(tensors)), "CatBackward0", tensors,
                     [dim, lengths, skip, types](Grads g, Grads) {
                       std::vector<Tensor> r(types.size());
                       if (!g[0].defined()) return r;
                       int64_t start = 0;
                       for (size_t i = 0; i < r.size(); ++i) {
                         if (is_inexact(types[i]) && !skip[i])
                           r[i] = ops::gradient_as(g[0].narrow(dim, start, lengths[i]), types[i]);
                         else if (skip[i])
                           r[i] = zeros({0}, Options(types[i], g[0].device()));
                         start += lengths[i];
                       }
                       return r;
                     });
}

Tensor stack(const std::vector<Tensor>& tensors, int64_t dim) {
  if (const autocast::Casts c("stack", tensors); c) return stack(c.all(), dim);
  if (tensors.empty()) throw RuntimeError("stack expects a non-empty TensorList");
  const Device device = list_device(tensors, "stack");
  const Dims& model = tensors[0].sizes();
  dim = wrap_dim(dim, tensors[0].dim() + 1);
  if (ops::any_sparse(tensors)) [[unlikely]] {
    std::vector<Tensor> rows;
    for (const Tensor& t : tensors) rows.push_back(t.unsqueeze(dim));
    return ops::sparse_cat(rows, dim);
  }
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
  shape.insert(static_cast<size_t>(dim), static_cast<int64_t>(tensors.size()));
  std::vector<DType> types;
  for (const Tensor& t : tensors) types.push_back(t.dtype());
  return record_list(join(parts, std::vector<bool>(parts.size()), dim, shape, dtype, device, "stack"), "StackBackward0", tensors,
                     [dim, types](Grads g, Grads) {
                       std::vector<Tensor> r(types.size());
                       for (size_t i = 0; g[0].defined() && i < r.size(); ++i)
                         if (is_inexact(types[i])) r[i] = ops::gradient_as(g[0].select(dim, static_cast<int64_t>(i)), types[i]);
                       return r;
                     });
}

namespace {
// Each piece is a tensor of its own.
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

Tensor repeat(const Tensor& t, const Dims& times) {
  ops::require_defined(t, "repeat", "input");
  if (static_cast<int64_t>(times.size()) < t.dim())
    throw RuntimeError(
        "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor (repeat {}, shape "
        "{})",
        times.str(), t.sizes().str());
  const size_t extra = times.size() - t.sizes().size();
  // (times, size) side by side: the first of each pair is repeated, then both become one.
  Dims pairs, spread, shape;
  for (size_t d = 0; d < times.size(); ++d) {
    const int64_t n = d < extra ? 1 : t.sizes()[d - extra];
    if (times[d] < 0)
      throw RuntimeError("Trying to create tensor with negative dimension {} (repeat {} of shape {})", times[d], times.str(),
                         t.sizes().str());
    shape.push_back(naru::times(times[d], n));
    for (int64_t v : {int64_t{1}, n}) pairs.push_back(v);
    for (int64_t v : {times[d], n}) spread.push_back(v);
  }
  return t.reshape(pairs).expand(spread).clone(MemoryFormat::Contiguous).view(shape);
}

namespace {

// The dimensions d with turned[d] from their end.
Tensor flipped(const Tensor& t, const std::vector<bool>& turned) {
  Tensor out =
      ops::make_result(t.sizes(), ops::strides_like(t.sizes(), t.strides(), MemoryFormat::Preserve), t.dtype(), t.device(), "flip", true);
  if (t.numel() > 0) {
    ir::Gather g;
    g.shape = t.sizes();
    g.source = ops::view_of(t, t.sizes());
    int64_t first = 0;
    for (size_t d = 0; d < turned.size(); ++d)
      if (turned[d]) {
        first += (t.sizes()[d] - 1) * g.source.strides[d];
        g.source.strides[d] = -g.source.strides[d];
      }
    g.source.data = static_cast<char*>(g.source.data) + first * static_cast<int64_t>(t.element_size());
    g.out = ops::view_of(out, t.sizes());
    g.op = "flip";
    ops::submit(std::move(g), {&t}, {&out});
  }
  return out;
}

}  // namespace

Tensor flip(const Tensor& t, const Dims& dims) {
  ops::require_defined(t, "flip", "input");
  std::vector<bool> turned(t.sizes().size());
  for (int64_t wanted : dims) {
    const int64_t d = wrap_dim(wanted, t.dim());
    if (t.dim() == 0) continue;
    if (turned[d]) throw RuntimeError("dim {} appears multiple times in the list of dims", d);
    turned[d] = true;
  }
  Tensor out = is_complex(t.dtype()) ? ops::as_complex(flipped(ops::as_real(t), turned))
                                     : ops::as_unsigned(flipped(ops::as_signed(t), turned), t.dtype());
  return autograd::record(out, "FlipBackward0", {&t}, {},
                          [dims](Grads g, Grads) { return std::vector{g[0].defined() ? flip(g[0], dims) : Tensor()}; });
}

Tensor roll(const Tensor& t, const Dims& shifts, const Dims& dims) {
  ops::require_defined(t, "roll", "input");
  if (shifts.empty()) throw RuntimeError("`shifts` required");
  if (dims.empty() && shifts.size() == 1) return roll(t.reshape({-1}), shifts, {0}).view(t.sizes());
  if (shifts.size() != dims.size()) throw RuntimeError("shifts and dimensions must align. shifts: {}, dims:{}", shifts.size(), dims.size());
  Tensor out = t;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t d = wrap_dim(dims[i], t.dim()), n = t.dim() == 0 ? 1 : t.size(d);
    const int64_t shift = n == 0 ? 0 : (shifts[i] % n + n) % n;
    if (shift != 0) out = cat({out.narrow(d, n - shift, shift), out.narrow(d, 0, n - shift)}, d);
  }
  return out.is(t) ? t.clone() : out;
}

namespace {

// Keeps the elements (r, c) with c <= r + diagonal (lower) or c >= r + diagonal.
Tensor triangle(const Tensor& t, int64_t diagonal, bool lower, const char* op, const char* node) {
  ops::require_defined(t, op, "input");
  if (t.dim() < 2) throw RuntimeError("{}: input tensor must have at least 2 dimensions", op);
  diagonal = std::clamp(diagonal, -t.size(-2), t.size(-1));  // beyond, all or nothing is kept anyway
  if (t.is_contiguous() && ops::takes_host_loop({&t})) {
    const Tensor out = ops::make_result(t.sizes(), t.dtype(), t.device(), op);
    ops::run_host_loop(ir::HostLoop::Kind::Triangle, {&t}, {&out}, {diagonal, lower});
    return out;
  }
  const Options places(DType::I64, t.device());
  const Tensor columns = arange(0, t.size(-1), 1, places), rows = arange(diagonal, t.size(-2) + diagonal, 1, places).unsqueeze(1);
  Tensor out = ops::make_result(t.sizes(), t.dtype(), t.device(), op, true);
  const Tensor kept = ops::apply(lower ? ir::op::le : ir::op::ge, {{&columns, {}, DType::I64}, {&rows, {}, DType::I64}}, DType::Bool, op);
  const ops::OpOperand operands[] = {{&kept, {}, DType::Bool}, {&t, {}, t.dtype()}, {nullptr, 0, t.dtype()}};
  ops::apply_into(ir::op::where, operands, out);
  return autograd::record(out, node, {&t}, {}, [diagonal, lower](Grads g, Grads) {
    return std::vector{!g[0].defined() ? Tensor() : lower ? tril(g[0], diagonal) : triu(g[0], diagonal)};
  });
}

}  // namespace

Tensor tril(const Tensor& t, int64_t diagonal) { return triangle(t, diagonal, true, "tril", "TrilBackward0"); }
Tensor triu(const Tensor& t, int64_t diagonal) { return triangle(t, diagonal, false, "triu", "TriuBackward0"); }

Tensor broadcast_to(const Tensor& t, const Dims& shape) { return t.expand(shape); }

std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors) {
  Dims shape;
  for (const Tensor& t : tensors) shape = broadcast_shapes(shape, t.sizes());
  std::vector<Tensor> out;
  for (const Tensor& t : tensors) out.push_back(t.expand(shape));
  return out;
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
    // "xy": the first two dimensions change places.
    grids.push_back(!ij && tensors.size() > 1 ? grid.transpose(0, 1) : grid);
  }
  return grids;
}

}  // namespace naru
