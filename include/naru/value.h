// Value: what a file of torch.save holds, and what save() takes: numbers, texts, tensors, and lists, tuples and dicts of values. A handle for the three:
// copies share what they hold.
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
// Names of their own; g++ 12 takes them for shadows of naru::None.
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
  // Dicts of tensors: what state_dict() gives.
  Value(const std::vector<std::pair<std::string, naru::Tensor>>& named);
  Value(const std::map<std::string, naru::Tensor>& named);
  static Value tuple(List values);
  static Value bytes(std::string b);
  // Of keys and values by turns.
  static Value dict(List keys_and_values);

  Kind kind() const noexcept { return kind_; }
  bool is_none() const noexcept { return kind_ == Kind::None; }
  // What it is; TypeError where it is something else. Integers go as floating-point numbers, too.
  bool to_bool() const;
  int64_t to_int() const;
  double to_double() const;
  const std::string& text() const;  // of bytes as well
  const naru::Tensor& tensor() const;
  // Of a list or a tuple, of tensors all.
  std::vector<naru::Tensor> tensors() const;
  // Of a dict of texts and tensors.
  std::vector<std::pair<std::string, naru::Tensor>> named_tensors() const;

  // How many a list, a tuple or a dict holds.
  size_t size() const;
  // Of a list or a tuple by place, of a dict by key. IndexError, with the keys there are, where there is none.
  const Value& operator[](const Value& place_or_key) const;
  // Whether a dict has the key.
  bool contains(const Value& key) const;
  // Of a dict, in its order.
  std::vector<std::pair<Value, Value>> items() const;
  // Of a list or a tuple; of a dict keys and values by turns.
  const List& values() const;

  // Appends to a list (a value) or a dict (a key and its value, in place of an equal key's).
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
  std::shared_ptr<Body> body_;  // of texts, lists, tuples and dicts
};

// Value::Dict{{"model", model.state_dict()}, {"epoch", 3}}
struct Value::Dict {
  std::vector<std::pair<Value, Value>> items;
  Dict() = default;
  Dict(std::initializer_list<std::pair<Value, Value>> list);
};

}  // namespace naru
