// Value: the content of a torch.save file, and the argument of save(): numbers, strings, tensors, and lists, tuples and dicts of values.
// Copies of a list, tuple or dict share its contents.
//
//   const Value state = load("model.pt");
//   state["epoch"].to_int();
//   model.load_state_dict(state["model"].named_tensors());
#pragma once

#include <concepts>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "naru/standard.h"
#include "naru/tensor.h"

namespace naru {

class Value {
 public:
// These enumerators are scoped; g++ 12 wrongly reports that they shadow naru::None.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
  enum class Kind : uint8_t { None, Bool, Int, Float, Text, Bytes, Tensor, List, Tuple, Dict };
#pragma GCC diagnostic pop
  struct Dict;
  using List = std::vector<Value>;

  Value() = default;  // None
  template <class T>
  requires std::same_as<T, bool> Value(T v) : kind_(Kind::Bool), int_(v) {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) Value(T v) : kind_(Kind::Int), int_(static_cast<int64_t>(v)) {}
  template <std::floating_point T>
  Value(T v) : kind_(Kind::Float), float_(static_cast<double>(v)) {}
  Value(const char* text);
  Value(std::string text);
  Value(naru::Tensor t) noexcept : kind_(Kind::Tensor), tensor_(std::move(t)) {}
  Value(List list);
  Value(const std::vector<naru::Tensor>& list);
  Value(const Dict& dict);
  // Dicts of tensors, such as a state_dict().
  Value(const std::vector<std::pair<std::string, naru::Tensor>>& named);
  Value(const std::map<std::string, naru::Tensor>& named);
  static Value tuple(List values);
  static Value bytes(std::string b);
  // From alternating keys and values.
  static Value dict(List keys_and_values);

  Kind kind() const noexcept { return kind_; }
  bool is_none() const noexcept { return kind_ == Kind::None; }
  // The stored value. Throws TypeError if the kind differs, except that to_double accepts integers.
  bool to_bool() const;
  int64_t to_int() const;
  double to_double() const;
  const std::string& text() const;  // also for bytes
  const naru::Tensor& tensor() const;
  // For a list or tuple of tensors.
  std::vector<naru::Tensor> tensors() const;
  // For a dict with string keys and tensor values.
  std::vector<std::pair<std::string, naru::Tensor>> named_tensors() const;

  // The number of entries of a list, tuple or dict.
  size_t size() const;
  // Access by index for a list or tuple, by key for a dict. Throws IndexError, which lists the existing keys, if there is no such entry.
  const Value& operator[](const Value& place_or_key) const;
  // True if a dict contains the key.
  bool contains(const Value& key) const;
  // The entries of a dict, in insertion order.
  std::vector<std::pair<Value, Value>> items() const;
  // The entries of a list or tuple; for a dict, alternating keys and values.
  const List& values() const;

  // push_back appends to a list; insert sets a dict's entry, replacing one with an equal key.
  void push_back(Value v);
  void insert(const Value& key, Value v);

 private:
  struct Body;
  Value(Kind kind, std::string text);
  Value(Kind kind, List values);
  const Value* find(const Value& key) const;
  Body& container(const char* wanted) const;

  Kind kind_ = Kind::None;
  union {
    int64_t int_ = 0;
    double float_;
  };
  naru::Tensor tensor_;
  std::shared_ptr<Body> body_;  // for strings, bytes, lists, tuples and dicts
};

// Value::Dict{{"model", model.state_dict()}, {"epoch", 3}}
struct Value::Dict {
  std::vector<std::pair<Value, Value>> items;
  Dict() = default;
  Dict(std::initializer_list<std::pair<Value, Value>> list);
};

}  // namespace naru
