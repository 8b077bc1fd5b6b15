// The virtual machine that runs pickles. Lists and dicts are Values from the start. Tuples may also hold items that are not Values (globals,
// storages), which only the rebuild functions accept.
#include <array>
#include <bit>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "data/pickle.h"
#include "data/pickle_names.h"
#include "data/rebuild.h"
#include "naru/ops.h"

namespace naru::data {
namespace {

template <class... A>
[[noreturn]] void refuse(detail::MessageFormat<sizeof...(A)> why, const A&... values) {
  throw RuntimeError("Weights only load failed. " + detail::message(why.text, {detail::MessageValue(values)...}));
}
[[noreturn]] void not_valid(const char* why) { refuse("The pickle in the file is not valid: {}.", why); }

struct Tuple;
struct Item {
  enum class Kind : uint8_t { Value, Tuple, Global, Storage };
  Kind kind = Kind::Value;
  Value value;  // of a global, its name "module name"; of a storage, its elements
  std::shared_ptr<Tuple> tuple;
};
struct Tuple {
  std::vector<Item> items;
  int depth = 1;
  std::optional<Value> value;  // set when first needed
};

struct Unpickler {
  Unpickler(std::string_view text, const std::function<Tensor(const StorageId&)>& storage) : text_(text), storage_(storage) {}

  Value run() {
    for (;;) {
      const char code = take(1)[0];
      if (code == '.') break;
      step(static_cast<uint8_t>(code));
    }
    if (!marks_.empty() || stack_.size() != 1) not_valid("it ends with something left over");
    return to_value(pop());
  }

  // --- bytes
  std::string_view take(uint64_t n) {
    if (n > text_.size() - at_) refuse("The pickle in the file is cut short.");
    at_ += n;
    return text_.substr(at_ - n, n);
  }
  uint64_t little(size_t n) {
    const std::string_view b = take(n);
    uint64_t v = 0;
    for (size_t i = n; i-- > 0;) v = v << 8 | static_cast<uint8_t>(b[i]);
    return v;
  }
  std::string line() {
    const size_t end = text_.find('\n', at_);
    if (end == std::string_view::npos) refuse("The pickle in the file is cut short.");
    std::string s(text_.substr(at_, end - at_));
    at_ = end + 1;
    return s;
  }

  // --- the stack
  void push(Value v) { stack_.push_back({Item::Kind::Value, std::move(v), nullptr}); }
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  Item& top() {
    if (stack_.size() <= floor()) not_valid("the stack is empty");
    return stack_.back();
  }
  Item pop() {
    Item i = std::move(top());
    stack_.pop_back();
    return i;
  }
  std::vector<Item> above_mark() {
    if (marks_.empty()) not_valid("there is no mark");
    const auto from = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<Item> items(std::make_move_iterator(from), std::make_move_iterator(stack_.end()));
    stack_.erase(from, stack_.end());
    marks_.pop_back();
    return items;
  }

