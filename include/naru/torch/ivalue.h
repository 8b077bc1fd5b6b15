// IValue: an argument or result of an operator that was registered by name, whose C++ type is not known where it is called. Custom classes
// are objects that such operators take and return.
#pragma once

#include <complex>
#include <concepts>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "naru/tensor.h"

namespace naru::library {

// Base class of objects that Python and operators pass around: struct Stack : torch::CustomClassHolder { ... }.
class CustomClassHolder : public std::enable_shared_from_this<CustomClassHolder> {
 public:
  virtual ~CustomClassHolder() = default;
};

// libtorch's pointer to such an object.
template <class T>
class intrusive_ptr : public std::shared_ptr<T> {
 public:
  using std::shared_ptr<T>::shared_ptr;
  intrusive_ptr(std::shared_ptr<T> p) : std::shared_ptr<T>(std::move(p)) {}
  bool defined() const noexcept { return this->get() != nullptr; }
  template <class... A>
  static intrusive_ptr make(A&&... args) {
    return std::make_shared<T>(std::forward<A>(args)...);
  }
  // Another pointer to an object that one refers to already.
  static intrusive_ptr reclaim_copy(T* object) { return std::static_pointer_cast<T>(object->shared_from_this()); }
};
template <class T, class... A>
intrusive_ptr<T> make_intrusive(A&&... args) {
  return intrusive_ptr<T>::make(std::forward<A>(args)...);
}

class IValue {
 public:
  using List = std::vector<IValue>;
  struct Tuple {
    List values;
  };
  using Dict = std::vector<std::pair<IValue, IValue>>;
  using Object = std::shared_ptr<CustomClassHolder>;
  using Variant = std::variant<std::monostate, Tensor, bool, int64_t, double, std::complex<double>, std::string, Device, DType,
                               MemoryFormat, List, Tuple, Dict, Object>;

  IValue() = default;
  IValue(std::nullopt_t) {}
  IValue(Tensor t) : held_(std::move(t)) {}
  IValue(bool v) : held_(v) {}
  template <std::integral T>
  IValue(T v) : held_(static_cast<int64_t>(v)) {}
  template <std::floating_point T>
  IValue(T v) : held_(static_cast<double>(v)) {}
  IValue(std::complex<double> v) : held_(v) {}
  IValue(std::string v) : held_(std::move(v)) {}
  IValue(const char* v) : held_(std::string(v)) {}
  IValue(Device v) : held_(v) {}
  IValue(DType v) : held_(v) {}
  IValue(MemoryFormat v) : held_(v) {}
  IValue(List v) : held_(std::move(v)) {}
  IValue(Tuple v) : held_(std::move(v)) {}
  IValue(Dict v) : held_(std::move(v)) {}
  IValue(Object v) : held_(std::move(v)) {}

  const Variant& variant() const noexcept { return held_; }
  // The value if it is a T, else null.
  template <class T>
  const T* get_if() const noexcept {
    return std::get_if<T>(&held_);
  }
  // Its type in schemas: "Tensor", "int" ...
  const char* type_text() const noexcept {
    constexpr const char* kTexts[] = {"None",   "Tensor",     "bool",         "int",  "float", "complex", "str",
                                      "Device", "ScalarType", "MemoryFormat", "list", "tuple", "dict",    "object"};
    return kTexts[held_.index()];
  }

  // libtorch's names.
  bool isNone() const noexcept { return get_if<std::monostate>(); }
  bool isTensor() const noexcept { return get_if<Tensor>(); }
  bool isInt() const noexcept { return get_if<int64_t>(); }
  bool isDouble() const noexcept { return get_if<double>(); }
  bool isBool() const noexcept { return get_if<bool>(); }
  bool isString() const noexcept { return get_if<std::string>(); }
  bool isList() const noexcept { return get_if<List>(); }
  bool isTuple() const noexcept { return get_if<Tuple>(); }
  bool isObject() const noexcept { return get_if<Object>(); }
  template <class T>
  T to() const;
  Tensor toTensor() const;
  int64_t toInt() const;
  double toDouble() const;
  bool toBool() const;
  std::string toStringRef() const;
  std::vector<Tensor> toTensorVector() const;
  std::vector<int64_t> toIntVector() const;

