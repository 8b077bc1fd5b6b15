#include "naru/io/value.h"

#include <fmt/format.h>

#include <map>

namespace naru {
namespace {

constexpr const char* kNames[] = {"None", "a bool", "an int", "a float", "a text", "bytes", "a tensor", "a list", "a tuple", "a dict"};

[[noreturn]] void wrong_kind(Value::Kind got, const char* wanted) {
  throw TypeError("wanted {}, got {}", wanted, kNames[static_cast<size_t>(got)]);
}

// A string that is equal for keys that are equal in Python: numbers are equal regardless of type.
std::string told_apart(const Value& key) {
  using Kind = Value::Kind;
  switch (key.kind()) {
    case Kind::None:
      return "none";
    case Kind::Bool:
    case Kind::Int:
      return fmt::format("number {}", key.to_int());
    case Kind::Float: {
      const double d = key.to_double();
      if (d >= -0x1p63 && d < 0x1p63 && d == static_cast<double>(static_cast<int64_t>(d)))
        return fmt::format("number {}", static_cast<int64_t>(d));
      return fmt::format("number {:a}", d);
    }
    case Kind::Text:
      return "text " + key.text();
    case Kind::Bytes:
      return "bytes " + key.text();
    case Kind::Tensor:
      return fmt::format("tensor {}", fmt::ptr(key.tensor().impl()));
    case Kind::Tuple: {
      std::string all = "tuple";
      for (const Value& v : key.values()) {
        const std::string one = told_apart(v);
        all += fmt::format(" {}:{}", one.size(), one);
      }
      return all;
    }
    default:
      wrong_kind(key.kind(), "a number, a text, a tensor or a tuple as a key");
  }
}

}  // namespace

struct Value::Body {
  std::string text = {};
  List values = {};
  std::map<std::string, size_t> places = {};  // of a dict's keys: from told_apart(key) to the index
};

Value::Value(Kind kind, std::string text) : kind_(kind), body_(std::make_shared<Body>(Body{.text = std::move(text)})) {}
Value::Value(Kind kind, List values) : kind_(kind), body_(std::make_shared<Body>()) {
  if (kind != Kind::Dict) {
    body_->values = std::move(values);
    return;
  }
  if (values.size() % 2) throw ValueError("a dict wants a value for each key");
  for (size_t i = 0; i < values.size(); i += 2) insert(values[i], std::move(values[i + 1]));
}

Value::Value(const char* text) : Value(Kind::Text, std::string(text)) {}
Value::Value(std::string text) : Value(Kind::Text, std::move(text)) {}
Value::Value(List list) : Value(Kind::List, std::move(list)) {}
Value::Value(const std::vector<naru::Tensor>& list) : Value(Kind::List, List(list.begin(), list.end())) {}
Value::Value(const Dict& dict) : Value(Kind::Dict, List()) {
  for (const auto& [key, value] : dict.items) insert(key, value);
}
Value::Value(const std::vector<std::pair<std::string, naru::Tensor>>& named) : Value(Kind::Dict, List()) {
  for (const auto& [key, value] : named) insert(key, value);
}
Value::Value(const std::map<std::string, naru::Tensor>& named) : Value(Kind::Dict, List()) {
  for (const auto& [key, value] : named) insert(key, value);
}
Value::Dict::Dict(std::initializer_list<std::pair<Value, Value>> list) : items(list) {}
Value Value::bytes(std::string b) { return Value(Kind::Bytes, std::move(b)); }
Value Value::tuple(List values) { return Value(Kind::Tuple, std::move(values)); }
Value Value::dict(List keys_and_values) { return Value(Kind::Dict, std::move(keys_and_values)); }

bool Value::to_bool() const {
  if (kind_ != Kind::Bool) wrong_kind(kind_, "a bool");
  return int_ != 0;
}
int64_t Value::to_int() const {
  if (kind_ != Kind::Int && kind_ != Kind::Bool) wrong_kind(kind_, "an int");
  return int_;
}
double Value::to_double() const {
  if (kind_ == Kind::Float) return float_;
  if (kind_ != Kind::Int && kind_ != Kind::Bool) wrong_kind(kind_, "a float");
  return static_cast<double>(int_);
}
const std::string& Value::text() const {
  if (kind_ != Kind::Text && kind_ != Kind::Bytes) wrong_kind(kind_, "a text");
  return body_->text;
}
const Tensor& Value::tensor() const {
  if (kind_ != Kind::Tensor) wrong_kind(kind_, "a tensor");
  return tensor_;
}

Value::Body& Value::container(const char* wanted) const {
  if (kind_ < Kind::List) wrong_kind(kind_, wanted);
  return *body_;
}
const Value::List& Value::values() const { return container("a list, a tuple or a dict").values; }
size_t Value::size() const { return values().size() / (kind() == Kind::Dict ? 2 : 1); }

std::vector<Tensor> Value::tensors() const {
  if (kind() != Kind::List && kind() != Kind::Tuple) wrong_kind(kind(), "a list of tensors");
  std::vector<naru::Tensor> list;
  for (const Value& v : values()) list.push_back(v.tensor());
  return list;
}
std::vector<std::pair<std::string, Tensor>> Value::named_tensors() const {
  std::vector<std::pair<std::string, naru::Tensor>> list;
  for (const auto& [key, value] : items()) {
    if (value.kind() != Kind::Tensor) wrong_kind(value.kind(), fmt::format("a tensor as '{}'", key.text()).c_str());
    list.emplace_back(key.text(), value.tensor());
  }
  return list;
}
std::vector<std::pair<Value, Value>> Value::items() const {
  if (kind() != Kind::Dict) wrong_kind(kind(), "a dict");
  std::vector<std::pair<Value, Value>> list;
  const List& all = values();
  for (size_t i = 0; i < all.size(); i += 2) list.emplace_back(all[i], all[i + 1]);
  return list;
}

// The value for a dict's key, or null.
const Value* Value::find(const Value& key) const {
  const Body& c = container("a dict");
  const auto at = c.places.find(told_apart(key));
  return at == c.places.end() ? nullptr : &c.values[at->second + 1];
}
bool Value::contains(const Value& key) const { return kind() == Kind::Dict && find(key); }

const Value& Value::operator[](const Value& place) const {
  if (kind() == Kind::Dict) {
    if (const Value* found = find(place)) return *found;
    std::string keys;
    for (const auto& [key, value] : items())
      if (key.kind() == Kind::Text && keys.size() < 1000) keys += (keys.empty() ? "'" : ", '") + key.text() + "'";
    throw IndexError("the dict has no such key{}; its keys: {}", place.kind() == Kind::Text ? " as '" + place.text() + "'" : std::string(),
                     keys.empty() ? "none that is a text" : keys);
  }
  const List& all = values();
  const int64_t i = place.to_int(), n = static_cast<int64_t>(all.size());
  if (i < -n || i >= n) throw IndexError("index {} is out of range for {} of {} values", i, kNames[static_cast<size_t>(kind())], n);
  return all[static_cast<size_t>(i < 0 ? i + n : i)];
}

void Value::push_back(Value v) {
  if (kind() != Kind::List) wrong_kind(kind(), "a list to append to");
  body_->values.push_back(std::move(v));
}
void Value::insert(const Value& key, Value v) {
  if (kind() != Kind::Dict) wrong_kind(kind(), "a dict to insert into");
  Body& c = *body_;
  const auto [at, fresh] = c.places.try_emplace(told_apart(key), c.values.size());
  if (!fresh) {
    c.values[at->second + 1] = std::move(v);
    return;
  }
  c.values.push_back(key);
  c.values.push_back(std::move(v));
}

}  // namespace naru