  // --- containers. A container that is inside another one can no longer be changed, so there are no cycles.
  struct Nesting {
    int depth = 1;
    bool closed = false;
  };
  static bool is_container(const Value& v) { return v.kind() == Value::Kind::List || v.kind() == Value::Kind::Dict; }
  Nesting& nesting(const Value& v) { return nestings_[&v.values()]; }
  void push_container(Value v) {
    nesting(v) = {};
    push(std::move(v));
  }
  int close(const Item& i) {
    if (i.kind == Item::Kind::Tuple) return i.tuple->depth;
    if (i.kind != Item::Kind::Value) return 0;
    if (i.value.kind() == Value::Kind::Tuple) return tuple_depths_[&i.value.values()];
    if (!is_container(i.value)) return 0;
    Nesting& n = nesting(i.value);
    n.closed = true;
    return n.depth;
  }
  static int deeper(int depth) {
    if (depth >= kMostNested) refuse("The file nests containers more than {} deep.", kMostNested);
    return depth + 1;
  }
  void push_tuple(std::vector<Item> items) {
    Item i{Item::Kind::Tuple, {}, std::make_shared<Tuple>()};
    for (const Item& part : items) i.tuple->depth = std::max(i.tuple->depth, deeper(close(part)));
    i.tuple->items = std::move(items);
    stack_.push_back(std::move(i));
  }
  void push_tuple(size_t n) {
    std::vector<Item> items(n);
    for (size_t k = n; k-- > 0;) items[k] = pop();
    push_tuple(std::move(items));
  }
  Value to_value(const Item& i) {
    if (i.kind == Item::Kind::Value) return i.value;
    if (i.kind == Item::Kind::Global) {
      const std::string& name = i.value.text();  // dtypes are data: "torch.float32"
      if (name.starts_with("torch ") && dtype_called(name.substr(6))) return "torch." + name.substr(6);
      refuse("The file holds the class or function {}, which is no data.", name);
    }
    if (i.kind == Item::Kind::Storage) refuse("The file holds a storage that belongs to no tensor.");
    if (!i.tuple->value) {
      Value::List list;
      for (const Item& part : i.tuple->items) list.push_back(to_value(part));
      i.tuple->value = Value::tuple(std::move(list));
      tuple_depths_[&i.tuple->value->values()] = i.tuple->depth;
      kept_.push_back(*i.tuple->value);
    }
    return *i.tuple->value;
  }
  // The list or dict on top of the stack, for modification.
  Value target(Value::Kind kind, const char* what) {
    Item& i = top();
    if (i.kind != Item::Kind::Value || i.value.kind() != kind) refuse("Can only {}.", what);
    if (nesting(i.value).closed) not_valid("a container is changed that is within another one");
    return i.value;
  }
  void put_into(Value& container, const Item& i) {
    const int depth = deeper(close(i));
    if (is_container(i.value) && &i.value.values() == &container.values()) not_valid("a container holds itself");
    Nesting& n = nesting(container);
    n.depth = std::max(n.depth, depth);
  }
  void append(const std::vector<Item>& items) {
    Value list = target(Value::Kind::List, "append to lists");
    for (const Item& i : items) {
      put_into(list, i);
      list.push_back(to_value(i));
    }
  }
  void set_items(const std::vector<Item>& items) {
    Value dict = target(Value::Kind::Dict, "set items of dicts");
    if (items.size() % 2) not_valid("a key without a value");
    for (size_t i = 0; i < items.size(); i += 2) {
      put_into(dict, items[i]), put_into(dict, items[i + 1]);
      try {
        dict.insert(to_value(items[i]), to_value(items[i + 1]));
      } catch (const TypeError&) {
        refuse("A list or a dict can't be a key.");
      }
    }
  }

  // --- objects
  void push_global(const std::string& module, const std::string& name) {
    const std::string global = module + " " + name;
    if (!is_known_global(global))
      refuse(
          "The file names a class or function that is not plain data, and loading it could run anything. Unsupported global: GLOBAL {}.{} "
          "was not "
          "an allowed global by default; Python reads such files with add_safe_globals or weights_only=False",
          module, name);
    stack_.push_back({Item::Kind::Global, global, nullptr});
  }

  // The arguments of a function call.
  struct Arguments {
    Unpickler& machine;
    const std::vector<Item>& items;
    const Item& at(size_t i) const {
      if (i >= items.size()) not_valid("a function has too few arguments");
      return items[i];
    }
    Value value(size_t i) const { return machine.to_value(at(i)); }
    int64_t number(size_t i) const {
      const Value v = value(i);
      if (v.kind() != Value::Kind::Int) not_valid("wanted an integer");
      return v.to_int();
    }
    std::string text(size_t i) const {
      const Value v = value(i);
      if (v.kind() != Value::Kind::Text) not_valid("wanted a text");
      return v.text();
    }
    Dims dims(size_t i) const {
      const Value v = value(i);
      if (v.kind() != Value::Kind::Tuple && v.kind() != Value::Kind::List) not_valid("wanted sizes");
      Dims d;
      for (const Value& n : v.values()) {
        if (n.kind() != Value::Kind::Int || d.size() >= 64) not_valid("wanted sizes");
        d.push_back(n.to_int());
      }
      return d;
    }
    Tensor tensor(size_t i) const {
      const Value v = value(i);
      if (v.kind() != Value::Kind::Tensor) not_valid("wanted a tensor");
      return v.tensor();
    }
    bool truth(size_t i) const {
      const Value v = value(i);
      return (v.kind() == Value::Kind::Bool || v.kind() == Value::Kind::Int) && v.to_int();
    }
  };

  static Tensor with_grad(Tensor t, bool on) {
    if (on && !is_inexact(t.dtype())) not_valid("a tensor of integers requires a gradient");
    return on ? t.detach().requires_grad_() : t;
  }
  static DType dtype_of(const Item& i) {
    const std::string name = i.kind == Item::Kind::Global ? i.value.text() : std::string();
    const auto dtype = name.starts_with("torch ") ? dtype_called(name.substr(6)) : std::nullopt;
    if (!dtype) refuse("The file has a tensor of a type that naru does not have: {}", name);
    return *dtype;
  }
  Tensor rebuild(const Arguments& a, bool bytes) {
    if (a.at(0).kind != Item::Kind::Storage) not_valid("a tensor without a storage");
    Tensor base = a.at(0).value.tensor();
    if (bytes) {
      const DType dtype = dtype_of(a.at(6));
      if (static_cast<uint64_t>(base.numel()) * base.element_size() % size_of(dtype)) not_valid("a storage is no whole number of elements");
      base = dtype == DType::Bool ? base.ne(0) : base.view(dtype);
    }
    return laid_over(base, a.dims(2), a.dims(3), a.number(1));
  }

