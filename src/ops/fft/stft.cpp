// Short-time Fourier transforms and their inverse.
#include <fmt/format.h>

#include <atomic>
#include <cmath>

#include "naru/error.h"
#include "naru/ops/complex.h"
#include "naru/ops/fft.h"
#include "naru/ops/functions.h"
#include "naru/ops/resampling.h"
#include "ops/call/wrapped.h"
#include "ops/fft/fft.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru {
namespace {

void warn_once(std::atomic<bool>& warned, const char* text) {
  if (!warned.exchange(true)) warn(text);
}

template <class T>
std::string optional_text(const std::optional<T>& value) {
  return value ? fmt::format("{}", static_cast<int64_t>(*value)) : "None";
}
std::string window_text(const Tensor& window) {
  return window.defined() ? fmt::format("torch.{}Tensor{{{}}}", ops::torch_name(window.dtype()), window.sizes().str()) : "None";
}

// pad() that supports complex tensors too.
Tensor padded(const Tensor& t, const Dims& amounts, std::string_view mode = "constant") {
  return is_complex(t.dtype()) ? complex(pad(real(t), amounts, mode), pad(imag(t), amounts, mode)) : pad(t, amounts, mode);
}

// Centers the window in n_fft elements, with zeros on both sides.
Tensor widened(const Tensor& window, int64_t n_fft) {
  const int64_t n = window.size(0), left = (n_fft - n) / 2;
  return n == n_fft ? window : padded(window, {left, n_fft - n - left});
}

// The signal as (B, T), padded if frames are centered.
Tensor padded_signal(const Tensor& t, int64_t n_fft, const StftOptions& o) {
  if (!o.center) return t;
  if (o.align_to_window) throw RuntimeError("stft align_to_window should only be set when center = false");
  Dims sizes(static_cast<size_t>(std::max<int64_t>(0, 3 - t.dim())), 1);
  for (const int64_t s : t.sizes()) sizes.push_back(s);
  const int64_t by = n_fft >> 1;
  const Tensor wide = padded(t.reshape(sizes), {by, by}, o.pad_mode);
  Dims back(std::span<const int64_t>(wide.sizes()).last(t.sizes().size()));
  return wide.reshape(back);
}

struct Frames {
  int64_t hop, window;
};

// Throws an error that spells out the call, with PyTorch's text.
template <class... A>
[[noreturn]] void fail_stft(const Tensor& t, int64_t n_fft, const Frames& f, const Tensor& window, const StftOptions& o,
                            fmt::format_string<A...> text, A&&... args) {
  const std::string call = fmt::format(
      "stft(torch.{}Tensor{}, n_fft={}, hop_length={}, win_length={}, window={}, normalized={}, onesided={}, return_complex={}, "
      "align_to_window={}) : ",
      ops::torch_name(t.dtype()), t.sizes().str(), n_fft, f.hop, f.window, window_text(window), o.normalized ? 1 : 0,
      optional_text(o.onesided), optional_text(o.return_complex), optional_text(o.align_to_window));
  throw RuntimeError("{}{}", call, fmt::format(text, std::forward<A>(args)...));
}

void check_stft(const Tensor& t, int64_t n_fft, const Frames& f, const Tensor& window, const StftOptions& o) {
  if (!is_inexact(t.dtype())) {
    try {
      fail_stft(t, n_fft, f, window, o, "expected a tensor of floating point or complex values");
    } catch (const RuntimeError& e) {
      throw NotImplementedError("{}", e.what());
    }
  }
  if (t.dim() != 1 && t.dim() != 2) fail_stft(t, n_fft, f, window, o, "expected a 1D or 2D tensor");
  const int64_t length = t.size(-1);
  if (n_fft <= 0 || n_fft > length) fail_stft(t, n_fft, f, window, o, "expected 0 < n_fft < {}, but got n_fft={}", length, n_fft);
  if (f.hop <= 0) fail_stft(t, n_fft, f, window, o, "expected hop_length > 0, but got hop_length={}", f.hop);
  if (f.window <= 0 || f.window > n_fft)
    fail_stft(t, n_fft, f, window, o, "expected 0 < win_length <= n_fft, but got win_length={}", f.window);
  if (window.defined() && (window.dim() != 1 || window.size(0) != f.window))
    fail_stft(t, n_fft, f, window, o, "expected a 1D window tensor of size equal to win_length={}, but got window with size {}", f.window,
              window.sizes().str());
}

void warn_of_window(const Tensor& window, bool back) {
  static std::atomic<bool> warned{false}, warned_back{false};
  if (window.defined()) return;
  if (back)
    return warn_once(
        warned_back,
        "A window was not provided. A rectangular window will be applied.Please provide the same window used by stft to make the "
        "inversion lossless.To suppress this warning and use a rectangular window, explicitly set `window=torch.ones(n_fft, "
        "device=<device>)`.");
  warn_once(
      warned,
      "A window was not provided. A rectangular window will be applied,which is known to cause spectral leakage. Other windows such as "
      "torch.hann_window or torch.hamming_window are recommended to reduce spectral leakage.To suppress this warning and use a rectangular "
      "window, explicitly set `window=torch.ones(n_fft, device=<device>)`.");
}

// True if the result is complex, false if it is real with shape (..., 2).
bool returns_complex(bool complex, const StftOptions& o) {
  if (!o.return_complex) {
    if (!complex)
      throw RuntimeError(
          "stft requires the return_complex parameter be given for real inputs, and will further require that return_complex=True in a "
          "future "
          "PyTorch release.");
    return true;
  }
  static std::atomic<bool> warned{false};
  if (!*o.return_complex)
    warn_once(
        warned,
        "stft with return_complex=False is deprecated. In a future pytorch release, stft will return complex tensors for all inputs, and "
        "return_complex=False will raise an error.\nNote: you can still call torch.view_as_real on the complex output to recover the old "
        "return format.");
  return *o.return_complex;
}

}  // namespace

