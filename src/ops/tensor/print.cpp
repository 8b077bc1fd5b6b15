// Tensors as text, character for character as PyTorch prints them.
#include "naru/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <mutex>
#include <ostream>

#include "naru/ops.h"
#include "naru/ops/complex.h"
#include "ops/sparse/sparse.h"

namespace naru {
namespace {

struct Current {
  std::mutex mutex;
  PrintOptions options;
};
// Never destroyed: code that runs at exit may print, too.
Current& current() {
  static Current& c = *new Current;
  return c;
}

}  // namespace

PrintOptions PrintOptions::profile(std::string_view name) {
  PrintOptions o;
  if (name == "short")
    o.precision = 2, o.edgeitems = 2;
  else if (name == "full")
    o.threshold = std::numeric_limits<double>::infinity();
  else if (name != "default")
    throw ValueError("set_printoptions: profile must be one of ['default', 'full', 'short'], got '{}'", name);
  return o;
}

PrintOptions print_options() {
  Current& c = current();
  const std::lock_guard lock(c.mutex);
  return c.options;
}

void set_print_options(const PrintOptions& o) {
  if (o.precision < 0 || o.edgeitems < 0 || o.linewidth < 0)
    throw ValueError("set_printoptions: precision, edgeitems and linewidth must not be negative, got {}, {} and {}", o.precision,
                     o.edgeitems, o.linewidth);
  Current& c = current();
  const std::lock_guard lock(c.mutex);
  c.options = o;
}

namespace {

// How the elements of a tensor are printed: notation and column width, chosen from all elements shown.
class FloatStyle {
 public:
  FloatStyle(const std::vector<double>& values, const PrintOptions& o) : digits_(o.precision) {
    bool integral = true;
    double low = std::numeric_limits<double>::infinity(), high = 0;
    for (const double v : values) {
      if (v == 0 || !std::isfinite(v)) continue;
      integral &= v == std::floor(v);
      low = std::min(low, std::abs(v)), high = std::max(high, std::abs(v));
    }
    if (high == 0) {  // zeros, infinities and NaN need no scientific notation
      digits_ = 0, point_ = true;
      return;
    }
    scientific_ = o.sci_mode.value_or(high / low > 1000 || high > 1e8 || (!integral && low < 1e-4));
    point_ = integral && !scientific_;
    if (point_) digits_ = 0;
    for (const double v : values)
      if (v != 0 && std::isfinite(v)) width_ = std::max(width_, text(v).size());
  }
  std::string operator()(double v) const { return fmt::format("{:>{}}", text(v), width_); }
  size_t width() const { return width_; }

 private:
  std::string text(double v) const {
    if (std::isnan(v)) return "nan";
    std::string s = scientific_ ? fmt::format("{:.{}e}", v, digits_) : fmt::format("{:.{}f}", v, digits_);
    if (point_ && std::isfinite(v)) s += '.';
    return s;
  }
  int digits_;
  bool scientific_ = false, point_ = false;
  size_t width_ = 1;
};

// Complex numbers: each part has its own style.
class ComplexStyle {
 public:
  ComplexStyle(const std::vector<double>& real, const std::vector<double>& imag, const PrintOptions& o) : real_(real, o), imag_(imag, o) {}
  std::string operator()(std::complex<double> v) const {
    std::string imag = imag_(v.imag()) + "j";
    imag.erase(0, imag.find_first_not_of(' '));
    return real_(v.real()) + (imag[0] == '-' ? "" : "+") + imag;
  }
  size_t width() const { return real_.width() + imag_.width() + 1; }

 private:
  FloatStyle real_, imag_;
};

// Integers and bool.
template <class T>
class PlainStyle {
 public:
  PlainStyle(const std::vector<T>& values, bool truth) : truth_(truth) {
    for (const T v : values) width_ = std::max(width_, text(v).size());
  }
  std::string operator()(T v) const { return fmt::format("{:>{}}", text(v), width_); }
  size_t width() const { return width_; }

 private:
  std::string text(T v) const { return truth_ ? v ? "True" : "False" : fmt::format("{}", v); }
  bool truth_;
  size_t width_ = 1;
};

// Nested brackets around elements in row-major order.
template <class T, class Style>
struct Brackets {
  const std::vector<T>& values;
  const Style& style;
  const Dims& sizes;
  const std::vector<bool>& cut;  // dimensions of which only the edges are shown
  const PrintOptions& options;

