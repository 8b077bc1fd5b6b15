// Tensors from nested initializer lists in a program.
#include "naru/literal.h"

#include "naru/ops.h"

namespace naru {

Literal::Literal(std::initializer_list<Literal> parts) : parts_(parts) {}
Literal::Literal(const std::vector<bool>& numbers)
    : kind_(Kind::Numbers), dtype_(DType::Bool), count_(numbers.size()), numbers_(&numbers), read_([](const void* all, size_t i) {
        return Scalar(bool((*static_cast<const std::vector<bool>*>(all))[i]));
      }) {}

Dims Literal::shape() const {
  if (kind_ == Kind::Number) return {};
  if (parts_.empty()) return {static_cast<int64_t>(count_)};
  const Dims inner = parts_[0].shape();
  for (const Literal& p : parts_) {
    const Dims other = p.shape();
    if (other.size() != inner.size())
      throw TypeError("tensor: a list of {} dimensions stands beside one of {}", inner.size(), other.size());
    for (size_t d = 0; d < inner.size(); ++d)
      if (other[d] != inner[d]) throw ValueError("expected sequence of length {} at dim {} (got {})", inner[d], d + 1, other[d]);
  }
  Dims all{static_cast<int64_t>(parts_.size())};
  for (const int64_t n : inner) all.push_back(n);
  return all;
}

void Literal::add_type(DType& all, bool& any) const {
  if (kind_ != Kind::Braces) all = any ? promote(all, dtype_) : dtype_, any = true;
  for (const Literal& p : parts_) p.add_type(all, any);
}

DType Literal::dtype() const {
  DType all = DType::F32;
  bool any = false;
  add_type(all, any);
  return is_floating(all) ? default_dtype() : all;
}

namespace {

struct Complex {
  double real, imag;
};

template <class T>
Tensor gathered(const Literal& values, const Dims& shape, DType type, const Options& o) {
  std::vector<T> all;
  all.reserve(static_cast<size_t>(product(shape)));
  values.each([&](Scalar s) {
    if constexpr (std::is_same_v<T, Complex>)
      all.push_back({s.real(), s.imag()});
    else if constexpr (std::is_same_v<T, double>)
      all.push_back(s.to_double());
    else
      all.push_back(s.to_int());
  });
  return from_data(all.data(), shape, type, o);
}

}  // namespace

Tensor tensor(const Literal& values, const Options& options) {
  const Dims shape = values.shape();
  Options o = options;
  if (!o.dtype) o.dtype = values.dtype();
  if (const Scalar* const s = values.number()) return scalar_tensor(*s, o);
  if (values.numbers()) return from_data(values.numbers(), shape, values.number_type(), o);
  if (is_complex(values.dtype())) return gathered<Complex>(values, shape, kComplex128, o);
  return is_floating(values.dtype()) ? gathered<double>(values, shape, DType::F64, o) : gathered<int64_t>(values, shape, DType::I64, o);
}

}  // namespace naru