  void reduce() {
    const Item arguments = pop(), function = pop();
    if (arguments.kind != Item::Kind::Tuple || function.kind != Item::Kind::Global) not_valid("something is called that is no function");
    const Arguments a{*this, arguments.tuple->items};
    const std::string& name = function.value.text();
    if (name == "collections OrderedDict" || name == "collections defaultdict" || name.ends_with(" dict")) {
      push_container(Value::Dict());
      if (name != "collections defaultdict" && !a.items.empty()) {
        const Value pairs = a.value(0);
        if (pairs.kind() != Value::Kind::List) not_valid("wanted a list of pairs");
        for (const Value& pair : pairs.values()) {
          if ((pair.kind() != Value::Kind::List && pair.kind() != Value::Kind::Tuple) || pair.size() != 2)
            not_valid("wanted a list of pairs");
          set_items({{Item::Kind::Value, pair[0], nullptr}, {Item::Kind::Value, pair[1], nullptr}});
        }
      }
    } else if (name == "torch._utils _rebuild_tensor") {
      push(rebuild(a, false));
    } else if (name == "torch._utils _rebuild_tensor_v2") {
      push(with_grad(rebuild(a, false), a.truth(4)));
    } else if (name == "torch._utils _rebuild_tensor_v3") {
      push(with_grad(rebuild(a, true), a.truth(4)));
    } else if (name == "torch._utils _rebuild_meta_tensor_no_storage") {
      push(with_grad(without_elements(dtype_of(a.at(0)), a.dims(1), a.dims(2)), a.truth(3)));
    } else if (name.starts_with("torch._utils _rebuild_parameter")) {
      push(with_grad(a.tensor(0), a.truth(1)));
    } else if (name == "torch Size") {
      Value::List list;
      for (const int64_t n : a.dims(0)) list.emplace_back(n);
      const Value sizes = Value::tuple(std::move(list));
      tuple_depths_[&sizes.values()] = 1;
      kept_.push_back(sizes);
      push(sizes);
    } else if (name == "torch device") {
      push(a.items.size() > 1 ? a.text(0) + ":" + std::to_string(a.number(1)) : a.text(0));
    } else if (name == "_codecs encode") {
      std::optional<std::string> bytes = latin1_bytes(a.text(0));
      if (!bytes) not_valid("a text is no bytes");
      push(Value::bytes(std::move(*bytes)));
    } else {
      refuse("Trying to call reduce for unrecognized function {}", name);
    }
  }
  void build() {
    pop();  // attributes of an OrderedDict, as state_dict() attaches them
    target(Value::Kind::Dict, "set attributes of OrderedDicts");
  }
  void persistent() {
    const Item id = pop();
    if (id.kind != Item::Kind::Tuple || id.tuple->items.size() < 5) refuse("Only persistent_load of storage is allowed.");
    const Arguments a{*this, id.tuple->items};
    if (a.text(0) != "storage" || a.at(1).kind != Item::Kind::Global) refuse("Only persistent_load of storage is allowed.");
    const std::string& global = a.at(1).value.text();
    const std::string name = global.substr(global.find(' ') + 1);
    const StorageName* kind = storage_called(name);
    if (!kind && name != "UntypedStorage") refuse("The file refers to a storage of unknown type: {}", name);
    const int64_t numel = a.number(4);
    if (numel < 0) refuse("The file refers to a storage of unknown type or size.");
    stack_.push_back({Item::Kind::Storage, storage_({a.text(2), a.text(3), kind ? kind->dtype : DType::U8, numel}), nullptr});
  }

