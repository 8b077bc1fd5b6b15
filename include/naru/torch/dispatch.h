// libtorch's AT_DISPATCH: runs a piece of code with scalar_t being the C++ type of a dtype.
//
//   AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "twice", [&] { twice(x.data_ptr<scalar_t>(), x.numel()); });
#pragma once

#include <complex>
#include <cstdint>

#include "naru/torch/checks.h"
#include "naru/torch/tensor.h"

namespace torch {

using naru::BFloat16;
using naru::Half;
template <class T>
using complex = std::complex<T>;

namespace detail {

template <naru::DType Type>
struct CppTypeOf;
#define NARU_CPP_TYPE(name, cpp)        \
  template <>                           \
  struct CppTypeOf<naru::DType::name> { \
    using type = cpp;                   \
  };
NARU_CPP_TYPE(Bool, bool)
NARU_CPP_TYPE(U8, uint8_t)
NARU_CPP_TYPE(I8, int8_t)
NARU_CPP_TYPE(I16, int16_t)
NARU_CPP_TYPE(I32, int32_t)
NARU_CPP_TYPE(I64, int64_t)
NARU_CPP_TYPE(F16, naru::Half)
NARU_CPP_TYPE(BF16, naru::BFloat16)
NARU_CPP_TYPE(F32, float)
NARU_CPP_TYPE(F64, double)
#undef NARU_CPP_TYPE
template <>
struct CppTypeOf<naru::kComplex64> {
  using type = std::complex<float>;
};
template <>
struct CppTypeOf<naru::kComplex128> {
  using type = std::complex<double>;
};
template <>
struct CppTypeOf<naru::kUInt16> {
  using type = uint16_t;
};
template <>
struct CppTypeOf<naru::kUInt32> {
  using type = uint32_t;
};
template <>
struct CppTypeOf<naru::kUInt64> {
  using type = uint64_t;
};

}  // namespace detail

// The type in which sums are accumulated, and in which elements are computed.
template <class T, bool OnDevice = false>
using acc_type = std::conditional_t<std::is_floating_point_v<T>, std::conditional_t<OnDevice, T, double>,
                                    std::conditional_t<naru::HalfNumber<T>, float, std::conditional_t<std::is_integral_v<T>, int64_t, T>>>;
template <class T>
using opmath_type = std::conditional_t<naru::HalfNumber<T>, float, T>;

// The C++ type of a constant dtype: CppTypeToScalarType's inverse.
template <naru::DType Type>
using CppTypeT = typename detail::CppTypeOf<Type>::type;
template <class T>
struct CppTypeToScalarType {
  static constexpr naru::DType value = naru::dtype_of<T>();
};

}  // namespace torch

#define AT_DISPATCH_CASE(the_type, ...)                          \
  case the_type: {                                               \
    using scalar_t [[maybe_unused]] = torch::CppTypeT<the_type>; \
    return __VA_ARGS__();                                        \
  }
#define AT_DISPATCH_SWITCH(TYPE, NAME, ...)                                                                                     \
  [&] {                                                                                                                         \
    const naru::DType naru_dispatched = TYPE; /* a ScalarType, or x.type() */                                                   \
    switch (naru_dispatched) {                                                                                                  \
      __VA_ARGS__                                                                                                               \
      default:                                                                                                                  \
        throw naru::NotImplementedError("\"{}\" not implemented for '{}'", NAME, naru::traits_of(naru_dispatched).scalar_type); \
    }                                                                                                                           \
  }()

#define AT_DISPATCH_CASE_FLOATING_TYPES(...) AT_DISPATCH_CASE(torch::kDouble, __VA_ARGS__) AT_DISPATCH_CASE(torch::kFloat, __VA_ARGS__)
#define AT_DISPATCH_CASE_REDUCED_FLOATING_TYPES(...) \
  AT_DISPATCH_CASE(torch::kHalf, __VA_ARGS__) AT_DISPATCH_CASE(torch::kBFloat16, __VA_ARGS__)
