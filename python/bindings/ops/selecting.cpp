// Searching, histograms and writes by position; torch.special's functions that are not in the elementwise table.
#include "naru/ops/functions.h"

#include "naru/ops/special.h"
#include "object/tensor_object.h"

namespace naru::py {
namespace {

using OptNumber = std::optional<double>;

// Parses pairs (low, high), (low, high) ... from a flat sequence of numbers.
std::vector<Range> ranges_from(PyObject* o) {
  std::vector<Range> ranges;
  if (o == Py_None) return ranges;
  nb::object list = nb::steal(check(PySequence_Tuple(o)));
  std::vector<double> numbers;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list.ptr()); ++i) {
    Scalar s;
    if (!scalar_from(PyTuple_GET_ITEM(list.ptr(), i), s)) throw TypeError("histogram(): argument 'range' must be tuple of floats");
    numbers.push_back(s.to_double());
  }
  if (numbers.size() % 2)
    throw RuntimeError("histogram(): wanted a least and a greatest for each dimension in range, got {} numbers", numbers.size());
  for (size_t i = 0; i < numbers.size(); i += 2) ranges.push_back(std::pair{numbers[i], numbers[i + 1]});
  return ranges;
}

void define_sorted() {
  def(kBoth, "nanmedian", "input", "The lower median of all elements that are not NaN.", [](const Tensor& t) { return nanmedian(t); });
  def(kBoth, "nanmedian", "input, dim, keepdim=False, *, out=None", "The same along a dimension, and places: (values, indices).",
      [](const Tensor& t, int64_t dim, bool keepdim) {
        const auto [values, places] = nanmedian(t, dim, keepdim);
        return Named{"nanmedian", values, places};
      });
  def(kBoth, "nanquantile", "input, q, dim=None, keepdim=False, *, interpolation='linear', out=None",
      "The elements at shares q of those that are not NaN, sorted, or between two.",
      [](const Tensor& t, const Operand& q, OptInt dim, bool keepdim, std::string_view interpolation) {
        return nanquantile(t, q, dim, keepdim, interpolation);
      });
}

void define_bins() {
  const auto named = [](std::pair<Tensor, Tensor> h) { return Named{"histogram", h.first, h.second, "hist", "bin_edges"}; };
  def(kBoth, "histogram", "input, bins, *, range=None, weight=None, density=False, out=None",
      "Counts of elements in equal parts of a range: (hist, bin_edges).",
      [named](const Tensor& t, int64_t bins, PyObject* range, const OptTensor& weight, bool density) -> PyObject* {
        const std::vector<Range> ranges = ranges_from(range);
        return to_python(named(histogram(t, bins, ranges.empty() ? Range() : ranges[0], or_undefined(weight), density)));
      });
  def(kBoth, "histogram", "input, bins, *, weight=None, density=False, out=None", "Counts of elements between edges: (hist, bin_edges).",
      [named](const Tensor& t, const Tensor& edges, const OptTensor& weight, bool density) {
        return named(histogram(t, edges, or_undefined(weight), density));
      });
  def(kFunction, "_histogramdd", "input, bins, range, weight, density", "Counts of points, and a list of edges.",
      [](const Tensor& t, const Dims& bins, PyObject* range, const OptTensor& weight, bool density) -> PyObject* {
        const auto [hist, edges] =
            histogramdd(t, std::vector<int64_t>(bins.begin(), bins.end()), ranges_from(range), or_undefined(weight), density);
        return nb::make_tuple(wrapped(hist), nb::steal(to_python(edges))).release().ptr();
      });
  def(kFunction, "_histogramdd", "input, bins, range, weight, density", "Counts of points, and a list of edges.",
      [](const Tensor& t, const std::vector<Tensor>& bins, PyObject*, const OptTensor& weight, bool density) -> PyObject* {
        const auto [hist, edges] = histogramdd(t, bins, or_undefined(weight), density);
        return nb::make_tuple(wrapped(hist), nb::steal(to_python(edges))).release().ptr();
      });
  def(kFunction, "segment_reduce", "data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None",
      "Sums, means, products or extremes of consecutive pieces.",
      [](const Tensor& t, std::string_view reduce, const OptTensor& lengths, const OptTensor& indices, const OptTensor& offsets,
         int64_t axis, bool unsafe, OptNumber initial) {
        if (indices) throw NotImplementedError("segment_reduce(): indices based reduction is not supported yet.");
        return segment_reduce(t, reduce, or_undefined(lengths), or_undefined(offsets), axis, unsafe, initial);
      });
  add_alias("_segment_reduce", "segment_reduce");
}

