#include "naru/ops/pooling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "autograd/history/constant.h"
#include "naru/autograd.h"
#include "naru/ops.h"
#include "ops/call/wrapped.h"
#include "ops/elementwise/half.h"
#include "ops/nn/windows.h"
#include "ops/shape/strides.h"
#include "ops/tensor/checked.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru {
namespace {

using ops::WindowTables;

constexpr const char* kNumbers[] = {"", "one", "two", "three"};

struct Pool {
  int64_t n;
  std::string op;  // "max_pool2d"
  Dims kernel, stride, padding, dilation;
  bool ceil_mode;
};

Dims spread(const Dims& given, const Pool& p, const char* what, bool optional = false) {
  if (given.size() == 1) return Dims(static_cast<size_t>(p.n), given[0]);
  if (static_cast<int64_t>(given.size()) == p.n) return given;
  if (p.n == 1) throw RuntimeError("{}() argument '{}' should contain one int (got {})", p.op, what, given.size());
  throw RuntimeError("{}: {} must either be {}a single int, or a tuple of {} ints", p.op, what, optional ? "omitted, " : "", kNumbers[p.n]);
}

Pool settings(int64_t n, const char* name, const Dims& kernel, const Dims& stride, const Dims& padding, const Dims& dilation,
              bool ceil_mode) {
  Pool p{n, fmt::format("{}{}d", name, n), {}, {}, {}, {}, ceil_mode};
  p.kernel = spread(kernel, p, "kernel_size");
  p.stride = stride.empty() ? p.kernel : spread(stride, p, "stride", true);
  p.padding = spread(padding, p, "padding"), p.dilation = spread(dilation, p, "dilation");
  for (int64_t d = 0; d < n; ++d) {
    const auto i = static_cast<size_t>(d);
    if (n == 1 && p.kernel[0] < 1) throw RuntimeError("{}() kernel_size must be greater than zero, but got {}", p.op, p.kernel[0]);
    if (p.stride[i] == 0)
      throw RuntimeError("stride should not be zero ({}: kernel_size {}, stride {})", p.op, p.kernel.str(), p.stride.str());
    if (p.kernel[i] < 1 || p.stride[i] < 1)
      throw RuntimeError("kernel size and stride should be greater than zero, but got kernel_size {} and stride {} ({})", p.kernel.str(),
                         p.stride.str(), p.op);
    if (p.dilation[i] < 1) throw RuntimeError("dilation should be greater than zero, but got dilation: {} ({})", p.dilation.str(), p.op);
    if (p.padding[i] < 0) throw RuntimeError("pad must be non-negative, but got pad: {} ({})", p.padding[i], p.op);
    const int64_t reach = ops::plus(ops::times(p.kernel[i] - 1, p.dilation[i]), 1);
    if (p.padding[i] > reach / 2 && n == 1)
      throw RuntimeError("{}() padding should be at most half of kernel size, but got padding={} and kernel_size={}", p.op, p.padding[i],
                         p.kernel[i]);
    if (p.padding[i] > reach / 2)
      throw RuntimeError("pad should be at most half of effective kernel size, but got pad={}, kernel_size={} and dilation={} ({})",
                         p.padding[i], p.kernel[i], p.dilation[i], p.op);
  }
  return p;
}

void check_input(const Tensor& x, int64_t n, const std::string& op) {
  ops::require_defined(x, op.c_str(), "input");
  bool fits = x.dim() == n + 1 || x.dim() == n + 2;
  if (!fits && n > 1)
    throw RuntimeError("non-empty {}D or {}D (batch mode) tensor expected for input ({}: got shape {})", n + 1, n + 2, op, x.sizes().str());
  const bool whole = fits;
  int64_t d = x.dim() == n + 2 ? 1 : 0;
  while (fits && d < x.dim()) fits = x.size(d++) > 0;
  if (whole && !fits && (n == 3 || op.starts_with("fractional")))
    throw RuntimeError(
        "{}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {} with dimension {} being empty", op,
        x.sizes().str(), d - 1);
  if (!fits)
    throw RuntimeError("{}: Expected {}D or {}D (batch mode) tensor with optional 0 dim batch size for input, but got:{}", op, n + 1, n + 2,
                       x.sizes().str());
}

// Shape without the batch: "4x5x5".
std::string size_text(int64_t channels, std::span<const int64_t> sizes) {
  std::string text = fmt::format("{}", channels);
  for (const int64_t s : sizes) text += fmt::format("x{}", s);
  return text;
}

// Output sizes of a batched input.
Dims result_sizes(const Tensor& x, const Pool& p) {
  Dims out;
  bool fits = true;
  for (size_t d = 0; d < p.kernel.size(); ++d) {
    const int64_t in = x.sizes()[d + 2], reach = ops::plus(ops::times(p.dilation[d], p.kernel[d] - 1), 1);
    const int64_t room = ops::plus(ops::plus(in, ops::times(2, p.padding[d])), p.ceil_mode ? p.stride[d] - 1 : 0) - reach;
    int64_t size = room < 0 ? 0 : room / p.stride[d] + 1;
    // The last window must begin inside the input or its padding at the start.
    if (p.ceil_mode && size > 0 && (size - 1) * p.stride[d] >= in + p.padding[d]) --size;
    fits = fits && size > 0;
    out.push_back(size);
  }
  if (!fits && p.n == 1)
    throw RuntimeError("{}() Invalid computed output size: {} is too small (kernel_size {}, input {})", p.op, out[0], p.kernel[0],
                       x.sizes().str());
  if (!fits)
    throw RuntimeError(
        "Given input size: ({}). Calculated output size: ({}). Output size is too small ({}: a kernel of at most the padded input fits)",
        size_text(x.size(1), std::span<const int64_t>(x.sizes()).subspan(2)), size_text(x.size(1), out), p.op);
  return out;
}

WindowTables tables_of(const Tensor& x, const Pool& p, const Dims& out) {
  if (!ops::check_output_size(x, out, "pool")) return ops::no_tables(x, out);
  WindowTables tables;
  for (size_t d = 0; d < p.kernel.size(); ++d)
    tables.push_back(ops::strided_window_table(x.sizes()[d + 2], out[d], p.kernel[d], p.stride[d], p.padding[d], p.dilation[d]));
  return tables;
}

// The number of elements per window is a product of one count per dimension. Returns it if it is the same everywhere; counts_for returns a tensor
// that broadcasts with `sums` (N, C, out...).
std::optional<int64_t> same_count(const std::vector<std::vector<int64_t>>& counts) {
  int64_t all = 1;
  for (const std::vector<int64_t>& along : counts) {
    if (along.empty()) continue;
    if (std::any_of(along.begin(), along.end(), [&](int64_t c) { return c != along[0]; })) return std::nullopt;
    all *= along[0];
  }
  return all;
}
Tensor counts_for(const Tensor& sums, const std::vector<std::vector<int64_t>>& counts) {
  std::vector<int64_t> all{1};
  Dims shape;
  for (const std::vector<int64_t>& along : counts) {
    std::vector<int64_t> more;
    more.reserve(all.size() * along.size());
    for (const int64_t before : all)
      for (const int64_t here : along) more.push_back(before * here);
    all = std::move(more);
    shape.push_back(static_cast<int64_t>(along.size()));
  }
  return ops::on_device(from_data(all.data(), shape, DType::I64, Device(DeviceType::Cpu)).to(sums.dtype()), sums.device());
}

// f of the input with a batch dimension; removes it again if the input had none.
template <class F>
Tensor batched(const Tensor& x, int64_t n, F f) {
  return x.dim() == n + 2 ? f(x) : f(x.unsqueeze(0)).squeeze(0);
}
template <class F>
std::pair<Tensor, Tensor> batched_pair(const Tensor& x, int64_t n, F f) {
  if (x.dim() == n + 2) return f(x);
  const auto [values, indices] = f(x.unsqueeze(0));
  return {values.squeeze(0), indices.defined() ? indices.squeeze(0) : indices};
}

constexpr const char* kMaxNodes[] = {"", "MaxPool1DBackward0", "MaxPool2DWithIndicesBackward0", "MaxPool3DWithIndicesBackward0"};
constexpr const char* kAvgNodes[] = {"", "AvgPool1DBackward0", "AvgPool2DBackward0", "AvgPool3DBackward0"};
constexpr const char* kAdaptiveNodes[] = {"", "AdaptiveAvgPool1DBackward0", "AdaptiveAvgPool2DBackward0", "AdaptiveAvgPool3DBackward0"};
constexpr const char* kAdaptiveMaxNodes[] = {"", "AdaptiveMaxPool1DBackward0", "AdaptiveMaxPool2DBackward0", "AdaptiveMaxPool3DBackward0"};

// for_gradient: of the indices (see window_max).
std::pair<Tensor, Tensor> pooled_maxima(int64_t n, const Tensor& input, const Dims& kernel, const Dims& stride, const Dims& padding,
                                        const Dims& dilation, bool ceil_mode, bool for_gradient) {
  const Pool p = settings(n, "max_pool", kernel, stride, padding, dilation, ceil_mode);
  if (auto y = ops::wrapped(p.op.c_str(), pooled_maxima, n, input, kernel, stride, padding, dilation, ceil_mode, for_gradient))
    return *std::move(y);
  check_input(input, n, p.op);
  if (input.dtype() == DType::Bool) ops::throw_not_implemented(n == 1 ? "max_pool1d_impl" : p.op, input.dtype());
  return batched_pair(input, n,
                      [&](const Tensor& x) { return ops::window_max(x, tables_of(x, p, result_sizes(x, p)), kMaxNodes[n], for_gradient); });
}

}  // namespace