 private:
  Variant held_;
};

// Where a value goes, for messages: argument `index` of operator `op`, or its result.
struct ArgumentPlace {
  const char* op = "";
  int index = -1;
  [[noreturn]] void fail(const char* wanted, const IValue& got) const {
    if (index < 0) throw TypeError("{}: wanted {}, got {}", *op ? op : "IValue", wanted, got.type_text());
    throw TypeError("{}: argument {}: wanted {}, got {}", op, index, wanted, got.type_text());
  }
};

// What a C++ type is in a schema, and how it becomes an IValue and comes out of one. `Held`: what holds an argument of the type.
template <class T>
struct Conversion {
  static_assert(!std::is_integral_v<T>, "an operator's integers are int64_t: declare the parameter or result as int64_t");
  static_assert(!std::is_floating_point_v<T>, "an operator's floating-point numbers are double: declare the parameter or result as double");
  static_assert(std::is_integral_v<T> || std::is_floating_point_v<T>,
                "an operator has no such parameter or result; there are Tensor, int64_t, double, bool, std::string, Scalar, ScalarType, "
                "Device, std::vector, std::optional and std::tuple of these, and c10::intrusive_ptr of a custom class");
};

namespace detail {
template <class T>
struct PlainConversion {
  using Held = T;
  static IValue box(T v) { return v; }
  static T take(const IValue& v, const ArgumentPlace& place, const char* wanted) {
    if (const T* held = v.get_if<T>()) return *held;
    place.fail(wanted, v);
  }
};
inline std::string list_text(const std::string& element) { return element + "[]"; }
}  // namespace detail

template <>
struct Conversion<Tensor> : detail::PlainConversion<Tensor> {
  static std::string text() { return "Tensor"; }
  static Tensor unbox(const IValue& v, const ArgumentPlace& place) { return take(v, place, "a Tensor"); }
  static IValue box(const Tensor& t) { return t.defined() ? IValue(t) : IValue(); }
};
template <>
struct Conversion<int64_t> : detail::PlainConversion<int64_t> {
  static std::string text() { return "int"; }
  static int64_t unbox(const IValue& v, const ArgumentPlace& place) {
    if (const bool* b = v.get_if<bool>()) return *b;
    return take(v, place, "an int");
  }
};
template <>
struct Conversion<double> : detail::PlainConversion<double> {
  static std::string text() { return "float"; }
  static double unbox(const IValue& v, const ArgumentPlace& place) {
    if (const int64_t* i = v.get_if<int64_t>()) return static_cast<double>(*i);
    if (const bool* b = v.get_if<bool>()) return *b;
    return take(v, place, "a float");
  }
};
template <>
struct Conversion<bool> : detail::PlainConversion<bool> {
  static std::string text() { return "bool"; }
  static bool unbox(const IValue& v, const ArgumentPlace& place) { return take(v, place, "a bool"); }
};
template <>
struct Conversion<std::string> : detail::PlainConversion<std::string> {
  static std::string text() { return "str"; }
  static std::string unbox(const IValue& v, const ArgumentPlace& place) { return take(v, place, "a str"); }
};
template <>
struct Conversion<std::string_view> : Conversion<std::string> {
  static IValue box(std::string_view v) { return std::string(v); }
};
template <>
struct Conversion<Device> : detail::PlainConversion<Device> {
  static std::string text() { return "Device"; }
  static Device unbox(const IValue& v, const ArgumentPlace& place) {
    if (const std::string* name = v.get_if<std::string>()) return Device(*name);
    return take(v, place, "a device");
  }
};
template <>
struct Conversion<DType> : detail::PlainConversion<DType> {
  static std::string text() { return "ScalarType"; }
  static DType unbox(const IValue& v, const ArgumentPlace& place) { return take(v, place, "a dtype"); }
};
template <>
struct Conversion<MemoryFormat> : detail::PlainConversion<MemoryFormat> {
  static std::string text() { return "MemoryFormat"; }
  static MemoryFormat unbox(const IValue& v, const ArgumentPlace& place) { return take(v, place, "a memory format"); }
};
template <>
struct Conversion<Scalar> {
  using Held = Scalar;
  static std::string text() { return "Scalar"; }
  static IValue box(const Scalar& s) {
    if (s.is_float()) return s.to_double();
    if (s.is_complex()) return s.to<std::complex<double>>();
    return s.is_bool() ? IValue(s.to_bool()) : IValue(s.to_int());
  }
  static Scalar unbox(const IValue& v, const ArgumentPlace& place) {
    if (const double* d = v.get_if<double>()) return *d;
    if (const int64_t* i = v.get_if<int64_t>()) return *i;
    if (const bool* b = v.get_if<bool>()) return *b;
    if (const auto* c = v.get_if<std::complex<double>>()) return *c;
    place.fail("a number", v);
  }
};
template <>
struct Conversion<IValue> {
  using Held = IValue;
  static std::string text() { return "Any"; }
  static IValue box(IValue v) { return v; }
  static IValue unbox(const IValue& v, const ArgumentPlace&) { return v; }
};
template <class T>
struct Conversion<std::optional<T>> {
  using Held = std::optional<typename Conversion<T>::Held>;
  static std::string text() { return Conversion<T>::text() + "?"; }
  static IValue box(const std::optional<T>& v) { return v ? Conversion<T>::box(*v) : IValue(); }
  static Held unbox(const IValue& v, const ArgumentPlace& place) { return v.isNone() ? Held() : Held(Conversion<T>::unbox(v, place)); }
};
template <class T>
struct Conversion<std::vector<T>> {
  using Held = std::vector<T>;
  static std::string text() { return detail::list_text(Conversion<T>::text()); }
  static IValue box(const std::vector<T>& list) {
    IValue::List made;
    for (const auto& v : list) made.push_back(Conversion<T>::box(v));
    return made;
  }
  static Held unbox(const IValue& v, const ArgumentPlace& place) {
    Held made;
    if (const auto* list = v.get_if<IValue::List>()) {
      for (const IValue& each : *list) made.push_back(Conversion<T>::unbox(each, place));
    } else if (const auto* tuple = v.get_if<IValue::Tuple>()) {
      for (const IValue& each : tuple->values) made.push_back(Conversion<T>::unbox(each, place));
    } else if (std::is_same_v<T, int64_t> && v.isInt()) {
      made.push_back(Conversion<T>::unbox(v, place));  // a number stands for a list of one
    } else {
      place.fail("a list", v);
    }
    return made;
  }
};
template <>
struct Conversion<Dims> {
  using Held = Dims;
  static std::string text() { return "int[]"; }
  static IValue box(const Dims& d) { return Conversion<std::vector<int64_t>>::box(d.vec()); }
  static Dims unbox(const IValue& v, const ArgumentPlace& place) { return Conversion<std::vector<int64_t>>::unbox(v, place); }
};
template <class... T>
struct Conversion<std::tuple<T...>> {
  using Held = std::tuple<T...>;
  static std::string text() {
    std::string made;
    ((made += (made.empty() ? "" : ", ") + Conversion<T>::text()), ...);
    return "(" + made + ")";
  }
  static IValue box(const Held& tuple) {
    return std::apply([](const T&... v) { return IValue(IValue::Tuple{{Conversion<T>::box(v)...}}); }, tuple);
  }
  static Held unbox(const IValue& v, const ArgumentPlace& place) {
    const auto* tuple = v.get_if<IValue::Tuple>();
    if (!tuple || tuple->values.size() != sizeof...(T)) place.fail("a tuple", v);
    return [&]<size_t... I>(std::index_sequence<I...>) { return Held(Conversion<T>::unbox(tuple->values[I], place)...); }
    (std::index_sequence_for<T...>());
  }
};
template <class A, class B>
struct Conversion<std::pair<A, B>> {
  using Held = std::pair<A, B>;
  static std::string text() { return Conversion<std::tuple<A, B>>::text(); }
  static IValue box(const Held& p) { return Conversion<std::tuple<A, B>>::box(p); }
};
template <class T>
requires std::is_base_of_v<CustomClassHolder, T>
struct Conversion<intrusive_ptr<T>> {
  using Held = intrusive_ptr<T>;
  static std::string text() { return "Any"; }
  static IValue box(const intrusive_ptr<T>& p) { return IValue(IValue::Object(p)); }
  static intrusive_ptr<T> unbox(const IValue& v, const ArgumentPlace& place) {
    if (const auto* object = v.get_if<IValue::Object>())
      if (auto typed = std::dynamic_pointer_cast<T>(*object)) return typed;
    place.fail("an object of the custom class", v);
  }
};

template <class T>
T IValue::to() const {
  return Conversion<T>::unbox(*this, {});
}
inline Tensor IValue::toTensor() const { return to<Tensor>(); }
inline int64_t IValue::toInt() const { return to<int64_t>(); }
inline double IValue::toDouble() const { return to<double>(); }
inline bool IValue::toBool() const { return to<bool>(); }
inline std::string IValue::toStringRef() const { return to<std::string>(); }
inline std::vector<Tensor> IValue::toTensorVector() const { return to<std::vector<Tensor>>(); }
inline std::vector<int64_t> IValue::toIntVector() const { return to<std::vector<int64_t>>(); }

}  // namespace naru::library

namespace torch {
using naru::library::CustomClassHolder;
using naru::library::intrusive_ptr;
using naru::library::IValue;
using naru::library::make_intrusive;
}  // namespace torch
