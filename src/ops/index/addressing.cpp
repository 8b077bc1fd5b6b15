#include "ops/index/addressing.h"

#include <bit>
#include <cstring>
#include <numeric>
#include <span>

#include "naru/ops.h"
#include "ops/batch/batch.h"
#include "ops/call/wrapped.h"
#include "ops/complex/complex.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/half.h"
#include "ops/elementwise/unsigned.h"

namespace naru::ops {
namespace {

using Grads = std::vector<Tensor>&;

// The indexed tensor as an operand over the iteration space.
ir::View indexed_view(const Tensor& t, const Addressing& at) {
  ir::View v = view_of(t, t.sizes());
  v.strides = Dims(at.shape.size(), 0);
  for (size_t d = 0; d < at.shape.size(); ++d)
    if (at.from[d] >= 0) v.strides[d] = t.strides()[at.from[d]];
  return v;
}

std::vector<ir::IndexOperand> index_operands(const Tensor& t, const Addressing& at, const Positions& positions) {
  std::vector<ir::IndexOperand> list;
  for (size_t i = 0; i < positions.size(); ++i) {
    const int d = at.dims[i];
    const bool number = t.sizes().empty();  // counts as one dimension of size 1
    list.push_back({view_of(positions[i], at.shape), number ? 1 : t.sizes()[d], number ? 1 : t.strides()[d], d, at.from_end, at.raises});
  }
  return list;
}

std::vector<const Tensor*> pointers(const Positions& positions, const Tensor& first) {
  std::vector<const Tensor*> list{&first};
  for (const Tensor& p : positions) list.push_back(&p);
  return list;
}

// The same places of the parts of a complex tensor: one more dimension, which nothing addresses.
Addressing of_parts(const Addressing& at) {
  Addressing a = at;
  a.from.push_back(static_cast<int64_t>(at.sizes.size()));
  a.sizes.push_back(2), a.shape.push_back(2);
  return a;
}
Positions of_parts(const Positions& positions) {
  Positions p;
  for (const Tensor& t : positions) p.push_back(t.unsqueeze(-1));
  return p;
}

// How many values may go to one place.
int64_t values_for_a_place(const Addressing& at) {
  int64_t most = 1;
  for (size_t d = 0; d < at.shape.size(); ++d)
    if (at.from[d] < 0) most *= at.shape[d];
  return most;
}

// target[addressed] = value, no history.
void write_at(const Tensor& target, const Addressing& at, const Positions& positions, const Tensor& value, bool add) {
  if (product(at.shape) == 0) return;
  if (is_complex(target.dtype())) return write_at(as_real(target), of_parts(at), of_parts(positions), as_real(value), add);
  if (add && is_float8(target.dtype())) refuse(static_cast<const char*>(at.op), target.dtype());
  if (has_storage_type(target.dtype())) return write_at(as_stored(target), at, positions, as_stored(value), add);
  // Sums of 16-bit types are rounded once: rounded after each value, 300 ones of bfloat16 are 256.
  // Few values for a large target are worth no copy of it.
  constexpr int64_t kFew = 64;
  const int64_t values = values_for_a_place(at);
  if (add && is_half(target.dtype()) && values > 1 && (values > kFew || product(at.shape) * 4 >= target.numel())) {
    const DType type = target.dtype(), wide = DType::F32;
    const Tensor sums = apply(ir::op::copy, {{&target, {}, type}}, wide, at.op);
    write_at(sums, at, positions, apply(ir::op::copy, {{&value, {}, value.dtype()}}, wide, at.op), true);
    const OpOperand rounded[] = {{&sums, {}, wide}};
    return apply_into(ir::op::copy, rounded, target);
  }
  Positions own = positions;
  for (Tensor& p : own)
    if (p.impl()->storage.get() == target.impl()->storage.get()) p = p.detach().clone();
  ir::Scatter s;
  s.shape = at.shape;
  s.indices = index_operands(target, at, own);
  s.value = view_of(value, at.shape);
  s.target = indexed_view(target, at);
  s.add = add;
  s.op = at.op;
  const std::vector<const Tensor*> reads = pointers(own, value);
  const Tensor* written = &target;
  submit(std::move(s), reads, {&written, 1});
}

// The value as the instruction needs it: of the target's type, on its device, apart from its memory.
Tensor prepared(const Tensor& target, const Operand& value) {
  const Options like(target.dtype(), target.device());
  if (!value.is_tensor()) return full({}, value.scalar(), like);
  Tensor v = value.tensor().detach().to(target.device(), target.dtype(), false, false);
  return v.impl()->storage.get() == target.impl()->storage.get() ? v.clone() : v;
}

}  // namespace

namespace {

Tensor raw_gather(const Tensor& source, const Addressing& at, const Positions& positions) {
  if (is_complex(source.dtype())) return as_complex(raw_gather(as_real(source), of_parts(at), of_parts(positions)));
  if (has_storage_type(source.dtype())) return as_elements(raw_gather(as_stored(source), at, positions), source.dtype());
  Tensor out = make_result(at.shape, source.dtype(), source.device(), at.op, true);
  if (product(at.shape) > 0) {
    ir::Gather g;
    g.shape = at.shape;
    g.indices = index_operands(source, at, positions);
    g.source = indexed_view(source, at);
    g.out = view_of(out, at.shape);
    g.op = at.op;
    const std::vector<const Tensor*> reads = pointers(positions, source);
    const Tensor* written = &out;
    submit(std::move(g), reads, {&written, 1});
  }
  return out;
}

// The places of all entries at once, among tensors whose first dimension is the batch.
struct BatchedPlaces {
  BatchedPlaces(const Tensor& t, const Addressing& of_entry, const Positions& given, const Tensor& value)
      : batch(operands(t, given, value)), source(batch.opened(t)), at(of_entry) {
    const bool has = batch.has(t);
    bool apart = false;  // each entry has positions of its own
    for (const Tensor& p : given) {
      positions.push_back(batch.aligned(p, static_cast<int64_t>(at.shape.size())));
      apart = apart || batch.has(p);
    }
    at.shape.insert(0, batch.size());
    if (!has) {
      at.from.insert(0, -1);
      return;
    }
    if (at.sizes.empty()) source = source.unsqueeze(1);
    at.sizes = source.sizes();
    for (int64_t& d : at.from) d += d >= 0;
    at.from.insert(0, apart ? -1 : 0);
    for (int& d : at.dims) ++d;
    if (!apart) return;
    Dims line(at.shape.size(), 1);
    line[0] = batch.size();
    at.dims.insert(at.dims.begin(), 0);
    positions.insert(positions.begin(), arange(0, batch.size(), 1, Options(DType::I64, source.device())).view(line));
  }
  static std::vector<Tensor> operands(const Tensor& t, Positions list, const Tensor& value) {
    list.push_back(t), list.push_back(value);
    return list;
  }
  batching::Batch batch;
  Tensor source;
  Addressing at;
  Positions positions;
};

}  // namespace

Tensor gather_at(const Tensor& source, const Addressing& at, const Positions& positions, const char* node) {
  const auto entries = [&] {
    const BatchedPlaces b(source, at, positions, {});
    return b.batch.entry(gather_at(b.source, b.at, b.positions, node));
  };
  if (auto y = ops::by_rules(source, positions, BatchRule{entries})) return *std::move(y);
  return record_saving(
      raw_gather(source, at, positions), node, {&source}, positions,
      autograd::WithJvp([at](Grads g, Grads saved) { return std::vector{g[0].defined() ? accumulate_at(g[0], at, saved) : Tensor()}; },
                        [at, node](Grads t, Grads saved) { return gather_at(t[0], at, saved, node); }));
}

Tensor accumulate_at(const Tensor& g, const Addressing& at, const Positions& positions) {
  Tensor whole;
  {
    const NoGrad off;
    const DType type = is_half(g.dtype()) ? DType::F32 : g.dtype();
    whole = zeros(at.sizes, Options(type, g.device()));
    write_at(whole, at, positions, g.detach().to(type), true);
    whole = whole.to(g.dtype());
  }
  return record_saving(
      whole, "IndexPutBackward0", {&g}, positions,
      autograd::WithJvp(
          [at](Grads gg, Grads saved) { return std::vector{gg[0].defined() ? gather_at(gg[0], at, saved, "IndexBackward0") : Tensor()}; },
          [at](Grads t, Grads saved) { return accumulate_at(t[0], at, saved); }));
}

void scatter_at(const Tensor& target, const Addressing& at, const Positions& positions, const Operand& value, bool add, const char* node) {
  const Tensor own = value.is_tensor() ? value.tensor() : Tensor();
  if (are_batched(target, own) || parts_of_any(positions)) [[unlikely]] {
    const BatchedPlaces b(target, at, positions, own);
    if (!b.batch.has(target)) throw batching::WrittenWithoutBatch(at.op);
    const Tensor values = own.defined() ? b.batch.aligned(own, static_cast<int64_t>(at.shape.size())) : own;
    scatter_at(b.source, b.at, b.positions, own.defined() ? Operand(values) : value, add, node);
    return set_batched(target, b.batch.opened(target));
  }
  require_distinct_elements(target, at.op);
  const Dims value_shape = own.defined() ? own.sizes() : Dims();
  const DType value_type = own.defined() ? own.dtype() : target.dtype();
  const Device value_device = own.defined() ? own.device() : target.device();
  write_in_place(
      target, at.op, node, {&own}, positions, [&] { write_at(target, at, positions, prepared(target, value), add); },
      autograd::WithJvp(
          [=](Grads g, Grads saved, autograd::Needed needed) {
            std::vector<Tensor> r(2);
            if (!g[0].defined()) return r;
            if (needed[0]) r[0] = g[0];
            if (needed[0] && !add) {
              r[0] = g[0].clone();
              scatter_at(r[0], at, saved, 0, false, "IndexPutBackward0");
            }
            if (needed[1])
              r[1] = gradient_as(sum_to(gather_at(g[0], at, saved, "IndexBackward0"), value_shape), value_type).to(value_device);
            return r;
          },
          [at, add, node, like = autograd::TensorLike(target)](Grads t, Grads saved) {
            if (add && !t[1].defined()) return t[0];
            const Tensor result = t[0].defined() ? t[0].clone() : zeros(like.sizes, Options(like.dtype, like.device));
            scatter_at(result, at, saved, t[1].defined() ? Operand(t[1]) : Operand(0), add, node);
            return result;
          }));
}

Tensor as_positions(const Tensor& index, Device device, const char* op) {
  if (index.dtype() != DType::I64 && index.dtype() != DType::I32)
    throw RuntimeError("{}(): Expected dtype int32/int64 for index, but got {}", op, name_of(index.dtype()));
  return index.detach().to(device, DType::I64, false, false);
}

namespace {

// One bit, the lowest, for each of eight bytes that are not 0.
uint64_t eight_bits(const uint8_t* bytes) noexcept {
  constexpr uint64_t kLow = 0x7f7f7f7f7f7f7f7f;
  uint64_t w;
  std::memcpy(&w, bytes, 8);
  return (((w & kLow) + kLow) | w) >> 7 & 0x0101010101010101;
}

// Positions of a tensor of shape `sizes`, in each of its dimensions: to[d][i * step] for flat[i].
void unravel_to(const Tensor& flat, const Dims& sizes, std::span<int64_t* const> to, int64_t step) {
  const int64_t n = flat.numel();
  const int64_t* const p = n ? flat.data<int64_t>() : nullptr;
  for (int64_t i = 0; i < n; ++i) {
    uint64_t rest = static_cast<uint64_t>(p[i]);
    for (size_t d = sizes.size(); --d > 0;) {
      const auto size = static_cast<uint64_t>(sizes[d]);
      const uint64_t above = rest / size;
      to[d][i * step] = static_cast<int64_t>(rest - above * size);
      rest = above;
    }
    to[0][i * step] = static_cast<int64_t>(rest);
  }
}

}  // namespace

namespace {

// Row-major positions of what is not 0 in a mask on the cpu.
Tensor flat_positions(const Tensor& mask) {
  const uint8_t* p = static_cast<const uint8_t*>(mask.data_ptr());
  const int64_t n = mask.numel(), eights = n / 8 * 8;
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) count += p[i] != 0;
  Tensor out = make_result({count}, DType::I64, Device(DeviceType::Cpu), "nonzero");
  if (count == 0) return out;
  int64_t* q = out.data<int64_t>();
  for (int64_t i = 0; i < eights; i += 8)
    for (uint64_t bits = eight_bits(p + i); bits; bits &= bits - 1) *q++ = i + std::countr_zero(bits) / 8;
  for (int64_t i = eights; i < n; ++i)
    if (p[i]) *q++ = i;
  return out;
}

// Rows (count, rank) of positions, each column of which is dense, as PyTorch's are.
Tensor empty_rows(int64_t count, int64_t rank, Device device) {
  return make_result({count, rank}, Dims{1, count}, DType::I64, device, "nonzero");
}

// The same as rows of positions in the dimensions of `sizes`, by the mask's device. Waits for how many there are.
Tensor positions_on_device(const Tensor& mask, const Dims& sizes) {
  ir::Nonzero counts;
  counts.shape = sizes;
  counts.mask = {view_of(mask, mask.sizes()).data, DType::Bool, contiguous_strides(sizes)};
  int64_t count = 0;
  Tensor ends;
  if (const int64_t blocks = counts.blocks(); blocks > 0) {
    ends = make_result({blocks}, DType::I64, mask.device(), "nonzero");
    counts.ends = view_of(ends, ends.sizes());
    submit(ir::Instruction(counts), {&mask}, {&ends});
    count = ends.select(0, blocks - 1).item<int64_t>();
  }
  const Tensor out = empty_rows(count, static_cast<int64_t>(sizes.size()), mask.device());
  if (out.numel() == 0) return out;
  ir::Nonzero found = std::move(counts);
  found.finds = true, found.count = count;
  found.positions = view_of(out, out.sizes());
  submit(std::move(found), {&mask, &ends}, {&out});
  return out;
}

// What is not 0, as bools that lie row-major.
Tensor as_mask(const Tensor& t) {
  if (t.device().is_meta())
    throw NotImplementedError(
        "The register_meta function for torch.nonzero() raises unimplemented by default, as a correct data-independent implementation does "
        "not exist. (How many elements are not 0 is not known of a meta tensor, which has none)");
  const Tensor mask = t.detach();
  return (mask.dtype() == DType::Bool ? mask : mask.to(DType::Bool)).contiguous();
}

}  // namespace

Tensor flat_nonzero(const Tensor& t) {
  const Tensor mask = as_mask(t);
  if (mask.device().is_cpu()) return flat_positions(mask);
  return positions_on_device(mask, {mask.numel()}).view({-1});
}

Positions nonzero_columns(const Tensor& t) {
  if (t.dim() == 1) return {flat_nonzero(t)};
  const Tensor rows = nonzero_rows(t);
  Positions columns(t.sizes().size());
  for (size_t d = 0; d < columns.size(); ++d) columns[d] = rows.select(1, static_cast<int64_t>(d));
  return columns;
}

Tensor nonzero_rows(const Tensor& t) {
  const Tensor mask = as_mask(t);
  if (!mask.device().is_cpu()) return positions_on_device(mask, t.sizes());
  const Tensor flat = flat_positions(mask);
  const int64_t rank = t.dim(), count = flat.numel();
  const Tensor rows = empty_rows(count, rank, Device(DeviceType::Cpu));
  std::vector<int64_t*> to;
  for (int64_t d = 0; d < rank && rows.numel() > 0; ++d) to.push_back(rows.data<int64_t>() + d * count);
  if (!to.empty()) unravel_to(flat, t.sizes(), to, 1);
  return rows;
}

}  // namespace naru::ops