std::pair<Tensor, Tensor> max_pool(int64_t n, const Tensor& input, const Dims& kernel, const Dims& stride, const Dims& padding,
                                   const Dims& dilation, bool ceil_mode) {
  return pooled_maxima(n, input, kernel, stride, padding, dilation, ceil_mode, false);
}

Tensor max_pool_values(int64_t n, const Tensor& input, const Dims& kernel, const Dims& stride, const Dims& padding, const Dims& dilation,
                       bool ceil_mode) {
  return pooled_maxima(n, input, kernel, stride, padding, dilation, ceil_mode, true).first;
}

Tensor avg_pool(int64_t n, const Tensor& input, const Dims& kernel, const Dims& stride, const Dims& padding, bool ceil_mode,
                bool count_include_pad, std::optional<int64_t> divisor) {
  const Pool p = settings(n, "avg_pool", kernel, stride, padding, {1}, ceil_mode);
  if (auto y = ops::wrapped(p.op.c_str(), avg_pool, n, input, kernel, stride, padding, ceil_mode, count_include_pad, divisor))
    return *std::move(y);
  check_input(input, n, p.op);
  if (divisor && *divisor == 0) throw RuntimeError("divisor must be not zero");
  if (!is_floating(input.dtype()) && input.dtype() != DType::I64) ops::throw_not_implemented(p.op, input.dtype());
  if (ops::is_half(input.dtype()))  // computed in float32 and rounded once: 800 summands of 100 overflow float16
    return avg_pool(n, input.to(DType::F32), kernel, stride, padding, ceil_mode, count_include_pad, divisor).to(input.dtype());
  return batched(input, n, [&](const Tensor& x) {
    const Dims out = result_sizes(x, p);
    WindowTables tables = tables_of(x, p, out);
    std::vector<std::vector<int64_t>> counts;
    for (size_t d = 0; d < tables.size() && !divisor; ++d) {
      counts.push_back(ops::counts_of(tables[d]));
      for (int64_t i = 0; count_include_pad && i < static_cast<int64_t>(counts[d].size()); ++i) {
        const int64_t begin = i * p.stride[d] - p.padding[d];
        counts[d][static_cast<size_t>(i)] = std::min(begin + p.kernel[d], x.sizes()[d + 2] + p.padding[d]) - begin;
      }
    }
    const Tensor sums = autograd::reading_inputs(ops::window_sum(x, std::move(tables), kAvgNodes[n]));
    const bool whole = !is_floating(x.dtype());
    if (const std::optional<int64_t> same = divisor ? divisor : same_count(counts)) {
      const Operand by(whole ? Scalar(*same) : Scalar(static_cast<double>(*same)));
      return whole ? div_trunc(sums, by) : sums / by;
    }
    const Tensor by = counts_for(sums, counts);
    return whole ? div_trunc(sums, by) : sums / by;
  });
}

