// Fourier transforms (with the prefix fft_, as PyTorch names them), and window functions.
#include "naru/ops/fft.h"
#include "naru/ops/signal.h"

#include "object/tensor_object.h"

namespace naru::py {
namespace {

using OptBool = std::optional<bool>;
using OptNumber = std::optional<double>;

void define_transforms() {
  using Line = Tensor (*)(const Tensor&, fft::Length, int64_t, fft::Norm);
  using Box = Tensor (*)(const Tensor&, const OptionalDims&, const OptionalDims&, fft::Norm);
  using Plane = Tensor (*)(const Tensor&, const OptionalDims&, const Dims&, fft::Norm);
  struct Row {
    const char *line, *plane, *box, *doc;
    Line f;
    Plane f2;
    Box fn;
  };
  const Row rows[] = {{"fft_fft", "fft_fft2", "fft_fftn", "The discrete Fourier transform.", fft::fft, fft::fft2, fft::fftn},
                      {"fft_ifft", "fft_ifft2", "fft_ifftn", "The inverse discrete Fourier transform.", fft::ifft, fft::ifft2, fft::ifftn},
                      {"fft_rfft", "fft_rfft2", "fft_rfftn", "The transform of real numbers: the half that tells the rest.", fft::rfft,
                       fft::rfft2, fft::rfftn},
                      {"fft_irfft", "fft_irfft2", "fft_irfftn", "The inverse of rfft: real numbers.", fft::irfft, fft::irfft2, fft::irfftn},
                      {"fft_hfft", "fft_hfft2", "fft_hfftn", "The real spectrum of half a signal with conjugate symmetry.", fft::hfft,
                       fft::hfft2, fft::hfftn},
                      {"fft_ihfft", "fft_ihfft2", "fft_ihfftn", "The inverse of hfft.", fft::ihfft, fft::ihfft2, fft::ihfftn}};
  for (const Row& r : rows) {
    def(kFunction, r.line, "input, n=None, dim=-1, norm=None, *, out=None", r.doc,
        [f = r.f](const Tensor& t, OptInt n, int64_t dim, OptText norm) { return f(t, n, dim, norm); });
    def(kFunction, r.plane, "input, s=None, dim=None, norm=None, *, out=None", r.doc,
        [f = r.f2](const Tensor& t, const OptionalDims& s, const OptionalDims& dim, OptText norm) {
          return f(t, s, dim.value_or(Dims{-2, -1}), norm);
        });
    def(kFunction, r.box, "input, s=None, dim=None, norm=None, *, out=None", r.doc,
        [f = r.fn](const Tensor& t, const OptionalDims& s, const OptionalDims& dim, OptText norm) { return f(t, s, dim, norm); });
  }
  def(kFunction, "fft_fftfreq", "n, d=1.0, *, @options, out=None", "The frequencies that fft's results stand for.",
      [](int64_t n, double d, const Options& o) { return fft::fftfreq(n, d, o); });
  def(kFunction, "fft_rfftfreq", "n, d=1.0, *, @options, out=None", "The frequencies that rfft's results stand for.",
      [](int64_t n, double d, const Options& o) { return fft::rfftfreq(n, d, o); });
  def(kFunction, "fft_fftshift", "input, dim=None", "Frequency 0 moved to the middle.",
      [](const Tensor& t, const OptionalDims& dim) { return fft::fftshift(t, dim); });
  def(kFunction, "fft_ifftshift", "input, dim=None", "The inverse of fftshift.",
      [](const Tensor& t, const OptionalDims& dim) { return fft::ifftshift(t, dim); });
}

void define_short_time() {
  def(kBoth, "stft",
      "input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode='reflect', normalized=False, onesided=None, "
      "return_complex=None, align_to_window=None",
      "Short-time Fourier transforms: (..., frequencies, frames).",
      [](const Tensor& t, int64_t n_fft, OptInt hop, OptInt length, const OptTensor& window, bool center, std::string_view pad_mode,
         bool normalized, OptBool onesided, OptBool return_complex, OptBool align) {
        const StftOptions o{hop, length, center, pad_mode, normalized, onesided, return_complex, align};
        return stft(t, n_fft, window.value_or(Tensor()), o);
      });
  def(kBoth, "istft",
      "input, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=None, length=None, "
      "return_complex=False",
      "The signals that short-time Fourier transforms are of.",
      [](const Tensor& t, int64_t n_fft, OptInt hop, OptInt win_length, const OptTensor& window, bool center, bool normalized,
         OptBool onesided, OptInt length, bool return_complex) {
        const IstftOptions o{hop, win_length, center, normalized, onesided, length, return_complex};
        return istft(t, n_fft, window.value_or(Tensor()), o);
      });
}

void define_windows() {
  namespace w = signal::windows;
  constexpr const char *kPlain = "M, *, sym=True, @options", *kDoc = "See naru.signal.windows.";
  using Plain = Tensor (*)(int64_t, bool, const Options&);
  const std::pair<const char*, Plain> plain[] = {{"signal_bartlett", w::bartlett}, {"signal_blackman", w::blackman},
                                                 {"signal_cosine", w::cosine},     {"signal_hamming", w::hamming},
                                                 {"signal_hann", w::hann},         {"signal_nuttall", w::nuttall}};
  for (const auto& [name, f] : plain)
    def(kFunction, name, kPlain, kDoc, [f = f](int64_t m, bool sym, const Options& o) { return f(m, sym, o); });
  def(kFunction, "signal_exponential", "M, *, center=None, tau=1.0, sym=True, @options", kDoc,
      [](int64_t m, OptNumber center, double tau, bool sym, const Options& o) { return w::exponential(m, center, tau, sym, o); });
  def(kFunction, "signal_gaussian", "M, *, std=1.0, sym=True, @options", kDoc,
      [](int64_t m, double std, bool sym, const Options& o) { return w::gaussian(m, std, sym, o); });
  def(kFunction, "signal_general_cosine", "M, *, a, sym=True, @options", kDoc, [](int64_t m, PyObject* list, bool sym, const Options& o) {
    nb::object fast = nb::steal(check(PySequence_Fast(list, "Coefficients must be a list/tuple")));
    std::vector<double> a;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.ptr()); ++i) {
      a.push_back(PyFloat_AsDouble(PySequence_Fast_GET_ITEM(fast.ptr(), i)));
      if (PyErr_Occurred()) nb::raise_python_error();
    }
    return w::general_cosine(m, a, sym, o);
  });
  def(kFunction, "signal_general_hamming", "M, *, alpha=0.54, sym=True, @options", kDoc,
      [](int64_t m, double alpha, bool sym, const Options& o) { return w::general_hamming(m, alpha, sym, o); });
  def(kFunction, "signal_kaiser", "M, *, beta=12.0, sym=True, @options", kDoc,
      [](int64_t m, double beta, bool sym, const Options& o) { return w::kaiser(m, beta, sym, o); });
}