Tensor stft(const Tensor& given, int64_t n_fft, const Tensor& window, const StftOptions& o) {
  if (auto y = ops::wrapped("stft", stft, given, n_fft, window, o)) return *std::move(y);
  ops::require_defined(given, "stft", "input");
  const Tensor signal = padded_signal(given, n_fft, o);
  warn_of_window(window, false);
  const bool complex_window = window.defined() && is_complex(window.dtype()), complex = is_complex(given.dtype()) || complex_window;
  const bool as_complex = returns_complex(complex, o);
  const Frames f{o.hop_length.value_or(n_fft >> 2), o.win_length.value_or(n_fft)};
  check_stft(signal, n_fft, f, window, o);
  const bool onesided = o.onesided.value_or(!complex);
  if (onesided && complex) throw RuntimeError("Cannot have onesided output if window or input is complex");
  if (window.defined() && window.device() != given.device())
    throw RuntimeError("stft input and window must be on the same device but got self on {} and window on {}", given.device().str(),
                       window.device().str());
  Tensor t = signal.dim() == 1 ? signal.unsqueeze(0) : signal;
  if (o.align_to_window.value_or(false) && f.window < n_fft) {
    const int64_t left = (n_fft - f.window) / 2;
    t = padded(t, {left, n_fft - f.window - left});
  }
  Tensor frames = t.unfold(-1, n_fft, f.hop);
  if (window.defined())
    frames = frames * widened(window, n_fft);
  else if (f.window < n_fft)
    frames = frames * widened(ones({f.window}, Options(t.dtype(), t.device())), n_fft);
  const double scale = o.normalized ? 1 / std::sqrt(static_cast<double>(n_fft)) : 1;
  const Tensor x = ops::fft_operand(frames, !onesided);
  Tensor out = (onesided ? ops::fft_real_to_half(x, 2, false, scale) : ops::fft_complex(x, 2, false, scale)).transpose(1, 2);
  if (signal.dim() == 1) out = out.squeeze(0);
  return as_complex ? out : view_as_real(out);
}