  // --- other opcodes
  void big_int(uint64_t n) {
    if (n > 8) refuse("The file has an integer of {} bytes; at most 8 are read.", n);
    uint64_t v = little(n);
    if (n && n < 8 && v >> (8 * n - 1)) v |= ~uint64_t{0} << 8 * n;
    push(static_cast<int64_t>(v));
  }
  void put(uint64_t place) { memo_[place] = top(); }
  void get(uint64_t place) {
    const auto at = memo_.find(place);
    if (at == memo_.end()) not_valid("a place in the memo that has nothing");
    stack_.push_back(at->second);
  }
  void float_bits() {
    uint64_t v = 0;
    for (const char c : take(8)) v = v << 8 | static_cast<uint8_t>(c);
    push(std::bit_cast<double>(v));
  }
  void text_of(size_t bytes) { push(std::string(take(little(bytes)))); }
  void bytes_of(size_t bytes) { push(Value::bytes(std::string(take(little(bytes))))); }
  void append_one() {
    std::vector<Item> one;
    one.push_back(pop());
    append(one);
  }
  void set_one() {
    const Item value = pop(), key = pop();
    set_items({key, value});
  }
  void pop_or_mark() {
    if (stack_.size() > floor())
      stack_.pop_back();
    else
      above_mark();
  }
  void global() {
    const std::string module = line();
    push_global(module, line());
  }
  void stack_global() {
    const Item name = pop(), module = pop();
    for (const Item* i : {&name, &module})
      if (i->kind != Item::Kind::Value || i->value.kind() != Value::Kind::Text) not_valid("a global without a name");
    push_global(module.value.text(), name.value.text());
  }
  void step(uint8_t code);

  std::string_view text_;
  size_t at_ = 0;
  const std::function<Tensor(const StorageId&)>& storage_;
  std::vector<Item> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, Item> memo_;
  std::unordered_map<const void*, Nesting> nestings_;  // of lists and dicts
  std::unordered_map<const void*, int> tuple_depths_;  // of tuples that are values
  Value::List kept_;                                   // keeps their addresses from being reused
};

struct Instruction {
  uint8_t code;
  void (*run)(Unpickler& m);
};
using M = Unpickler;
constexpr Instruction kInstructions[] = {
    // Values.
    {'N', [](M& m) { m.push({}); }},
    {0x88, [](M& m) { m.push(true); }},
    {0x89, [](M& m) { m.push(false); }},
    {'J', [](M& m) { m.push(static_cast<int32_t>(m.little(4))); }},
    {'K', [](M& m) { m.push(static_cast<int64_t>(m.little(1))); }},
    {'M', [](M& m) { m.push(static_cast<int64_t>(m.little(2))); }},
    {0x8a, [](M& m) { m.big_int(m.little(1)); }},
    {'G', [](M& m) { m.float_bits(); }},
    {'X', [](M& m) { m.text_of(4); }},
    {0x8c, [](M& m) { m.text_of(1); }},
    {0x8d, [](M& m) { m.text_of(8); }},
    {'B', [](M& m) { m.bytes_of(4); }},
    {'C', [](M& m) { m.bytes_of(1); }},
    {0x8e, [](M& m) { m.bytes_of(8); }},
    // Containers.
    {']', [](M& m) { m.push_container(Value::List()); }},
    {'}', [](M& m) { m.push_container(Value::Dict()); }},
    {')', [](M& m) { m.push_tuple(std::vector<Item>()); }},
    {'t', [](M& m) { m.push_tuple(m.above_mark()); }},
    {0x85, [](M& m) { m.push_tuple(1); }},
    {0x86, [](M& m) { m.push_tuple(2); }},
    {0x87, [](M& m) { m.push_tuple(3); }},
    {'a', [](M& m) { m.append_one(); }},
    {'e', [](M& m) { m.append(m.above_mark()); }},
    {'s', [](M& m) { m.set_one(); }},
    {'u', [](M& m) { m.set_items(m.above_mark()); }},
    // Objects.
    {'c', [](M& m) { m.global(); }},
    {0x93, [](M& m) { m.stack_global(); }},
    {'R', [](M& m) { m.reduce(); }},
    {'b', [](M& m) { m.build(); }},
    {'Q', [](M& m) { m.persistent(); }},
    // Opcodes that only the machine itself needs.
    {0x80, [](M& m) { m.take(1); }},
    {0x95, [](M& m) { m.take(8); }},
    {'(', [](M& m) { m.marks_.push_back(m.stack_.size()); }},
    {'0', [](M& m) { m.pop_or_mark(); }},
    {'1', [](M& m) { m.above_mark(); }},
    {'q', [](M& m) { m.put(m.little(1)); }},
    {'r', [](M& m) { m.put(m.little(4)); }},
    {0x94, [](M& m) { m.put(m.memo_.size()); }},
    {'h', [](M& m) { m.get(m.little(1)); }},
    {'j', [](M& m) { m.get(m.little(4)); }},
};

void Unpickler::step(uint8_t code) {
  static const auto by_code = [] {
    std::array<void (*)(M&), 256> all{};
    for (const Instruction& i : kInstructions) all[i.code] = i.run;
    return all;
  }();
  if (!by_code[code]) refuse("Unsupported operand {}", static_cast<int>(code));
  by_code[code](*this);
}

}  // namespace

Value unpickle(std::string_view text, const std::function<Tensor(const StorageId&)>& storage) { return Unpickler(text, storage).run(); }

}  // namespace naru::data
