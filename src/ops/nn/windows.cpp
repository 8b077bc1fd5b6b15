#include "ops/nn/windows.h"

#include <algorithm>
#include <limits>

#include "autograd/history/constant.h"
#include "autograd/history/history.h"
#include "naru/ops.h"
#include "naru/ops/complex.h"
#include "ops/nn/convolution.h"
#include "ops/shape/strides.h"
#include "ops/tensor/checked.h"
#include "ops/tensor/common.h"

namespace naru::ops {

using autograd::record;
using autograd::recording;
using ir::Windows;
using Op = Windows::Op;
using Tensors = std::vector<Tensor>;

WindowTable identity_table(int64_t size) { return {size, size, 1, {}, {}, true}; }

WindowTable table_of(int64_t in, const std::vector<std::vector<WindowEntry>>& positions, bool weighs) {
  WindowTable t;
  t.in = in, t.out = static_cast<int64_t>(positions.size());
  for (const auto& p : positions) t.places = std::max(t.places, static_cast<int64_t>(p.size()));
  t.index.assign(static_cast<size_t>(t.places * t.out), -1);
  if (weighs) t.weight.assign(t.index.size(), 0);
  for (size_t p = 0; p < positions.size(); ++p)
    for (size_t k = 0; k < positions[p].size(); ++k) {
      const size_t at = k * positions.size() + p;
      t.index[at] = positions[p][k].element;
      if (weighs) t.weight[at] = positions[p][k].weight;
    }
  return t;
}

WindowTable strided_window_table(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  // Leave out kernel offsets that no position reads: a kernel may be much larger than the input.
  const int64_t lead = padding - (out - 1) * stride;
  const int64_t first = lead > 0 ? (lead + dilation - 1) / dilation : 0, last = std::min(kernel - 1, (in - 1 + padding) / dilation);
  const int64_t places = std::max<int64_t>(last - first + 1, 1);
  WindowTable t{in, out, places, std::vector<int64_t>(static_cast<size_t>(places * out)), {}};
  for (int64_t k = 0; k < places; ++k)
    for (int64_t p = 0; p < out; ++p) {
      const int64_t e = p * stride - padding + (first + k) * dilation;
      t.index[static_cast<size_t>(k * out + p)] = e >= 0 && e < in && first + k < kernel ? e : -1;
    }
  const int64_t begin = first - padding, end = begin + (out - 1) * stride;  // of the first and of the last window
  if (dilation == 1 && first <= last && begin + places > 0 && end < in) t.step = stride, t.first = begin;
  return t;
}

WindowTable adaptive_table(int64_t in, int64_t out) {
  const auto begin = [&](int64_t p) { return p * in / out; };
  const auto end = [&](int64_t p) { return ((p + 1) * in + out - 1) / out; };
  WindowTable t{in, out, 1, {}, {}};
  t.index.reserve(static_cast<size_t>(out));  // if memory is short, fail before any work
  for (int64_t p = 0; p < out; ++p) t.places = std::max(t.places, end(p) - begin(p));
  t.index.resize(static_cast<size_t>(t.places * out));
  for (int64_t k = 0; k < t.places; ++k)
    for (int64_t p = 0; p < out; ++p) t.index[static_cast<size_t>(k * out + p)] = begin(p) + k < end(p) ? begin(p) + k : -1;
  return t;
}

WindowTable transposed(const WindowTable& t) {
  if (t.identity) return t;
  std::vector<std::vector<WindowEntry>> elements(static_cast<size_t>(t.in));
  for (int64_t p = 0; p < t.out && t.places > 0; ++p)
    for (int64_t k = 0; k < t.places; ++k) {
      const auto at = static_cast<size_t>(k * t.out + p);
      if (t.index[at] >= 0) elements[static_cast<size_t>(t.index[at])].push_back({p, t.weight.empty() ? 1 : t.weight[at]});
    }
  return table_of(t.out, elements, !t.weight.empty());
}

std::vector<int64_t> counts_of(const WindowTable& t) {
  if (t.places == 0) return {};
  std::vector<int64_t> counts(static_cast<size_t>(t.out), t.identity);
  for (size_t i = 0; i < t.index.size(); ++i) counts[i % static_cast<size_t>(t.out)] += t.index[i] >= 0;
  return counts;
}

bool check_output_size(const Tensor& x, const Dims& out, const char* op) {
  Dims sizes{x.sizes()[0], x.sizes()[1]};
  for (const int64_t s : out) sizes.push_back(s);
  return make_result(sizes, x.dtype(), x.device(), op, true).numel() > 0;
}

WindowTables no_tables(const Tensor& x, const Dims& out) {
  WindowTables tables;
  for (size_t d = 0; d < out.size(); ++d) tables.push_back({x.sizes()[d + 2], out[d], 0, {}, {}});
  return tables;
}

namespace {

using Shared = std::shared_ptr<const WindowTables>;

WindowTables transposed(const WindowTables& tables) {
  WindowTables out;
  for (const WindowTable& t : tables) out.push_back(transposed(t));
  return out;
}

Dims result_sizes(const Tensor& x, const WindowTables& tables) {
  Dims sizes{x.sizes()[0], x.sizes()[1]};
  for (const WindowTable& t : tables) sizes.push_back(t.out);
  return sizes;
}

// Writes weights in the compute type, which is floating point if there are weights.
void put_weights(const std::vector<double>& from, DType computed, int64_t* to) {
  if (computed == DType::F64)
    std::copy(from.begin(), from.end(), reinterpret_cast<double*>(to));
  else
    std::transform(from.begin(), from.end(), reinterpret_cast<float*>(to), [](double w) { return static_cast<float>(w); });
}

// Copies the tables to the device, one after another in a single tensor. The caller must keep it until the instruction is submitted. Undefined if all
// tables are identities.
Tensor put_tables(const WindowTables& tables, DType computed, Device device, Windows& w) {
  const size_t skip = 3 - tables.size();
  size_t words = 0;
  for (size_t d = 0; d < tables.size(); ++d) {
    w.size[skip + d] = tables[d].in, w.result[skip + d] = tables[d].out;
    words += tables[d].index.size() + tables[d].weight.size();
  }
  if (words == 0) return {};
  const Dims shape{static_cast<int64_t>(words)};
  const Tensor host = make_result(shape, DType::I64, Device(DeviceType::Cpu), "windows");
  host.impl()->storage->host_wrote = true;
  auto* const memory = reinterpret_cast<int64_t*>(host.impl()->address());
  size_t at = 0;
  for (const WindowTable& t : tables) {
    std::copy(t.index.begin(), t.index.end(), memory + at);
    at += t.index.size();
    if (!t.weight.empty()) put_weights(t.weight, computed, memory + at);
    at += t.weight.size();
  }
  const Tensor there = on_device(host, device);
  char* address = static_cast<char*>(view_of(there, shape).data);
  for (size_t d = 0; d < tables.size(); ++d) {
    Windows::Table& to = w.tables[skip + d];
    if (tables[d].identity) continue;
    to.places = tables[d].places;
    to.step = tables[d].step, to.first = tables[d].first;
    to.index = address;
    address += tables[d].index.size() * 8;
    if (!tables[d].weight.empty()) to.weight = address;
    address += tables[d].weight.size() * 8;
  }
  return there;
}

// Submits one instruction. indices: written by Max, if defined; read by Pick.
Tensor submitted(Op op, const Tensor& x, const Tensor& indices, const WindowTables& tables, DType out_type, bool apart = false) {
  const Dims sizes = result_sizes(x, tables);
  const Tensor out =
      make_result(sizes, format_strides(sizes, suggested_format(x)), out_type, x.device(), Windows::kNames[static_cast<int>(op)]);
  if (out.numel() == 0) return out;
  NoGrad guard;
  if (x.numel() == 0) {
    Tensor target = out;
    target.zero_();
    return out;
  }
  Windows w;
  w.op = op, w.apart = apart;
  w.dtype = x.dtype(), w.out = out_type;
  w.batch = sizes[0], w.channels = sizes[1];
  const Tensor held = put_tables(tables, w.computed(), x.device(), w);
  w.x = array_of(x), w.y = array_of(out);
  if (indices.defined()) w.indices = array_of(indices), w.index = indices.dtype();
  std::vector<const Tensor*> reads{&x}, writes{&out};
  if (held.defined()) reads.push_back(&held);
  if (indices.defined()) (op == Op::Max ? writes : reads).push_back(&indices);
  submit(std::move(w), reads, writes);
  return out;
}

// Windows with much overlap are summed one dimension at a time.
Tensor computed_sum(const Tensor& x, const WindowTables& tables) {
  double together = static_cast<double>(x.numel());
  for (const WindowTable& t : tables) together *= static_cast<double>(t.places * t.out) / static_cast<double>(std::max<int64_t>(t.in, 1));
  int wide = 0;
  for (const WindowTable& t : tables) wide += t.places > 1;
  const bool apart = wide > 1 && together > 3.0 * static_cast<double>(std::max(x.numel(), product(result_sizes(x, tables))));
  return submitted(Op::Sum, x, {}, tables, x.dtype(), apart);
}

Tensor sum_of(const Tensor& x, const Shared& tables, const char* node) {
  return record(computed_sum(x, *tables), node, {&x}, {},
                autograd::WithJvp([tables, node](const Tensors& g, const Tensors&)
                                      -> Tensors { return {sum_of(g[0], std::make_shared<WindowTables>(transposed(*tables)), node)}; },
                                  [tables, node](const Tensors& t, const Tensors&) { return sum_of(t[0], tables, node); }));
}

// Scatters g (N, C, out...) to the positions in `indices`: (N, C, in...), with the transposed tables.
Tensor placed(const Tensor& g, const Tensor& indices, const Shared& back) {
  return record(
      submitted(Op::Pick, g, indices, *back, g.dtype()), "MaxPoolBackward0", {&g}, {&indices},
      autograd::WithJvp([](const Tensors& gg, const Tensors& saved) -> Tensors { return {pick_elements(gg[0], saved[0].to(DType::I64))}; },
                        [back](const Tensors& t, const Tensors& saved) { return placed(t[0], saved[0], back); }));
}

}  // namespace

Tensor on_device(const Tensor& host, Device device) {
  if (device.is_cpu()) return host;
  // A copy to meta moves no bytes, and pinned memory needs an accelerator, which may not exist.
  return device.is_meta() ? host.to(device) : host.pin_memory().to(device, true);
}

Tensor window_sum(const Tensor& x, WindowTables tables, const char* node) {
  if (is_complex(x.dtype())) return complex(window_sum(real(x), tables, node), window_sum(imag(x), tables, node));
  return sum_of(x, std::make_shared<WindowTables>(std::move(tables)), node);
}

std::pair<Tensor, Tensor> window_max(const Tensor& x, WindowTables given, const char* node, bool for_gradient) {
  const Shared tables = std::make_shared<WindowTables>(std::move(given));
  const Dims sizes = result_sizes(x, *tables);
  // For a single image, the stride of the batch dimension is meaningless.
  const bool last = x.dim() == 5 && x.size(0) == 1 && !x.is_contiguous() && x.is_contiguous(MemoryFormat::ChannelsLast3d);
  const MemoryFormat format = last ? MemoryFormat::ChannelsLast3d : suggested_format(x);
  // The host computes with int64 indices and would have to convert others.
  const bool saves = for_gradient && !x.device().is_cpu();
  int64_t positions = 1;
  for (const WindowTable& t : *tables) positions = times(positions, t.in);
  const DType index = saves && positions <= std::numeric_limits<int32_t>::max() ? DType::I32 : DType::I64;
  Tensor indices;
  if (!saves || recording({&x})) indices = make_result(sizes, format_strides(sizes, format), index, x.device(), "window_max");
  const Tensor values = submitted(Op::Max, x, indices, *tables, x.dtype());
  const Tensor recorded = record(values, node, {&x}, {&indices},
                                 autograd::WithJvp(
                                     [tables](const Tensors& g, const Tensors& saved) -> Tensors {
                                       return {placed(g[0], saved[0], std::make_shared<WindowTables>(transposed(*tables)))};
                                     },
                                     [](const Tensors& t, const Tensors& saved) { return pick_elements(t[0], saved[0].to(DType::I64)); }));
  return {autograd::reading_inputs(recorded), indices};
}

Tensor pick_elements(const Tensor& x, const Tensor& indices) { return gather(x.flatten(2), 2, indices.flatten(2)).view(indices.sizes()); }

}  // namespace naru::ops