namespace {

template <class... A>
[[noreturn]] void fail_istft(const Tensor& t, int64_t n_fft, const Frames& f, const Tensor& window, const IstftOptions& o,
                             fmt::format_string<A...> text, A&&... args) {
  const std::string call = fmt::format(
      "istft({}{}Type{}, n_fft={}, hop_length={}, win_length={}, window={}, center={}, normalized={}, onesided={}, length={}, "
      "return_complex={})",
      t.device().is_cpu() ? "CPU" : "CUDA", ops::torch_name(t.dtype()), t.sizes().str(), n_fft, f.hop, f.window, window_text(window),
      o.center ? 1 : 0, o.normalized ? 1 : 0, optional_text(o.onesided), optional_text(o.length), o.return_complex ? 1 : 0);
  throw RuntimeError("{}{}", call, fmt::format(text, std::forward<A>(args)...));
}

// Returns whether the result has a real signal (onesided).
bool check_istft(const Tensor& t, int64_t n_fft, const Frames& f, const Tensor& window, const IstftOptions& o) {
  if (t.numel() == 0) fail_istft(t, n_fft, f, window, o, " : input tensor cannot be empty.");
  if (t.dim() < 2) throw IndexError("Dimension out of range (expected to be in range of [-2, 1], but got -3)");
  if (t.dim() > 3) fail_istft(t, n_fft, f, window, o, " : expected a tensor with 3 or 4 dimensions, but got {}", t.dim() + 1);
  const int64_t rows = t.size(-2);
  const bool onesided = o.onesided.value_or(rows != n_fft);
  if (onesided && n_fft / 2 + 1 != rows)
    fail_istft(
        t, n_fft, f, window, o,
        " : expected the frequency dimension (3rd to the last) of the input tensor to match n_fft / 2 + 1 when onesided=True, but got {}",
        rows);
  if (!onesided && n_fft != rows)
    fail_istft(t, n_fft, f, window, o,
               " : expected the frequency dimension (3rd to the last) of the input tensor to match n_fft when onesided=False, but got {}",
               rows);
  if (f.hop <= 0 || f.hop > f.window) fail_istft(t, n_fft, f, window, o, " : expected 0 < hop_length <= win_length");
  if (f.window <= 0 || f.window > n_fft) fail_istft(t, n_fft, f, window, o, " : expected 0 < win_length <= n_fft");
  if (window.defined() && (window.dim() != 1 || window.size(0) != f.window))
    fail_istft(t, n_fft, f, window, o, " : Invalid window shape. window has to be 1D and length of `win_length`");
  if (o.return_complex) {
    if (onesided) throw RuntimeError("Cannot have onesided output if window or input is complex");
  } else if (window.defined() && is_complex(window.dtype())) {
    throw RuntimeError("Complex windows are incompatible with return_complex=False");
  }
  return onesided;
}

// Overlap-add: (B, frames, n) summed at steps of `hop` to (B, n + hop * (frames - 1)).
Tensor overlapped(const Tensor& frames, int64_t hop) {
  const int64_t count = frames.size(1), n = frames.size(2);
  const Options integers(DType::I64, frames.device());
  const Tensor places = (arange(0, count, 1, integers).unsqueeze(1) * hop + arange(0, n, 1, integers)).reshape({count * n});
  const Tensor none = zeros({frames.size(0), n + hop * (count - 1)}, Options(frames.dtype(), frames.device()));
  return index_add(none, 1, places, frames.reshape({frames.size(0), count * n}));
}

}  // namespace

Tensor istft(const Tensor& given, int64_t n_fft, const Tensor& window, const IstftOptions& o) {
  ops::require_defined(given, "istft", "input");
  warn_of_window(window, true);
  if (!is_complex(given.dtype()))
    throw TypeError("istft requires a complex-valued input tensor matching the output from stft with return_complex=True.");
  const Frames f{o.hop_length.value_or(n_fft >> 2), o.win_length.value_or(n_fft)};
  const bool onesided = check_istft(given, n_fft, f, window, o);
  const Tensor t = ops::fft_operand(given.dim() == 2 ? given.unsqueeze(0) : given, true).transpose(1, 2);
  const auto points = static_cast<double>(n_fft);
  const double scale = o.normalized ? 1 / std::sqrt(points) : 1 / points;
  Tensor frames;
  if (o.return_complex)
    frames = ops::fft_complex(t, 2, true, scale);
  else
    frames = ops::fft_half_to_real(onesided ? t : t.narrow(2, 0, n_fft / 2 + 1), 2, n_fft, true, scale);
  const Tensor weights = widened(window.defined() ? window : ones({f.window}, Options(real_of(given.dtype()), given.device())), n_fft);
  const int64_t count = t.size(1), whole = n_fft + f.hop * (count - 1), start = o.center ? n_fft / 2 : 0;
  Tensor y = overlapped(frames * weights, f.hop);
  Tensor envelope = overlapped((weights * weights).expand({1, count, n_fft}), f.hop);
  const int64_t end = o.length ? start + *o.length : o.center ? whole - n_fft / 2 : whole;
  const int64_t taken = std::max<int64_t>(0, std::min(end, whole) - start);
  y = y.narrow(1, start, taken), envelope = envelope.narrow(1, start, taken);
  const double least = ops::number_or(naru::min(abs(envelope.detach())), 1);
  if (least < 1e-11) fail_istft(given, n_fft, f, window, o, " window overlap add min: 1\n[ CPUBoolType{{}} ]");
  y = y / envelope;
  if (end > whole) {
    warn(
        "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. Please check your "
        "center and "
        "hop_length settings.");
    y = padded(y, {0, end - whole});
  }
  return given.dim() == 2 ? y.squeeze(0) : y;
}

}  // namespace naru
