#include "support/arrays.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "ir/program_builder.h"

namespace naru::testing {

std::string name_of(Layout layout) {
  switch (layout) {
    case Layout::Contiguous:
      return "contiguous";
    case Layout::Transposed:
      return "transposed";
    case Layout::Offset:
      return "offset";
    case Layout::Stepped:
      return "stepped";
    case Layout::Repeated:
      return "repeated";
  }
  return "?";
}

double read(DType dtype, const void* p) {
  switch (dtype) {
    case DType::Bool:
    case DType::U8:
      return *static_cast<const uint8_t*>(p);
    case DType::I8:
      return *static_cast<const int8_t*>(p);
    case DType::I16:
      return *static_cast<const int16_t*>(p);
    case DType::I32:
      return *static_cast<const int32_t*>(p);
    case DType::I64:
      return static_cast<double>(*static_cast<const int64_t*>(p));
    case DType::F16:
      return half_to_float(*static_cast<const uint16_t*>(p));
    case DType::BF16:
      return bfloat_to_float(*static_cast<const uint16_t*>(p));
    case DType::F32:
      return *static_cast<const float*>(p);
    case DType::F64:
      return *static_cast<const double*>(p);
  }
  return 0;
}

void write(DType dtype, void* p, double v) {
  switch (dtype) {
    case DType::Bool:
      *static_cast<uint8_t*>(p) = v != 0;
      break;
    case DType::U8:
      *static_cast<uint8_t*>(p) = static_cast<uint8_t>(static_cast<int64_t>(v));
      break;
    case DType::I8:
      *static_cast<int8_t*>(p) = static_cast<int8_t>(static_cast<int64_t>(v));
      break;
    case DType::I16:
      *static_cast<int16_t*>(p) = static_cast<int16_t>(static_cast<int64_t>(v));
      break;
    case DType::I32:
      *static_cast<int32_t*>(p) = static_cast<int32_t>(static_cast<int64_t>(v));
      break;
    case DType::I64:
      *static_cast<int64_t*>(p) = static_cast<int64_t>(v);
      break;
    case DType::F16:
      *static_cast<uint16_t*>(p) = float_to_half(static_cast<float>(v));
      break;
    case DType::BF16:
      *static_cast<uint16_t*>(p) = float_to_bfloat(static_cast<float>(v));
      break;
    case DType::F32:
      *static_cast<float*>(p) = static_cast<float>(v);
      break;
    case DType::F64:
      *static_cast<double*>(p) = v;
      break;
  }
}

Array::Array(Dims shape, DType dtype, Layout layout, uint64_t seed, bool specials) : shape_(std::move(shape)), dtype_(dtype) {
  const size_t rank = shape_.size();
  strides_ = contiguous_strides(shape_);
  int64_t elements = std::max<int64_t>(1, numel());
  offset_ = 16;
  switch (layout) {
    case Layout::Contiguous:
      break;
    case Layout::Transposed: {
      int64_t step = 1;
      for (size_t d = 0; d < rank; ++d) strides_[d] = step, step *= std::max<int64_t>(1, shape_[d]);
      break;
    }
    case Layout::Offset:
      offset_ = 19;
      break;
    case Layout::Stepped:
      for (auto& s : strides_) s *= 3;
      elements *= 3;
      break;
    case Layout::Repeated:
      // Every other dimension, including the last one.
      for (size_t d = 0; d < rank; ++d)
        if ((rank - 1 - d) % 2 == 0) strides_[d] = 0;
      break;
  }
  memory_.assign(static_cast<size_t>(elements + offset_ + 64) * naru::size_of(dtype), 0x5a);
  std::mt19937_64 random(seed);
  const int64_t all = static_cast<int64_t>(memory_.size() / naru::size_of(dtype)) - offset_ - 48;
  for (int64_t e = 0; e < all; ++e) {
    double v = static_cast<double>(static_cast<int64_t>(random() % 2001) - 1000) / 250;
    if (!is_floating(dtype)) v = static_cast<double>(random() % 100) - (dtype == DType::U8 ? 0 : 50);
    if (dtype == DType::Bool) v = static_cast<double>(random() % 2);
    if (specials && is_floating(dtype)) {
      const uint64_t kind = random() % 97;
      if (kind == 0) v = std::numeric_limits<double>::quiet_NaN();
      if (kind == 1) v = std::numeric_limits<double>::infinity();
      if (kind == 2) v = -std::numeric_limits<double>::infinity();
      if (kind == 3) v = -0.0;
    }
    write(dtype, memory_.data() + static_cast<size_t>(offset_ + e) * naru::size_of(dtype), v);
  }
}

void* Array::at(int64_t p) {
  int64_t e = offset_;
  for (size_t d = shape_.size(); d-- > 0;) {
    const int64_t size = std::max<int64_t>(1, shape_[d]);
    e += p % size * strides_[d];
    p /= size;
  }
  return memory_.data() + static_cast<size_t>(e) * naru::size_of(dtype_);
}

double Array::value(int64_t p) { return read(dtype_, at(p)); }
void Array::set(int64_t p, double v) { write(dtype_, at(p), v); }
void Array::fill(double v) {
  for (int64_t p = 0; p < numel(); ++p) set(p, v);
}

std::vector<char> Array::contents() {
  std::vector<char> bytes;
  const size_t item = naru::size_of(dtype_);
  for (int64_t p = 0; p < numel(); ++p) {
    const char* e = static_cast<const char*>(at(p));
    bytes.insert(bytes.end(), e, e + item);
  }
  return bytes;
}

ir::Program program_of(ir::OpId row, std::vector<DType> inputs, DType out, DType computed) {
  return ir::ProgramBuilder::single(row, inputs, computed, out);
}

void each_position(const Dims& shape, const std::function<void(const Dims&, int64_t)>& f) {
  const int64_t n = product(shape);
  Dims index(shape.size(), 0);
  for (int64_t p = 0; p < n; ++p) {
    f(index, p);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

}  // namespace naru::testing
