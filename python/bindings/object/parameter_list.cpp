// Parses the bindings' parameter lists into overloads.
#include "object/parameter_list.h"

#include <unordered_map>

namespace naru::py {
namespace {

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

PyObject* literal(std::string_view text) {
  if (text == "None") return Py_NewRef(Py_None);
  if (text == "True") return Py_NewRef(Py_True);
  if (text == "False") return Py_NewRef(Py_False);
  if (text == "()") return PyTuple_New(0);
  if (text.front() == '\'') return PyUnicode_FromStringAndSize(text.data() + 1, static_cast<Py_ssize_t>(text.size()) - 2);
  const std::string s(text);
  return s.find_first_of(".e") == std::string::npos ? PyLong_FromString(s.c_str(), nullptr, 10) : PyFloat_FromDouble(std::stod(s));
}

// The interned string of a name. Thousands of parameters, all parsed at import, share a few hundred names.
PyObject* interned(std::string_view name) {
  static std::unordered_map<std::string_view, PyObject*> known;
  const auto found = known.find(name);
  if (found != known.end()) return Py_NewRef(found->second);
  PyObject* const made = check(PyUnicode_InternFromString(std::string(name).c_str()));
  known.emplace(utf8(made), Py_NewRef(made));
  return made;
}

void add_param(Overload& o, std::string_view item, bool& keyword_only, const std::vector<TypeInfo>& types, size_t& type) {
  Param p;
  p.keyword_only = keyword_only;
  if (item.front() == '*') {
    o.varargs = static_cast<int>(o.params.size());
    item.remove_prefix(1);
  }
  const size_t equals = item.find('=');
  const std::string_view name = trimmed(item.substr(0, equals));
  p.name = interned(name);
  if (equals != std::string_view::npos) {
    p.text = trimmed(item.substr(equals + 1));
    p.fallback = check(literal(p.text));
  }
  if (name == "dtype") o.dtype = static_cast<int>(o.params.size());
  if (name == "device") o.device = static_cast<int>(o.params.size());
  if (name == "out") {
    o.out = static_cast<int>(o.params.size());
    p.type = "Tensor";
    p.hint = "Tensor | None";
  } else {
    if (type >= types.size()) throw ValueError("binding: more parameters than the function takes at '{}'", item);
    p.type = types[type].name;
    p.hint = types[type].hint;
    p.or_none = types[type].optional && std::string_view(p.hint).find("None") == std::string_view::npos;
    ++type;
  }
  if (!p.keyword_only) ++o.positional;
  o.params.push_back(std::move(p));
  if (o.varargs == static_cast<int>(o.params.size()) - 1) keyword_only = true;
}

}  // namespace

std::unique_ptr<Overload> read_params(std::string_view text, const std::vector<TypeInfo>& types) {
  const std::string_view all = text;
  auto o = std::make_unique<Overload>();
  bool keyword_only = false;
  size_t type = 0;
  while (!(text = trimmed(text)).empty()) {
    const size_t comma = text.find(',');
    const std::string_view item = trimmed(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    if (item == "*") {
      keyword_only = true;
    } else if (item == "@options") {
      keyword_only = true;
      const std::vector<TypeInfo> five = {{"torch.dtype", "_dtype | None", 1, false},
                                          {"torch.layout", "Any", 1, false},
                                          {"torch.device", "_device | str | builtins.int | None", 1, false},
                                          {"bool", "builtins.bool", 1, false},
                                          {"bool", "builtins.bool", 1, false}};
      size_t i = 0;
      for (const char* name : {"dtype=None", "layout=None", "device=None", "pin_memory=False", "requires_grad=False"})
        add_param(*o, name, keyword_only, five, i);
      ++type;
    } else {
      add_param(*o, item, keyword_only, types, type);
    }
  }
  if (type != types.size() || o->params.size() > kMaxParams)
    throw ValueError("binding: parameter names and types differ in number at '{}'", all);
  return o;
}

void remove_out(Overload& o) {
  if (o.out < 0) return;
  o.params.erase(o.params.begin() + o.out);
  if (o.dtype > o.out) --o.dtype;
  if (o.device > o.out) --o.device;
  o.out = -1;
}

}  // namespace naru::py
