#include "naru/value.h"

#include <fmt/format.h>

#include <algorithm>

namespace naru {
namespace {

constexpr const char* kNames[] = {"None", "a bool", "an int", "a float", "a text", "bytes", "a tensor", "a list", "a tuple", "a dict"};

[[noreturn]] void wrong_kind(Value::Kind got, const char* wanted) {
  throw TypeError("wanted {}, got {}", wanted, kNames[static_cast<size_t>(got)]);
}

// What tells keys apart, as Python does: equal numbers are one key, whatever their type.
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

Value::Value(Kind kind, List values) : is_(std::make_shared<Container>(Container{kind, {}, {}})) {
  Container& c = *std::get<std::shared_ptr<Container>>(is_);
  if (kind != Kind::Dict) {
    c.values = std::move(values);
    return;
  }
  if (values.size() % 2) throw ValueError("a dict wants a value for each key");
  for (size_t i = 0; i < values.size(); i += 2) insert(values[i], std::move(values[i + 1]));
}

Value::Value(const Dict& dict) : Value(Kind::Dict, {}) {
  for (const auto& [key, value] : dict.items) insert(key, value);
}
Value::Value(const std::vector<std::pair<std::string, naru::Tensor>>& named) : Value(Kind::Dict, {}) {
  for (const auto& [key, value] : named) insert(key, value);
}
Value::Value(const std::map<std::string, naru::Tensor>& named) : Value(Kind::Dict, {}) {
  for (const auto& [key, value] : named) insert(key, value);
}
Value Value::bytes(std::string b) {
  Value v;
  v.is_ = Bytes{std::move(b)};
  return v;
}

Value::Kind Value::kind() const noexcept {
  if (const auto* c = std::get_if<std::shared_ptr<Container>>(&is_)) return (*c)->kind;
  return static_cast<Kind>(is_.index());  // the variant's order is Kind's
}

bool Value::to_bool() const {
  if (const bool* v = std::get_if<bool>(&is_)) return *v;
  wrong_kind(kind(), "a bool");
}
int64_t Value::to_int() const {
  if (const int64_t* v = std::get_if<int64_t>(&is_)) return *v;
  if (const bool* v = std::get_if<bool>(&is_)) return *v;
  wrong_kind(kind(), "an int");
}
double Value::to_double() const {
  if (const double* v = std::get_if<double>(&is_)) return *v;
  if (kind() == Kind::Int || kind() == Kind::Bool) return static_cast<double>(to_int());
  wrong_kind(kind(), "a float");
}
const std::string& Value::text() const {
  if (const std::string* v = std::get_if<std::string>(&is_)) return *v;
  if (const Bytes* v = std::get_if<Bytes>(&is_)) return v->text;
  wrong_kind(kind(), "a text");
}
const Tensor& Value::tensor() const {
  if (const naru::Tensor* v = std::get_if<naru::Tensor>(&is_)) return *v;
  wrong_kind(kind(), "a tensor");
}

const Value::Container& Value::container(const char* wanted) const {
  const auto* c = std::get_if<std::shared_ptr<Container>>(&is_);
  if (!c) wrong_kind(kind(), wanted);
  return **c;
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

// The value of a dict's key, or null.
const Value* Value::find(const Value& key) const {
  const Container& c = container("a dict");
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
  std::get<std::shared_ptr<Container>>(is_)->values.push_back(std::move(v));
}
void Value::insert(const Value& key, Value v) {
  if (kind() != Kind::Dict) wrong_kind(kind(), "a dict to insert into");
  Container& c = *std::get<std::shared_ptr<Container>>(is_);
  const auto [at, fresh] = c.places.try_emplace(told_apart(key), c.values.size());
  if (!fresh) {
    c.values[at->second + 1] = std::move(v);
    return;
  }
  c.values.push_back(key);
  c.values.push_back(std::move(v));
}

}  // namespace naru