namespace {

// `whole`: only the batch may be empty; else the channels may be, too.
Dims adaptive_sizes(const Tensor& x, int64_t n, const Dims& given, const std::string& op, bool whole) {
  ops::require_defined(x, op.c_str(), "input");
  if (static_cast<int64_t>(given.size()) != n && given.size() != 1) {
    if (n == 1) throw RuntimeError("{}() argument 'output_size' should contain one int (got {})", op, given.size());
    throw RuntimeError("{}: output_size must be {}", op, n);
  }
  const Dims out = given.size() == 1 ? Dims(static_cast<size_t>(n), given[0]) : given;
  if (x.dim() != n + 1 && x.dim() != n + 2)
    throw RuntimeError("{}(): Expected {}D or {}D tensor, but got {}", op, n + 1, n + 2, x.sizes().str());
  for (int64_t d = whole ? 1 : x.dim() - n; d < x.dim(); ++d)
    if (x.size(d) == 0)
      throw RuntimeError(
          "{}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {} with dimension {} being empty", op,
          x.sizes().str(), d);
  for (const int64_t s : out)
    if (s < 0) throw RuntimeError("{}: elements of output_size must be greater than or equal to 0 but received {}", op, out.str());
  if (!is_floating(x.dtype()) && (whole || product(out) > 0)) ops::throw_not_implemented(op, x.dtype());
  return out;
}

WindowTables adaptive_tables(const Tensor& x, const Dims& out) {
  if (!ops::check_output_size(x, out, "adaptive_pool")) return ops::no_tables(x, out);
  WindowTables tables;
  for (size_t d = 0; d < out.size(); ++d) tables.push_back(ops::adaptive_table(x.sizes()[d + 2], out[d]));
  return tables;
}

}  // namespace

