// Creation of tensors of given sizes.
#include "object/tensor_object.h"

namespace naru::py {
namespace {

// The given options, completed with those of `like`.
Options after(const Tensor& like, Options o) {
  if (!o.dtype) o.dtype = like.dtype();
  if (!o.device) o.device = like.device();
  return o;
}

// `f` for dense tensors. Sparse ones store nothing, for zeros and empty alike.
template <Tensor (*f)(const Dims&, const Options&)>
Tensor in_layout(const Dims& sizes, std::optional<Layout> layout, const Options& o) {
  return layout.value_or(Layout::Strided) == Layout::Strided ? f(sizes, o) : sparse_zeros(sizes, *layout, o);
}
template <Tensor (*f)(const Dims&, const Options&)>
constexpr auto new_like = [](const Tensor& t, const Dims& sizes, const LayoutOptions& o) {
  return in_layout<f>(sizes, o.layout ? *o.layout : layout(t), after(t, o));
};
template <Tensor (*f)(const Dims&, const Options&), Tensor (*like)(const Tensor&, const Options&)>
constexpr auto of_same_sizes = [](const Tensor& t, const LayoutOptions& o, std::optional<MemoryFormat> format) {
  if (o.layout && *o.layout != layout(t)) return in_layout<f>(t.sizes(), o.layout, after(t, o));
  return like(t, in_format(o, format));
};

Tensor filled(const Dims& sizes, const Scalar& value, Options o) {
  if (!o.dtype) o.dtype = value.dtype();
  return full(sizes, value, o);
}

void define_sizes() {
  constexpr const char* kSizes = "*size, @options, out=None";
  def(kFunction, "empty", "*size, @options, memory_format=None, out=None", "A tensor of the given sizes with undefined contents.",
      [](const Dims& sizes, const LayoutOptions& o, std::optional<MemoryFormat> format) {
        if (format && *format == MemoryFormat::Preserve)
          throw RuntimeError("empty(): preserve_format wants a tensor to be like; use empty_like()");
        return in_layout<empty>(sizes, o.layout, in_format(o, format));
      });
  def(kFunction, "zeros", kSizes, "A tensor of the given sizes full of 0.",
      [](const Dims& sizes, const LayoutOptions& o) { return in_layout<zeros>(sizes, o.layout, o); });
  def(kFunction, "ones", kSizes, "A tensor of the given sizes full of 1.",
      [](const Dims& sizes, const Options& o) { return ones(sizes, o); });
  def(kFunction, "full", "size, fill_value, @options, out=None",
      "A tensor of the given sizes full of one value, by default of the value's dtype.",
      [](const Dims& sizes, const Scalar& value, const Options& o) { return filled(sizes, value, o); });
  def(kFunction, "empty_strided", "size, stride, @options", "A tensor of the given sizes and strides with undefined contents.",
      [](const Dims& sizes, const Dims& strides, const Options& o) { return empty_strided(sizes, strides, o); });
}

void define_like() {
  constexpr const char* kLike = "input, @options, memory_format=None";
  def(kFunction, "empty_like", kLike, "A tensor of the input's shape, dtype and device with undefined contents.",
      of_same_sizes<empty, empty_like>);
  def(kFunction, "zeros_like", kLike, "A tensor of the input's shape, dtype and device full of 0.", of_same_sizes<zeros, zeros_like>);
  def(kFunction, "ones_like", kLike, "A tensor of the input's shape, dtype and device full of 1.",
      [](const Tensor& t, const Options& o, std::optional<MemoryFormat> format) { return ones_like(t, in_format(o, format)); });
  def(kFunction, "full_like", "input, fill_value, @options, memory_format=None",
      "A tensor of the input's shape, dtype and device full of one value.",
      [](const Tensor& t, const Scalar& value, const Options& o, std::optional<MemoryFormat> format) {
        return full_like(t, value, in_format(o, format));
      });
}

void define_new() {
  def(kMethod, "new_empty", "input, *size, @options", "An undefined tensor of this one's dtype and device.", new_like<empty>);
  def(kMethod, "new_zeros", "input, *size, @options", "A tensor full of 0, of this one's dtype and device.", new_like<zeros>);
  def(kMethod, "new_ones", "input, *size, @options", "A tensor full of 1, of this one's dtype and device.",
      [](const Tensor& t, const Dims& sizes, const Options& o) { return ones(sizes, after(t, o)); });
  def(kMethod, "new_full", "input, size, fill_value, @options", "A tensor full of one value, of this one's dtype and device.",
      [](const Tensor& t, const Dims& sizes, const Scalar& value, const Options& o) { return full(sizes, value, after(t, o)); });
}

void define_ranges() {
  def(kFunction, "arange", "end, @options, out=None", "0, 1 ... below end.",
      [](const Scalar& end, const Options& o) { return arange(end.is_float() ? Scalar(0.0) : Scalar(0), end, 1, o); });
  def(kFunction, "arange", "start, end, step=1, @options, out=None", "start, start + step ... below end; int64 where all are integers.",
      [](const Scalar& start, const Scalar& end, const Scalar& step, const Options& o) { return arange(start, end, step, o); });
  def(kFunction, "range", "start, end, step=1, @options, out=None", "start, start + step ... up to and with end.",
      [](const Scalar& start, const Scalar& end, const Scalar& step, const Options& o) {
        warn_user(
            "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with Python's range "
            "builtin. Instead, use torch.arange, which produces values in [start, end).");
        return range(start, end, step, o);
      });
  // 0-d tensors are read as scalars; the result has no gradient in PyTorch either.
  const auto end_of = [](const Operand& o, const char* function, const char* role) {
    if (o.is_tensor() && o.tensor().dim() != 0)
      throw RuntimeError("{0} only supports 0-dimensional start and end tensors, but got {1} with {2} dimension(s).", function, role,
                         o.tensor().dim());
    return o.is_tensor() ? o.tensor().item() : o.scalar();
  };
  def(kFunction, "linspace", "start, end, steps, @options, out=None", "`steps` numbers from start to end, evenly spaced.",
      [end_of](const Operand& start, const Operand& end, int64_t steps, const Options& o) {
        return linspace(end_of(start, "linspace", "start"), end_of(end, "linspace", "end"), steps, o);
      });
  def(kFunction, "logspace", "start, end, steps, base=10.0, @options, out=None", "base to the powers of linspace(start, end, steps).",
      [end_of](const Operand& start, const Operand& end, int64_t steps, double base, const Options& o) {
        return logspace(end_of(start, "logspace", "start"), end_of(end, "logspace", "end"), steps, base, o);
      });
  def(kFunction, "eye", "n, m=None, @options, out=None", "The n × m identity matrix.",
      [](int64_t n, std::optional<int64_t> m, const Options& o) {
        if (m && *m < 0) throw RuntimeError("m must be greater or equal to 0, got {}", *m);
        return eye(n, m.value_or(-1), o);
      });
  def(kFunction, "scalar_tensor", "s, @options", "A number as a tensor without dimensions.", [](const Scalar& s, const Options& o) {
    return scalar_tensor(
        s, o.dtype ? o : [&] {
          Options p = o;
          p.dtype = default_dtype();
          return p;
        }());
  });
}

}  // namespace

void define_creation() {
  define_sizes();
  define_like();
  define_new();
  define_ranges();
}

}  // namespace naru::py