void define_places() {
  def(kBoth, "put", "input, index, source, accumulate=False", "A copy with elements written at places of the flattened tensor.",
      [](const Tensor& t, const Tensor& index, const Tensor& source, bool accumulate) { return put(t, index, source, accumulate); });
  def(kBoth, "masked_scatter", "input, mask, source", "A copy with source's elements, in order, where the mask is true.",
      [](const Tensor& t, const Tensor& mask, const Tensor& source) { return masked_scatter(t, mask, source); });
  def(kBoth, "nextafter", "input, other, *, out=None", "The next number in the direction of other.",
      [](const Tensor& a, const Tensor& b) { return nextafter(a, b); });
  def(kBoth, "frexp", "input, *, out=None", "(mantissa, exponent) with input = mantissa * 2 ** exponent.", [](const Tensor& t) {
    const auto [mantissa, exponent] = frexp(t);
    return Named{"frexp", mantissa, exponent, "mantissa", "exponent"};
  });
}

void define_special() {
  constexpr std::pair<const char*, Tensor (*)(const Tensor&)> kFunctions[] = {
      {"special_erfcx", special::erfcx},
      {"special_ndtr", special::ndtr},
      {"special_log_ndtr", special::log_ndtr},
      {"special_ndtri", special::ndtri},
      {"special_entr", special::entr},
      {"special_i0e", special::i0e},
      {"special_i1", special::i1},
      {"special_i1e", special::i1e},
      {"special_spherical_bessel_j0", special::spherical_bessel_j0},
      {"special_bessel_j0", special::bessel_j0},
      {"special_bessel_j1", special::bessel_j1},
      {"special_bessel_y0", special::bessel_y0},
      {"special_bessel_y1", special::bessel_y1},
      {"special_modified_bessel_i0", special::modified_bessel_i0},
      {"special_modified_bessel_i1", special::modified_bessel_i1},
      {"special_modified_bessel_k0", special::modified_bessel_k0},
      {"special_modified_bessel_k1", special::modified_bessel_k1},
      {"special_scaled_modified_bessel_k0", special::scaled_modified_bessel_k0},
      {"special_scaled_modified_bessel_k1", special::scaled_modified_bessel_k1},
      {"special_airy_ai", special::airy_ai}};
  for (const auto& [name, f] : kFunctions)
    def(kFunction, name, "input, *, out=None", "See naru.special.", [f = f](const Tensor& t) { return f(t); });
  def(kBoth, "i0", "input, *, out=None", "The modified Bessel function of the first kind, of order 0.",
      [](const Tensor& t) { return special::i0(t); });
  for (const bool upper : {false, true}) {
    const auto f = upper ? special::gammaincc : special::gammainc;
    const char* const doc = upper ? "The regularised upper incomplete gamma function." : "The regularised lower incomplete gamma function.";
    def(kFunction, upper ? "special_gammaincc" : "special_gammainc", "input, other, *, out=None", doc,
        [f](const Tensor& a, const Tensor& x) { return f(a, x); });
    def(kBoth, upper ? "igammac" : "igamma", "input, other, *, out=None", doc, [f](const Tensor& a, const Tensor& x) { return f(a, x); });
  }
  def(kFunction, "special_xlog1py", "input, other, *, out=None", "input log(1 + other), 0 where input is.",
      [](const Operand& x, const Operand& y) { return special::xlog1py(x, y); });
  def(kBoth, "mvlgamma", "input, p, *, out=None", "The logarithm of the gamma function of p dimensions.",
      [](const Tensor& t, int64_t p) { return special::multigammaln(t, p); });
  for (const char* name : special::orthogonal_polynomials())
    def(kFunction, (new std::string(std::string("special_") + name))->c_str(), "x, n, *, out=None", "The polynomial of order n at x.",
        [name](const Operand& x, const Operand& n) { return special::orthogonal_polynomial(name, x, n); });
}

}  // namespace

void define_selecting() {
  define_sorted();
  define_bins();
  define_places();
  define_special();
  // In-place forms that write the function's result to the tensor.
  for (const char* name :
       {"addmm", "addmv",      "addr",      "baddbmm", "cumprod", "deg2rad", "rad2deg",   "gcd", "heaviside", "lcm",    "ldexp",
        "logit", "nan_to_num", "polygamma", "renorm",  "sinc",    "put",     "nextafter", "i0",  "mvlgamma",  "igamma", "igammac"})
    add_in_place(name);
  constexpr std::pair<const char*, const char*> kOthers[] = {
      {"arccos_", "acos_"},   {"arccosh_", "acosh_"}, {"arcsin_", "asin_"},  {"arcsinh_", "asinh_"},      {"arctan_", "atan_"},
      {"arctanh_", "atanh_"}, {"arctan2_", "atan2_"}, {"fix_", "trunc_"},    {"greater_", "gt_"},         {"greater_equal_", "ge_"},
      {"less_", "lt_"},       {"less_equal_", "le_"}, {"not_equal_", "ne_"}, {"swapaxes_", "transpose_"}, {"swapdims_", "transpose_"}};
  for (const auto& [alias, name] : kOthers) add_alias(alias, name);
}

}  // namespace naru::py