Tensor adaptive_avg_pool(int64_t n, const Tensor& input, const Dims& output_size) {
  const std::string op = fmt::format("adaptive_avg_pool{}d", n);
  if (auto y = ops::wrapped(op.c_str(), adaptive_avg_pool, n, input, output_size)) return *std::move(y);
  const Dims out = adaptive_sizes(input, n, output_size, op, n == 3);
  if (product(out) == 1 && input.numel() > 0) {
    Dims spatial;
    for (int64_t d = input.dim() - n; d < input.dim(); ++d) spatial.push_back(d);
    const Tensor y = mean(input, spatial, true);
    const MemoryFormat format = ops::suggested_format(input);
    return format == MemoryFormat::Contiguous ? y : y.as_strided(y.sizes(), ops::format_strides(y.sizes(), format), y.storage_offset());
  }
  if (!is_floating(input.dtype())) {  // the input is empty
    Dims sizes = input.sizes();
    for (int64_t d = 0; d < n; ++d) sizes[static_cast<size_t>(input.dim() - n + d)] = out[static_cast<size_t>(d)];
    return zeros(sizes, Options(input.dtype(), input.device()));
  }
  if (ops::is_half(input.dtype())) return adaptive_avg_pool(n, input.to(DType::F32), output_size).to(input.dtype());
  return batched(input, n, [&](const Tensor& x) {
    WindowTables tables = adaptive_tables(x, out);
    std::vector<std::vector<int64_t>> counts;
    for (const ops::WindowTable& t : tables) counts.push_back(ops::counts_of(t));
    const Tensor sums = autograd::reading_inputs(ops::window_sum(x, std::move(tables), kAdaptiveNodes[n]));
    if (const std::optional<int64_t> same = same_count(counts)) return sums / Operand(static_cast<double>(*same));
    return sums / counts_for(sums, counts);
  });
}

std::pair<Tensor, Tensor> adaptive_max_pool(int64_t n, const Tensor& input, const Dims& output_size) {
  const std::string op = fmt::format("adaptive_max_pool{}d", n);
  if (auto y = ops::wrapped(op.c_str(), adaptive_max_pool, n, input, output_size)) return *std::move(y);
  const Dims out = adaptive_sizes(input, n, output_size, op, true);
  return batched_pair(input, n, [&](const Tensor& x) { return ops::window_max(x, adaptive_tables(x, out), kAdaptiveMaxNodes[n]); });
}

