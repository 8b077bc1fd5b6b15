// pad; unfold and fold; pixel_shuffle, pixel_unshuffle, channel_shuffle.
#include "naru/ops.h"

#include <fmt/format.h>

#include <bit>

#include "autograd/history/constant.h"
#include "autograd/history/history.h"
#include "naru/ops/resampling.h"
#include "ops/call/wrapped.h"
#include "ops/elementwise/host_loop.h"
#include "ops/nn/windows.h"
#include "ops/shape/strides.h"
#include "ops/tensor/checked.h"
#include "ops/tensor/common.h"

namespace naru {
namespace {

using autograd::record;
using Tensors = std::vector<Tensor>;

Dims negated(Dims amounts) {
  for (int64_t& a : amounts) a = -a;
  return amounts;
}

// The bits of `value` as an element; none for 16-bit types, which need rounding.
std::optional<int64_t> bits_of(double value, DType type) {
  if (!is_floating(type)) return type == DType::Bool ? static_cast<int64_t>(value) != 0 : static_cast<int64_t>(value);
  if (std::bit_cast<int64_t>(value) == 0) return 0;
  if (type == DType::F64) return std::bit_cast<int64_t>(value);
  if (type == DType::F32) return std::bit_cast<int32_t>(static_cast<float>(value));
  return std::nullopt;
}

// The gradient is the same padding with negated amounts: it crops the padding, and fills what was cropped with zeros.
Tensor constant_pad(const Tensor& x, const Dims& amounts, double value) {
  Dims sizes = x.sizes();
  Tensor inner = x.detach();
  std::vector<std::array<int64_t, 2>> to(sizes.size());
  for (size_t i = 0; i < amounts.size() / 2; ++i) {
    const size_t d = sizes.size() - 1 - i;
    const int64_t before = amounts[2 * i], behind = amounts[2 * i + 1], size = ops::plus(ops::plus(sizes[d], before), behind);
    if (size < 0)
      throw RuntimeError(
          "narrow(): length must be non-negative. The input size {}, plus negative padding {} and {}, resulted in a negative output size, "
          "which is "
          "invalid. Check dimension {} of your input.",
          sizes[d], before, behind, d);
    const int64_t cut = std::max<int64_t>(-before, 0), kept = sizes[d] - cut - std::max<int64_t>(-behind, 0);
    inner = kept < 0 ? inner.narrow(static_cast<int64_t>(d), 0, 0) : inner.narrow(static_cast<int64_t>(d), cut, kept);
    to[d] = {std::max<int64_t>(before, 0), 1};
    sizes[d] = size;
  }
  const Tensor out = ops::make_result(sizes, ops::format_strides(sizes, ops::suggested_format(x)), x.dtype(), x.device(), "pad");
  int64_t first = 0;
  for (size_t d = 0; d < sizes.size(); ++d) first += to[d][1] ? to[d][0] * out.strides()[d] : 0;
  if (const auto bits = bits_of(value, x.dtype());
      bits && x.dim() > 0 && ops::can_use_host_loop({&x, &inner}) && inner.is_contiguous() && out.is_contiguous()) {
    ops::run_host_loop(ir::HostLoop::Kind::Pad, {&inner}, {&out}, {first, *bits});
    return out;
  }
  if (out.numel() > 0) {
    NoGrad guard;
    Tensor target = out;
    target.fill_(is_floating(x.dtype()) ? Operand(value) : Operand(static_cast<int64_t>(value)));
    if (inner.numel() > 0) {
      for (size_t d = 0; d < sizes.size(); ++d)
        if (to[d][1]) target = target.narrow(static_cast<int64_t>(d), to[d][0], inner.sizes()[d]);
      target.copy_(inner);
    }
  }
  return record(
      out, "ConstantPadNdBackward0", {&x}, {},
      autograd::WithJvp([amounts](const Tensors& g, const Tensors&) -> Tensors { return {constant_pad(g[0], negated(amounts), 0)}; },
                        [amounts](const Tensors& t, const Tensors&) { return constant_pad(t[0], amounts, 0); }));
}

// The index of the element that padding copies to position e outside the dimension.
int64_t reflected_index(int64_t e, int64_t size) { return e < 0 ? -e : e >= size ? 2 * (size - 1) - e : e; }
int64_t replicated(int64_t e, int64_t size) { return std::clamp<int64_t>(e, 0, size - 1); }
int64_t wrapped(int64_t e, int64_t size) { return e < 0 ? e + size : e >= size ? e - size : e; }

struct PadMode {
  std::string_view name;
  int64_t (*seen)(int64_t, int64_t);
  const char* node;
  const char* refuses_bool;
};
constexpr PadMode kPadModes[] = {{"reflect", reflected_index, "ReflectionPadBackward0", "reflection_pad"},
                                 {"replicate", replicated, "ReplicationPadBackward0", "replication_pad"},
                                 {"circular", wrapped, "CircularPadBackward0", nullptr}};

// The batch may be empty; other dimensions may not.
void require_elements(const Tensor& x, bool batched, const std::string& dims) {
  for (int64_t d = batched; d < x.dim(); ++d)
    if (x.size(d) == 0)
      throw RuntimeError("Expected {} (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: {}",
                         dims, x.sizes().str());
}

void check_amounts(const Tensor& x, const PadMode& mode, int64_t before, int64_t behind, int64_t d) {
  const int64_t size = x.size(d), whole = ops::plus(ops::plus(size, before), behind);
  if (mode.seen == reflected_index && (before >= size || behind >= size))
    throw RuntimeError(
        "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding ({}, {}) at dimension {} of "
        "input {}",
        before, behind, d, x.sizes().str());
  if (mode.seen == wrapped && (before > size || behind > size)) throw RuntimeError("Padding value causes wrapping around more than once.");
  if (whole < (mode.seen == wrapped ? 0 : 1) || size == 0)
    throw RuntimeError("input (dimension {}: {}) is too small. Calculated output size: {} (pad, mode {})", d, size, whole, mode.name);
}

Tensor pad_by(const Tensor& x, const Dims& amounts, const PadMode& mode);

// Circular padding with negative amounts: crop first, then wrap around what is left.
Tensor pad_what_is_left(const Tensor& x, Dims amounts, const PadMode& mode) {
  Dims cuts = amounts;
  for (size_t i = 0; i < amounts.size(); ++i) cuts[i] = std::min<int64_t>(amounts[i], 0), amounts[i] = std::max<int64_t>(amounts[i], 0);
  return pad_by(constant_pad(x, cuts, 0), amounts, mode);
}

Tensor pad_by(const Tensor& x, const Dims& amounts, const PadMode& mode) {
  const int64_t n = static_cast<int64_t>(amounts.size()) / 2;
  if (n < 1 || n > 3 || (x.dim() != n + 1 && x.dim() != n + 2))
    throw NotImplementedError(
        "Padding size {} is not supported for {}D input tensor.\nSupported combinations for non-constant padding:\n  - 2D or 3D input: "
        "padding size "
        "= 2 (pads last dimension)\n  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n  - 4D or 5D input: padding size = 6 "
        "(pads last 3 "
        "dimensions)",
        amounts.size(), x.dim());
  if (x.dtype() == DType::Bool && mode.refuses_bool)
    throw NotImplementedError("\"{}{}d\" not implemented for 'Bool'", mode.refuses_bool, n);
  if (mode.seen != wrapped) require_elements(x, x.dim() == n + 2, fmt::format("{}D or {}D", n + 1, n + 2));
  const Tensor batched = x.dim() == n + 2 ? x : x.unsqueeze(0);
  const auto amount = [&](int64_t i, int64_t side) { return amounts[static_cast<size_t>(2 * i + side)]; };
  Dims out;
  for (int64_t i = n - 1; i >= 0; --i) {
    check_amounts(x, mode, amount(i, 0), amount(i, 1), x.dim() - 1 - i);
    out.push_back(x.size(-1 - i) + amount(i, 0) + amount(i, 1));
  }
  if (mode.seen == wrapped && std::any_of(amounts.begin(), amounts.end(), [](int64_t a) { return a < 0; }))
    return pad_what_is_left(x, amounts, mode);
  ops::check_output_size(batched, out, "pad");
  ops::WindowTables tables;
  for (int64_t i = n - 1; i >= 0; --i) {
    const int64_t before = amount(i, 0), behind = amount(i, 1), in = x.size(-1 - i);
    tables.push_back(before == 0 && behind == 0 ? ops::identity_table(in) : ops::single_table(in, in + before + behind, [&](int64_t p) {
      return mode.seen(p - before, in);
    }));
  }
  const Tensor y = autograd::reading_inputs(ops::window_sum(batched, std::move(tables), mode.node));
  return x.dim() == n + 2 ? y : y.squeeze(0);
}

}  // namespace

Tensor pad(const Tensor& x, const Dims& amounts, std::string_view mode, std::optional<double> value) {
  ops::require_defined(x, "pad", "input");
  if (amounts.size() % 2) throw RuntimeError("Padding length must be divisible by 2");
  if (static_cast<int64_t>(amounts.size() / 2) > x.dim())
    throw RuntimeError(
        "Padding length should be less than or equal to two times the input dimension but got padding length {} and input of dimension {}",
        amounts.size(), x.dim());
  if (mode == "constant") return constant_pad(x, amounts, value.value_or(0));
  for (const PadMode& m : kPadModes) {
    if (m.name != mode) continue;
    if (value.value_or(0) != 0) throw RuntimeError("Padding mode \"{}\" doesn't take in value argument", mode);
    // PyTorch's list for the cpu has replication, and reflection in one and two dimensions.
    if (m.seen == replicated || (m.seen == reflected_index && amounts.size() < 6))
      if (auto y = ops::wrapped("pad", pad_by, x, amounts, m)) return *std::move(y);
    return pad_by(x, amounts, m);
  }
  throw NotImplementedError("Unrecognised padding mode {}", mode);
}

// --- windows as columns -----------------------------------------------------------------------------------------------------------------
namespace {

struct Columns {
  Dims kernel, dilation, padding, stride;  // two entries each (height, width)
  bool pads() const { return padding[0] != 0 || padding[1] != 0; }
  int64_t positions(int64_t size, size_t d) const {
    const int64_t room = ops::plus(size, ops::times(2, padding[d])) - ops::times(dilation[d], kernel[d] - 1) - 1;
    return (room < 0 ? room - stride[d] + 1 : room) / stride[d] + 1;
  }
  std::string str() const {
    const auto pair = [](const Dims& p) { return fmt::format("({}, {})", p[0], p[1]); };
    return fmt::format("kernel_size={}, dilation={}, padding={}", pair(kernel), pair(dilation), pair(padding));
  }
};

Dims pair_of(const Dims& given, const char* what) {
  if (given.size() == 1) return {given[0], given[0]};
  if (given.size() != 2) throw RuntimeError("It is expected {} equals to 2, but got size {}", what, given.size());
  return given;
}

Columns columns_of(const Dims& kernel, const Dims& dilation, const Dims& padding, const Dims& stride) {
  const Columns c{pair_of(kernel, "kernel_size"), pair_of(dilation, "dilation"), pair_of(padding, "padding"), pair_of(stride, "stride")};
  for (const auto& [list, what] : {std::pair{&c.kernel, "kernel"}, std::pair{&c.dilation, "dilation"}, std::pair{&c.stride, "stride"}})
    if ((*list)[0] < 1 || (*list)[1] < 1)
      throw RuntimeError("{0} should be greater than zero, but got {0}_height: {1} {0}_width: {2}", what, (*list)[0], (*list)[1]);
  if (c.padding[0] < 0 || c.padding[1] < 0)
    throw RuntimeError("padding should be non-negative, but got padding_height: {} padding_width: {}", c.padding[0], c.padding[1]);
  return c;
}

// The elements at kernel offset (i, j) of all windows, from a padded image.
Tensor seen_by(const Tensor& padded, const Columns& c, int64_t i, int64_t j, int64_t down, int64_t across) {
  const int64_t y = i * c.dilation[0], x = j * c.dilation[1];
  return padded.slice(2, y, y + (down - 1) * c.stride[0] + 1, c.stride[0]).slice(3, x, x + (across - 1) * c.stride[1] + 1, c.stride[1]);
}

Tensor folded(const Tensor& columns, const Dims& sizes, const Columns& c);

// x (N, C, h, w).
Tensor unfolded(const Tensor& x, const Columns& c) {
  const int64_t down = c.positions(x.size(2), 0), across = c.positions(x.size(3), 1), places = c.kernel[0] * c.kernel[1];
  Tensor out;
  {
    NoGrad guard;
    const Tensor padded = c.pads() ? constant_pad(x.detach(), {c.padding[1], c.padding[1], c.padding[0], c.padding[0]}, 0) : x.detach();
    out = empty({x.size(0), x.size(1), places, down, across}, Options(x.dtype(), x.device()));
    for (int64_t k = 0; k < places; ++k) out.select(2, k).copy_(seen_by(padded, c, k / c.kernel[1], k % c.kernel[1], down, across));
    out = out.view({x.size(0), x.size(1) * places, down * across});
  }
  return record(out, "Im2ColBackward0", {&x}, {},
                autograd::WithJvp([c, sizes = x.sizes()](const Tensors& g, const Tensors&) -> Tensors { return {folded(g[0], sizes, c)}; },
                                  [c](const Tensors& t, const Tensors&) { return unfolded(t[0], c); }));
}

// columns (N, C * kernel size, positions) into sizes (N, C, h, w).
Tensor folded(const Tensor& columns, const Dims& sizes, const Columns& c) {
  const int64_t down = c.positions(sizes[2], 0), across = c.positions(sizes[3], 1), places = c.kernel[0] * c.kernel[1];
  Tensor out;
  {
    NoGrad guard;
    const Tensor parts = columns.detach().reshape({sizes[0], sizes[1], places, down, across});
    out = zeros({sizes[0], sizes[1], sizes[2] + 2 * c.padding[0], sizes[3] + 2 * c.padding[1]}, Options(columns.dtype(), columns.device()));
    for (int64_t k = 0; k < places; ++k) seen_by(out, c, k / c.kernel[1], k % c.kernel[1], down, across) += parts.select(2, k);
    if (c.pads()) out = constant_pad(out, {-c.padding[1], -c.padding[1], -c.padding[0], -c.padding[0]}, 0);
  }
  return record(out, "Col2ImBackward0", {&columns}, {},
                autograd::WithJvp([c](const Tensors& g, const Tensors&) -> Tensors { return {unfolded(g[0], c)}; },
                                  [c, sizes](const Tensors& t, const Tensors&) { return folded(t[0], sizes, c); }));
}

}  // namespace

Tensor unfold(const Tensor& x, const Dims& kernel, const Dims& dilation, const Dims& padding, const Dims& stride) {
  ops::require_defined(x, "unfold", "input");
  const Columns c = columns_of(kernel, dilation, padding, stride);
  if (x.dim() != 3 && x.dim() != 4)
    throw RuntimeError(
        "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: {} (unfold)",
        x.sizes().str());
  require_elements(x, x.dim() == 4, "3D or 4D");
  if (!is_inexact(x.dtype()) && x.dtype() != DType::Bool) ops::throw_not_implemented("im2col_out_cpu", x.dtype());
  const int64_t down = c.positions(x.size(-2), 0), across = c.positions(x.size(-1), 1);
  if (x.size(-2) + 2 * c.padding[0] < c.dilation[0] * (c.kernel[0] - 1) + 1 ||
      x.size(-1) + 2 * c.padding[1] < c.dilation[1] * (c.kernel[1] - 1) + 1)
    throw RuntimeError(
        "Given input with spatial size ({}, {}), {}, calculated shape of the array of sliding blocks as ({}, {}), but its components must "
        "be at least "
        "one.",
        x.size(-2), x.size(-1), c.str(), down, across);
  return x.dim() == 4 ? unfolded(x, c) : unfolded(x.unsqueeze(0), c).squeeze(0);
}

Tensor fold(const Tensor& x, const Dims& output_size, const Dims& kernel, const Dims& dilation, const Dims& padding, const Dims& stride) {
  ops::require_defined(x, "fold", "input");
  const Columns c = columns_of(kernel, dilation, padding, stride);
  const Dims out = pair_of(output_size, "output_size");
  if (x.dim() != 2 && x.dim() != 3)
    throw RuntimeError(
        "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, but got: {}",
        x.sizes().str());
  const int64_t places = ops::times(c.kernel[0], c.kernel[1]), down = c.positions(out[0], 0), across = c.positions(out[1], 1);
  if (x.size(-2) % places != 0)
    throw RuntimeError(
        "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)={} and kernel_size=({}, "
        "{}).",
        x.size(-2), c.kernel[0], c.kernel[1]);
  if (down < 1 || across < 1)
    throw RuntimeError(
        "Given output_size=({}, {}), {}, stride=({}, {}), calculated shape of the array of sliding blocks as ({}, {}), which is too small "
        "(non-positive)",
        out[0], out[1], c.str(), c.stride[0], c.stride[1], down, across);
  if (x.size(-1) != down * across)
    throw RuntimeError(
        "Given output_size=({}, {}), {}, stride=({}, {}), expected size of input's dimension 2 to match the calculated number of sliding "
        "blocks {} * {} = "
        "{}, but got input.size(2)={}.",
        out[0], out[1], c.str(), c.stride[0], c.stride[1], down, across, down * across, x.size(-1));
  if (x.dim() == 3) return folded(x, {x.size(0), x.size(1) / places, out[0], out[1]}, c);
  return folded(x.unsqueeze(0), {1, x.size(0) / places, out[0], out[1]}, c).squeeze(0);
}

// --- channels and pixels ----------------------------------------------------------------------------------------------------------------
Tensor pixel_shuffle(const Tensor& x, int64_t r) {
  ops::require_defined(x, "pixel_shuffle", "input");
  if (x.dim() < 3)
    throw RuntimeError("pixel_shuffle expects input to have at least 3 dimensions, but got input with {} dimension(s)", x.dim());
  if (r <= 0) throw RuntimeError("pixel_shuffle expects a positive upscale_factor, but got {}", r);
  const int64_t channels = x.size(-3), h = x.size(-2), w = x.size(-1), square = ops::times(r, r);
  if (channels % square != 0)
    throw RuntimeError(
        "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but input.size(-3)={} is "
        "not divisible by {}",
        channels, square);
  Dims lead(std::span<const int64_t>(x.sizes()).first(static_cast<size_t>(x.dim() - 3)));
  const int64_t images = product(lead);
  const Tensor apart = x.reshape({images, channels / square, r, r, h, w}).permute({0, 1, 4, 2, 5, 3});
  for (const int64_t s : {channels / square, ops::times(h, r), ops::times(w, r)}) lead.push_back(s);
  const Tensor out = apart.reshape(lead);
  return ops::suggested_format(x) == MemoryFormat::ChannelsLast ? out.contiguous(MemoryFormat::ChannelsLast) : out;
}

Tensor pixel_unshuffle(const Tensor& x, int64_t r) {
  ops::require_defined(x, "pixel_unshuffle", "input");
  if (x.dim() < 3)
    throw RuntimeError("pixel_unshuffle expects input to have at least 3 dimensions, but got input with {} dimension(s)", x.dim());
  if (r <= 0) throw RuntimeError("pixel_unshuffle expects a positive downscale_factor, but got {}", r);
  const int64_t channels = x.size(-3), h = x.size(-2), w = x.size(-1);
  for (const auto& [size, side, d] : {std::tuple{h, "height", -2}, std::tuple{w, "width", -1}})
    if (size % r != 0)
      throw RuntimeError("pixel_unshuffle expects {} to be divisible by downscale_factor, but input.size({})={} is not divisible by {}",
                         side, d, size, r);
  Dims lead(std::span<const int64_t>(x.sizes()).first(static_cast<size_t>(x.dim() - 3)));
  const int64_t images = product(lead);
  const Tensor apart = x.reshape({images, channels, h / r, r, w / r, r}).permute({0, 1, 3, 5, 2, 4});
  for (const int64_t s : {ops::times(channels, ops::times(r, r)), h / r, w / r}) lead.push_back(s);
  const Tensor out = apart.reshape(lead);
  return ops::suggested_format(x) == MemoryFormat::ChannelsLast ? out.contiguous(MemoryFormat::ChannelsLast) : out;
}

Tensor channel_shuffle(const Tensor& x, int64_t groups) {
  ops::require_defined(x, "channel_shuffle", "input");
  if (x.dim() < 3) throw RuntimeError("channel_shuffle expects input with > 2 dims, but got input with sizes {}", x.sizes().str());
  if (groups <= 0) throw RuntimeError("Number of groups to divide channels in must be positive. Value of groups:{}", groups);
  const int64_t channels = x.size(1);
  if (channels % groups != 0)
    throw RuntimeError("Number of channels must be divisible by groups. Got {} channels and {} groups.", channels, groups);
  Dims apart = x.sizes();
  apart[1] = groups;
  apart.insert(2, channels / groups);
  const Tensor out = x.reshape(apart).transpose(1, 2).clone(MemoryFormat::Contiguous).view(x.sizes());  // never x itself
  const MemoryFormat format = ops::suggested_format(x);
  return format == MemoryFormat::Contiguous ? out : out.contiguous(format);
}

}  // namespace naru