#define AT_DISPATCH_CASE_COMPLEX_TYPES(...) \
  AT_DISPATCH_CASE(torch::kComplexDouble, __VA_ARGS__) AT_DISPATCH_CASE(torch::kComplexFloat, __VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...)  \
  AT_DISPATCH_CASE(torch::kByte, __VA_ARGS__) \
  AT_DISPATCH_CASE(torch::kChar, __VA_ARGS__) \
  AT_DISPATCH_CASE(torch::kInt, __VA_ARGS__) AT_DISPATCH_CASE(torch::kLong, __VA_ARGS__) AT_DISPATCH_CASE(torch::kShort, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES(...) AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)

// The families of types, alone and with one to four types more.
#define NARU_DISPATCH_1(family, A, TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, family(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__))
#define NARU_DISPATCH_2(family, A, B, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, family(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__) AT_DISPATCH_CASE(B, __VA_ARGS__))
#define NARU_DISPATCH_3(family, A, B, C, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(                                     \
      TYPE, NAME, family(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__) AT_DISPATCH_CASE(B, __VA_ARGS__) AT_DISPATCH_CASE(C, __VA_ARGS__))
#define NARU_DISPATCH_4(family, A, B, C, D, TYPE, NAME, ...)                                               \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                                           \
                     family(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__) AT_DISPATCH_CASE(B, __VA_ARGS__) \
                         AT_DISPATCH_CASE(C, __VA_ARGS__) AT_DISPATCH_CASE(D, __VA_ARGS__))
#define NARU_WITH_COMPLEX(family, ...) family(__VA_ARGS__) AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__)
#define NARU_FLOATING_AND_COMPLEX(...) NARU_WITH_COMPLEX(AT_DISPATCH_CASE_FLOATING_TYPES, __VA_ARGS__)
#define NARU_ALL_AND_COMPLEX(...) NARU_WITH_COMPLEX(AT_DISPATCH_CASE_ALL_TYPES, __VA_ARGS__)

#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(...) NARU_DISPATCH_1(AT_DISPATCH_CASE_FLOATING_TYPES, torch::kHalf, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND(...) NARU_DISPATCH_1(AT_DISPATCH_CASE_FLOATING_TYPES, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND2(...) NARU_DISPATCH_2(AT_DISPATCH_CASE_FLOATING_TYPES, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND3(...) NARU_DISPATCH_3(AT_DISPATCH_CASE_FLOATING_TYPES, __VA_ARGS__)
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_REDUCED_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_COMPLEX_TYPES(TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES(TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, NARU_FLOATING_AND_COMPLEX(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND1(...) NARU_DISPATCH_1(NARU_FLOATING_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2(...) NARU_DISPATCH_2(NARU_FLOATING_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES_AND(...) NARU_DISPATCH_1(AT_DISPATCH_CASE_INTEGRAL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES(TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND(...) NARU_DISPATCH_1(AT_DISPATCH_CASE_ALL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND2(...) NARU_DISPATCH_2(AT_DISPATCH_CASE_ALL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND3(...) NARU_DISPATCH_3(AT_DISPATCH_CASE_ALL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX(TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, NARU_ALL_AND_COMPLEX(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND(...) NARU_DISPATCH_1(NARU_ALL_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND2(...) NARU_DISPATCH_2(NARU_ALL_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND3(...) NARU_DISPATCH_3(NARU_ALL_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND4(...) NARU_DISPATCH_4(NARU_ALL_AND_COMPLEX, __VA_ARGS__)

// The type of indices: int or int64_t, as index_t.
#define AT_DISPATCH_INDEX_TYPES(TYPE, NAME, ...)                                                                              \
  [&] {                                                                                                                       \
    const naru::DType naru_dispatched = TYPE;                                                                                 \
    if (naru_dispatched == torch::kInt) {                                                                                     \
      using index_t [[maybe_unused]] = int32_t;                                                                               \
      return __VA_ARGS__();                                                                                                   \
    }                                                                                                                         \
    if (naru_dispatched != torch::kLong)                                                                                      \
      throw naru::NotImplementedError("\"{}\" not implemented for '{}'", NAME, naru::traits_of(naru_dispatched).scalar_type); \
    using index_t [[maybe_unused]] = int64_t;                                                                                 \
    return __VA_ARGS__();                                                                                                     \
  }()