Tensor lp_pool(int64_t n, const Tensor& x, double p, const Dims& kernel, const Dims& stride, bool ceil_mode) {
  ops::require_defined(x, "lp_pool", "input");
  // The limit for infinite p: the maximum (minimum) of the magnitudes.
  if (std::isinf(p)) {
    const Tensor most = max_pool_values(n, p > 0 ? abs(x) : -abs(x), kernel, stride, {0}, {1}, ceil_mode);
    return p > 0 ? most : -most;
  }
  if (ops::is_half(x.dtype())) return lp_pool(n, x.to(DType::F32), p, kernel, stride, ceil_mode).to(x.dtype());
  const Dims each = kernel.size() == 1 ? Dims(static_cast<size_t>(n), kernel[0]) : kernel;
  const Tensor mean = avg_pool(n, pow(x, Operand(p)), kernel, stride, {0}, ceil_mode);
  return pow(sign(mean) * relu(abs(mean)) * Operand(static_cast<double>(product(each))), Operand(1 / p));
}

namespace {

// The starts of the windows for each image and channel: (N, C, out). The last window ends with the input.
Tensor random_starts(const Tensor& sample, int64_t in, int64_t out, int64_t kernel) {
  const Options like(DType::I64, sample.device());
  const Tensor last = full({sample.size(0), sample.size(1), 1}, in - kernel, like);
  if (out == 1) return last;
  const double alpha = static_cast<double>(in - kernel) / static_cast<double>(out - 1);
  const Tensor steps = arange(0, out - 1, 1, Options(sample.dtype(), sample.device()));
  const Tensor s = sample.unsqueeze(-1);
  return cat({((steps + s) * Operand(alpha)).to(DType::I64) - (s * Operand(alpha)).to(DType::I64), last}, 2);
}

// The flat indices of the maxima of randomly placed windows.
Tensor greatest_places(const Tensor& x, const Tensor& samples, const Dims& sizes, const Dims& kernel) {
  NoGrad guard;
  const auto n = static_cast<int64_t>(sizes.size());
  // (N, C, out1, ..., k1, ...): the flat indices of each window's elements.
  Tensor number;
  for (int64_t d = 0; d < n; ++d) {
    const auto i = static_cast<size_t>(d);
    // In two dimensions the first sample is for the width, as in PyTorch.
    const Tensor start = random_starts(samples.select(2, n == 2 ? 1 - d : d), x.size(d + 2), sizes[i], kernel[i]);
    const Tensor along = start.unsqueeze(-1) + arange(0, kernel[i], 1, Options(DType::I64, x.device()));
    Dims shape{x.size(0), x.size(1)};
    for (int64_t k = 0; k < n; ++k) shape.push_back(k == d ? sizes[i] : 1);
    for (int64_t k = 0; k < n; ++k) shape.push_back(k == d ? kernel[i] : 1);
    const Tensor placed = along.reshape(shape);
    number = number.defined() ? number * Operand(x.size(d + 2)) + placed : placed;
  }
  const Tensor seen = number.flatten(2 + n, 1 + 2 * n);
  const Tensor values = gather(x.detach().flatten(2), 2, seen.flatten(2)).view(seen.sizes());
  return gather(seen, n + 2, max(values, n + 2, true).second).squeeze(-1);
}

}  // namespace