  std::string at(size_t dim, size_t first, size_t indent) const {
    if (sizes.empty()) return style(values[0]);
    if (dim + 1 == sizes.size()) return row(first, indent);
    size_t step = 1;
    for (size_t d = dim + 1; d < sizes.size(); ++d) step *= static_cast<size_t>(sizes[d]);
    std::vector<std::string> parts;
    for (size_t i = 0; i < static_cast<size_t>(sizes[dim]); ++i) parts.push_back(at(dim + 1, first + i * step, indent + 1));
    if (cut[dim]) parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(options.edgeitems), "...");
    const std::string between = "," + std::string(sizes.size() - 1 - dim, '\n') + std::string(indent + 1, ' ');
    return fmt::format("[{}]", fmt::join(parts, between));
  }

  // The innermost dimension, wrapped into lines.
  std::string row(size_t first, size_t indent) const {
    std::vector<std::string> cells;
    for (size_t i = 0; i < static_cast<size_t>(sizes.back()); ++i) cells.push_back(style(values[first + i]));
    if (cut.back()) cells.insert(cells.begin() + static_cast<std::ptrdiff_t>(options.edgeitems), " ...");
    const auto room = options.linewidth - static_cast<int64_t>(indent);
    const auto per_line = static_cast<size_t>(std::max<int64_t>(1, room / static_cast<int64_t>(style.width() + 2)));
    std::vector<std::string> lines;
    for (size_t i = 0; i < cells.size(); i += per_line)
      lines.push_back(
          fmt::format("{}", fmt::join(cells.begin() + static_cast<std::ptrdiff_t>(i),
                                      cells.begin() + static_cast<std::ptrdiff_t>(std::min(cells.size(), i + per_line)), ", ")));
    return fmt::format("[{}]", fmt::join(lines, ",\n" + std::string(indent + 1, ' ')));
  }
};

// The elements of a nonempty tensor.
std::string body(Tensor t, size_t indent, const PrintOptions& o) {
  std::vector<bool> cut(t.sizes().size());
  if (static_cast<double>(t.numel()) > o.threshold)
    for (int64_t d = 0; d < t.dim(); ++d) {
      const int64_t n = t.size(d);
      if (n <= 2 * o.edgeitems) continue;
      cut[static_cast<size_t>(d)] = true;
      t = o.edgeitems == 0 ? t.narrow(d, 0, 0) : cat({t.narrow(d, 0, o.edgeitems), t.narrow(d, n - o.edgeitems, o.edgeitems)}, d);
    }
  if (is_floating(t.dtype())) {
    const std::vector<double> values = t.to_doubles();
    const FloatStyle style(values, o);
    return Brackets<double, FloatStyle>{values, style, t.sizes(), cut, o}.at(0, 0, indent);
  }
  if (is_complex(t.dtype())) {
    const std::vector<double> re = real(t).to_doubles(), im = imag(t).to_doubles();
    std::vector<std::complex<double>> values;
    for (size_t i = 0; i < re.size(); ++i) values.emplace_back(re[i], im[i]);
    const ComplexStyle style(re, im, o);
    return Brackets<std::complex<double>, ComplexStyle>{values, style, t.sizes(), cut, o}.at(0, 0, indent);
  }
  const std::vector<int64_t> values = t.to_ints();
  if (t.dtype() == kUInt64) {
    const std::vector<uint64_t> whole(values.begin(), values.end());
    const PlainStyle style(whole, false);
    return Brackets<uint64_t, PlainStyle<uint64_t>>{whole, style, t.sizes(), cut, o}.at(0, 0, indent);
  }
  const PlainStyle style(values, t.dtype() == DType::Bool);
  return Brackets<int64_t, PlainStyle<int64_t>>{values, style, t.sizes(), cut, o}.at(0, 0, indent);
}

std::string tuple_text(const Dims& sizes) { return fmt::format("({}{})", fmt::join(sizes, ", "), sizes.size() == 1 ? "," : ""); }

std::vector<std::string> notes_of(const Tensor& t) {
  std::vector<std::string> notes;
  const DType type = t.dtype();
  const Layout form = layout(t);
  const bool empty = t.numel() == 0 && form == Layout::Strided;
  if (!t.device().is_cpu()) notes.push_back(fmt::format("device='{}'", t.device().str()));
  if (form != Layout::Strided) {
    notes.push_back("size=" + tuple_text(t.sizes()));
    notes.push_back(fmt::format("nnz={}", stored_count(t)));
  }
  const bool meta = t.device().is_meta();
  if (meta || (empty && t.dim() != 1))
    notes.push_back(fmt::format("size=({}{})", fmt::join(t.sizes(), ", "), meta && t.dim() == 1 ? "," : ""));
  // The printed elements show that they are integers or bool.
  if (type != default_dtype() && (empty || meta || (type != DType::I64 && type != DType::Bool && type != complex_of(default_dtype()))))
    notes.push_back(fmt::format("dtype=torch.{}", name_of(type)));
  if (form != Layout::Strided) notes.push_back(fmt::format("layout=torch.{}", name_of(form)));
  std::string function = t.grad_fn_name();
  if (const size_t colons = function.rfind("::"); colons != std::string::npos) function.erase(0, colons + 2);
  if (!function.empty())
    notes.push_back(fmt::format("grad_fn=<{}>", function));
  else if (t.requires_grad())
    notes.push_back("requires_grad=True");
  return notes;
}

// The parts of a sparse tensor, one below the other.
std::string parts_text(const Tensor& t, size_t indent, const PrintOptions& o) {
  const ops::SparseParts& p = ops::parts_of(t);
  std::string text;
  const auto add = [&](std::string_view name, const Tensor& part) {
    if (!text.empty()) text += ",\n" + std::string(indent, ' ');
    const std::string start = fmt::format("{}=tensor(", name);
    text += start + (part.numel() == 0 ? "[], size=" + tuple_text(part.sizes()) : body(part, indent + start.size(), o)) + ")";
  };
  const ops::CompressedForm* form = is_compressed(t) ? &ops::form_of(p.layout) : nullptr;
  if (form) add(form->compressed, p.crow);
  add(form ? form->plain : "indices", p.indices);
  add("values", p.values);
  return text;
}

}  // namespace