void define_old_windows() {
  constexpr const char *kOld = "window_length, periodic=True, *, @options",
                       *kDoc = "A window, as one period of a repeated one unless periodic is False.";
  using Old = Tensor (*)(int64_t, bool, const Options&);
  for (const auto& [name, f] : {std::pair<const char*, Old>("bartlett_window", bartlett_window),
                                {"blackman_window", blackman_window},
                                {"hann_window", hann_window}})
    def(kFunction, name, kOld, kDoc, [f = f](int64_t n, bool periodic, const Options& o) { return f(n, periodic, o); });
  def(kFunction, "hamming_window", kOld, kDoc,
      [](int64_t n, bool periodic, const Options& o) { return hamming_window(n, periodic, 0.54, 0.46, o); });
  def(kFunction, "hamming_window", "window_length, periodic, alpha, beta=0.46, *, @options", kDoc,
      [](int64_t n, bool periodic, double alpha, double beta, const Options& o) { return hamming_window(n, periodic, alpha, beta, o); });
  def(kFunction, "kaiser_window", kOld, kDoc, [](int64_t n, bool periodic, const Options& o) { return kaiser_window(n, periodic, 12, o); });
  def(kFunction, "kaiser_window", "window_length, periodic, beta=12.0, *, @options", kDoc,
      [](int64_t n, bool periodic, double beta, const Options& o) { return kaiser_window(n, periodic, beta, o); });
}

}  // namespace

void define_fourier() {
  define_transforms();
  define_short_time();
  define_windows();
  define_old_windows();
}

}  // namespace naru::py