std::pair<Tensor, Tensor> fractional_max_pool(int64_t n, const Tensor& input, const Dims& given, const Dims& out, const Tensor& samples) {
  Pool p{n, fmt::format("fractional_max_pool{}d", n), {}, {}, {}, {}, false};
  if (auto y = ops::wrapped(p.op.c_str(), fractional_max_pool, n, input, given, out, samples)) return *std::move(y);
  check_input(input, n, p.op);
  const Dims kernel = spread(given, p, "kernel_size"), sizes = spread(out, p, "output_size");
  constexpr const char* kSides[] = {"time", "height", "width"};
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int64_t in = input.sizes()[static_cast<size_t>(input.dim() - n) + d];
    if (kernel[d] < 1) throw RuntimeError("{}(): kernel size should be greater than zero, but got {}", p.op, kernel.str());
    if (sizes[d] < 0) throw RuntimeError("Trying to create tensor with negative dimension {}: {} ({})", sizes[d], sizes.str(), p.op);
    if (sizes[d] + kernel[d] - 1 + (n == 3 ? 1 : 0) > in)  // in three dimensions PyTorch requires one more
      throw RuntimeError("{}(): pool {} {} too large relative to input {} {} (output_size {})", p.op, kSides[3 - sizes.size() + d],
                         kernel[d], kSides[3 - sizes.size() + d], in, sizes.str());
  }
  if (samples.dtype() != input.dtype())
    throw RuntimeError("Expect _random_samples to have the same dtype as input (got {} and {})", ops::torch_name(samples.dtype()),
                       ops::torch_name(input.dtype()));
  autograd::refuse_gradient(samples, p.op.c_str(), "random_samples");
  if (samples.dim() != 3) throw RuntimeError("Expect _random_samples to have 3 dimensions, got {}", samples.dim());
  const int64_t batch = input.dim() == n + 2 ? input.size(0) : 1, channels = input.size(-n - 1);
  if (samples.size(0) < batch)
    throw RuntimeError("Expect _random_samples.size(0) no less then input batch size. (got {} and {})", samples.size(0), batch);
  if (samples.size(1) != channels)
    throw RuntimeError("Expect _random_samples.size(1) equals to input channel size. (got {} and {})", samples.size(1), channels);
  if (samples.size(2) != n) throw RuntimeError("Expect _random_samples.size(2) equals to {}; got {}.", n, samples.size(2));
  return batched_pair(input, n, [&](const Tensor& x) {
    Dims all{x.size(0), x.size(1)};
    for (const int64_t s : sizes) all.push_back(s);
    const Tensor indices =
        product(all) == 0 ? zeros(all, Options(DType::I64, x.device())) : greatest_places(x, samples.narrow(0, 0, batch), sizes, kernel);
    return std::pair{autograd::reading_inputs(ops::pick_elements(x, indices)), indices};
  });
}

Tensor max_unpool(int64_t n, const Tensor& input, const Tensor& indices, const Dims& sizes) {
  const std::string op = fmt::format("max_unpool{}d", n);
  if (auto y = ops::wrapped(op.c_str(), max_unpool, n, input, indices, sizes)) return *std::move(y);
  check_input(input, n, op);
  ops::require_defined(indices, op.c_str(), "indices");
  if (indices.dtype() != DType::I64)
    throw RuntimeError("elements in indices should be type int64 but got: {}", ops::torch_name(indices.dtype()));
  if (!(indices.sizes() == input.sizes()))
    throw RuntimeError("Expected shape of indices to be same as that of the input tensor ({}) but got indices tensor with shape: {}",
                       input.sizes().str(), indices.sizes().str());
  int64_t volume = 1;
  for (const int64_t s : sizes) volume = ops::times(volume, s);
  if (indices.device().is_cpu() && indices.numel() > 0 && !ops::recording_host())
    for (const Tensor& most : {max(indices), min(indices)})
      if (const int64_t v = most.to_ints()[0]; v < 0 || v >= volume) {
        const std::string text = size_text(sizes[0], std::span<const int64_t>(sizes).subspan(1));
        throw RuntimeError("Found an invalid max index: {} (output volumes are of size {})", v, text);
      }
  return batched(input, n, [&](const Tensor& x) {
    Dims out{x.size(0), x.size(1)};
    const Tensor flat = zeros({x.size(0), x.size(1), volume}, Options(x.dtype(), x.device()));
    for (const int64_t s : sizes) out.push_back(s);
    const Tensor places = indices.dim() == n + 2 ? indices : indices.unsqueeze(0);
    const Tensor y = scatter(flat, 2, places.flatten(2), x.flatten(2)).view(out);
    return n == 2 ? y.contiguous(ops::suggested_format(x)) : y;
  });
}

}  // namespace naru