std::string str(const Tensor& t, const PrintOptions& o, std::string_view prefix) {
  if (!t.defined()) return std::string(prefix) + "undefined)";
  if (is_batched(t)) return fmt::format("BatchedTensor(lvl={}, bdim=0, value={})", batch_parts(t).level, str(batch_parts(t).value, o));
  const size_t indent = prefix.size();
  const Layout form = layout(t);
  const bool meta = t.device().is_meta();
  std::string text = std::string(prefix);
  text += form != Layout::Strided ? parts_text(t, indent, o) : meta ? "..." : t.numel() == 0 ? "[]" : body(t.detach(), indent, o);
  bool break_line = form == Layout::SparseCoo;
  const size_t last = text.rfind('\n');
  size_t column = text.size() - (last == std::string::npos ? 0 : last + 1) + 2;
  for (const std::string& note : notes_of(t)) {
    if (std::exchange(break_line, false) || static_cast<int64_t>(column + note.size() + 2) > o.linewidth) {
      text += ",\n" + std::string(indent, ' ') + note;
      column = indent + note.size();
    } else {
      text += ", " + note;
      column += note.size() + 2;
    }
  }
  return text + ")";
}
std::string str(const Tensor& t, const PrintOptions& o) { return str(t, o, "tensor("); }
std::string Tensor::str() const { return naru::str(*this); }

std::ostream& operator<<(std::ostream& out, const Tensor& t) { return out << t.str(); }
std::ostream& operator<<(std::ostream& out, const Dims& dims) { return out << dims.str(); }
std::ostream& operator<<(std::ostream& out, Device device) { return out << device.str(); }
std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name_of(dtype); }
std::ostream& operator<<(std::ostream& out, const Scalar& number) {
  if (number.is_bool()) return out << (number.to_bool() ? "true" : "false");
  if (number.is_unsigned()) return out << number.to_bits();
  return number.is_float() ? out << number.to_double() : out << number.to_int();
}

}  // namespace naru
