// Functions and methods: matching arguments with overloads, and the objects Python calls.
#include <fmt/format.h>

#include "object/function.h"

#include <structmember.h>

#include <algorithm>
#include <array>
#include <map>

#include "object/batches.h"
#include "object/out.h"
#include "object/overrides.h"
#include "object/parameter_list.h"
#include "ops/elementwise/elementwise.h"
#include "ops/tensor/type_names.h"

namespace naru::py {
namespace {

// By names, which live as long as the module: thousands, all at import.
using Definitions = std::map<std::string_view, Definition*>;
Definitions& functions() {
  static Definitions map;
  return map;
}
Definitions& methods() {
  static Definitions map;
  return map;
}

// --- matching
// -----------------------------------------------------------------------------------------------------------------------------

struct Failure {
  enum Kind { None, TooMany, Missing, Unexpected, Twice, Type } kind = None;
  int param = -1;
  PyObject* object = nullptr;
};

struct Binding {
  PyObject* slots[kMaxParams];
  PyObject* owned = nullptr;
  Binding() = default;
  Binding(const Binding&) = delete;
  ~Binding() { Py_XDECREF(owned); }
};

// Other names that PyTorch takes for parameters.
constexpr std::pair<const char*, const char*> kSynonyms[] = {{"axis", "dim"}, {"keepdims", "keepdim"}, {"x", "input"}, {"a", "input"},
                                                             {"A", "input"},  {"x1", "input"},         {"x2", "other"}};

int find_param(const Overload& o, PyObject* name, bool method) {
  const int n = static_cast<int>(o.params.size());
  for (int i = method; i < n; ++i)
    if (o.params[i].name == name) return i;
  for (int i = method; i < n; ++i)
    if (PyUnicode_Compare(o.params[i].name, name) == 0) return i;
  for (const auto& [other, own] : kSynonyms)
    if (PyUnicode_CompareWithASCIIString(name, other) == 0)
      for (int i = method; i < n; ++i)
        if (PyUnicode_CompareWithASCIIString(o.params[i].name, own) == 0) return i;
  return -1;
}

bool bind(const Overload& o, PyObject* const* args, int nargs, PyObject* kwnames, bool method, Binding& b, Failure& f) {
  const int n = static_cast<int>(o.params.size());
  int given = nargs;
  for (int i = 0; i < n; ++i) b.slots[i] = nullptr;
  if (o.varargs >= 0 && nargs > o.varargs) {
    const bool one = nargs == o.varargs + 1 && !PyLong_Check(args[o.varargs]);
    if (!one) {
      const int count = nargs - o.varargs;
      Py_XSETREF(b.owned, check(PyTuple_New(count)));
      for (int i = 0; i < count; ++i) PyTuple_SET_ITEM(b.owned, i, Py_NewRef(args[o.varargs + i]));
      b.slots[o.varargs] = b.owned;
      given = o.varargs;
    }
  }
  if (given > o.positional) {
    f.kind = Failure::TooMany;
    return false;
  }
  for (int i = 0; i < given; ++i) b.slots[i] = args[i];
  if (kwnames) {
    const Py_ssize_t count = PyTuple_GET_SIZE(kwnames);
    for (Py_ssize_t k = 0; k < count; ++k) {
      PyObject* name = PyTuple_GET_ITEM(kwnames, k);
      const int i = find_param(o, name, method);
      if (i < 0 || b.slots[i]) {
        f.kind = i < 0 ? Failure::Unexpected : Failure::Twice;
        f.object = name;
        return false;
      }
      b.slots[i] = args[nargs + k];
    }
  }
  for (int i = 0; i < n; ++i) {
    if (b.slots[i]) continue;
    if (!o.params[i].fallback) {
      f.kind = Failure::Missing;
      f.param = i;
      return false;
    }
    b.slots[i] = o.params[i].fallback;
  }
  return true;
}

std::string type_name(PyObject* o) { return Py_TYPE(o) == tensor_type ? "Tensor" : Py_TYPE(o)->tp_name; }
std::string short_name(PyObject* o) {
  const std::string full = type_name(o);
  const size_t dot = full.rfind('.');
  return dot == std::string::npos ? full : full.substr(dot + 1);
}

std::string text_of(const Overload& o, bool method) {
  std::string s = "(";
  bool star = false;
  for (size_t i = method; i < o.params.size(); ++i) {
    const Param& p = o.params[i];
    if (s.size() > 1) s += ", ";
    if (p.keyword_only && !star) {
      s += "*, ";
      star = true;
    }
    s += std::string(p.type) + " " + printable(p.name);
    if (p.fallback) s += " = " + p.text;
  }
  return s + ")";
}

void raise_no_match(const Definition& d, PyObject* const* args, int nargs, PyObject* kwnames, const Failure& f) {
  const bool method = d.method;
  const Overload& o = *d.overloads.front();
  const auto told = std::count_if(d.overloads.begin(), d.overloads.end(), [](const auto& each) { return !each->deprecated; });
  const auto param = [&] { return printable(o.params[f.param].name); };
  // Users call what stands before a function of this module by its public name.
  const std::string name = d.name + (d.name[0] == '_' && d.name[1] != '_');
  std::string text = name + "()";
  if (told == 1) {
    switch (f.kind) {
      case Failure::TooMany: {
        int least = -method;
        for (const Param& p : o.params) least += !p.fallback && !p.keyword_only;
        const int most = o.positional - method;
        text += least == most ? fmt::format(" takes {} positional argument{}", most, most == 1 ? "" : "s")
                              : fmt::format(" takes from {} to {} positional arguments", least, most);
        text += fmt::format(" but {} {} given", nargs - method, nargs - method == 1 ? "was" : "were");
        break;
      }
      case Failure::Missing:
        text += fmt::format(" missing 1 required positional arguments: \"{}\"", param());
        break;
      case Failure::Unexpected:
        text += fmt::format(" got an unexpected keyword argument '{}'", printable(f.object));
        break;
      case Failure::Twice:
        text += fmt::format(" got multiple values for argument '{}'", printable(f.object));
        break;
      default: {
        if (std::string_view(o.params[f.param].type) == "tuple of Tensors" && (PyList_Check(f.object) || PyTuple_Check(f.object))) {
          for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(f.object); ++i)
            if (PyObject* item = PySequence_Fast_GET_ITEM(f.object, i); !is_tensor(item)) {
              PyErr_Format(PyExc_TypeError, "%s(): expected Tensor as element %zd in argument %d, but got %s", name.c_str(), i,
                           f.param - method, short_name(item).c_str());
              return;
            }
        }
        const std::string position = f.param < nargs ? fmt::format(" (position {})", f.param + 1 - method) : "";
        text += fmt::format(": argument '{}'{} must be {}, not {}", param(), position, o.params[f.param].type, short_name(f.object));
      }
    }
  } else {
    text += " received an invalid combination of arguments - got (";
    for (int i = method; i < nargs; ++i) text += (i > method ? ", " : "") + short_name(args[i]);
    const Py_ssize_t keywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    for (Py_ssize_t k = 0; k < keywords; ++k)
      text += fmt::format("{}{}={}", nargs > method || k ? ", " : "", printable(PyTuple_GET_ITEM(kwnames, k)), short_name(args[nargs + k]));
    text += "), but expected one of:\n";
    for (const auto& each : d.overloads)
      if (!each->deprecated) text += " * " + text_of(*each, method) + "\n";
  }
  PyErr_SetString(PyExc_TypeError, text.c_str());
}

PyObject* with_out(const Definition& d, PyObject* out, std::span<PyObject* const> arguments, nb::object result) {
  if (is_tensor(result.ptr()) && is_tensor(out)) {
    write_out(d.name, d.out_rule, tensor_of(out), tensor_of(result.ptr()), d.sharing, arguments);
    return Py_NewRef(out);
  }
  if (PyTuple_Check(result.ptr()) && (PyTuple_Check(out) || PyList_Check(out))) {
    const OutRule rule = d.out_rule == OutRule::Cast ? OutRule::Same : d.out_rule;
    const Py_ssize_t n = PyTuple_GET_SIZE(result.ptr());
    if (PySequence_Fast_GET_SIZE(out) == n) {
      for (Py_ssize_t i = 0; i < n; ++i) {
        PyObject* target = PySequence_Fast_GET_ITEM(out, i);
        if (!is_tensor(target))
          throw TypeError("{}(): out must be a tuple of Tensors, got {} at position {}", d.name, short_name(target), i);
        write_out(d.name, rule, tensor_of(target), tensor_of(PyTuple_GET_ITEM(result.ptr(), i)), d.sharing, arguments);
      }
      return with_fields_of(result.ptr(), out);
    }
  }
  throw TypeError("{}(): argument 'out' must be Tensor, not {}", d.name, short_name(out));
}

// The result of an operator of the elementwise table, computed into out. Returns false if it has to be made and copied.
bool computed_into(const Definition& d, const Overload& o, const Tensor& target, std::span<PyObject* const> arguments) {
  if (o.elementwise < 0) return false;
  const auto count = static_cast<size_t>(o.operands);
  std::array<Arg<Operand>, 3> loaded;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Param& p = o.params[i];
    if (i >= count) {
      if (arguments[i] && arguments[i] != p.fallback) return false;
    } else {
      if (!arguments[i] || !loaded[i].load(&arguments[i])) return false;
      const bool fits = is_tensor(arguments[i]) ? std::string_view(p.type) != "Number" : std::string_view(p.hint) != "Tensor";
      if (!fits) return false;
    }
  }
  check_sharing(d.name, d.sharing, target, arguments);
  const Tensor out = target;
  const auto run = [&] {
    std::array<Operand, 3> operands{Operand(0), Operand(0), Operand(0)};
    for (size_t i = 0; i < count; ++i) operands[i] = loaded[i].get();
    return ops::run_op_into(static_cast<ir::OpId>(o.elementwise), {operands.data(), count}, out);
  };
  if (out.numel() < detail::kLongWork) return run();
  for (size_t i = 0; i < count; ++i) loaded[i].hold();
  const GilRelease scope;
  return run();
}

void warn_of_deprecated(const Definition& d, const Overload& o, PyObject*& result) {
  const std::string text =
      fmt::format("This overload of {0} is deprecated:\n\t{0}{1}\nConsider using one of the following signatures instead:\n\t{0}{2}",
                  d.name, text_of(o, d.method), text_of(*d.overloads.front(), d.method));
  if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) >= 0) return;
  Py_CLEAR(result);
  throw nb::python_error();
}

PyObject* matched(PyObject* self, const Definition& d, PyObject* const* args, int nargs, PyObject* kwnames) {
  Failure failure;
  for (const auto& o : d.overloads) {
    Binding binding;
    Failure why;
    if (!bind(*o, args, nargs, kwnames, d.method, binding, why)) {
      if (failure.kind == Failure::None && !o->deprecated) failure = why;
      continue;
    }
    PyObject* out = o->out >= 0 ? binding.slots[o->out] : Py_None;
    // What is written to a tensor has that tensor's type.
    std::optional<autocast::Off> off;
    if (out != Py_None && autocast::anywhere()) [[unlikely]]
      off.emplace();
    if (out != Py_None && is_tensor(out))
      follow_out(d.name, d.out_rule, tensor_of(out), o->dtype >= 0 ? &binding.slots[o->dtype] : nullptr,
                 o->device >= 0 ? &binding.slots[o->device] : nullptr);
    Match match;
    PyObject* const target = binding.slots[0];
    if (o->out >= 0) binding.slots[o->out] = nullptr;  // out is no argument of the function
    const std::span<PyObject* const> arguments(binding.slots, o->params.size());
    if (d.writes_first && is_tensor(target)) check_sharing(d.name, d.sharing, tensor_of(target), arguments.subspan(1));
    if (out != Py_None && is_tensor(out) && computed_into(d, *o, tensor_of(out), arguments)) return Py_NewRef(out);
    const nb::object copy = d.in_place ? copy_to_be_read(target, arguments.subspan(1)) : nb::object();
    if (copy.is_valid()) [[unlikely]]
      binding.slots[0] = copy.ptr();
    PyObject* result = o->thunk(o->state, binding.slots, match);
    if (result && o->deprecated) warn_of_deprecated(d, *o, result);
    if (result && d.in_place) return into_self(target, nb::steal(result));
    if (result) return out == Py_None ? result : with_out(d, out, arguments, nb::steal(result));
    if (match.bad < 0) return nullptr;  // a Python error
    if (failure.kind != Failure::Type && !o->deprecated) failure = {Failure::Type, match.bad, binding.slots[match.bad]};
  }
  if (PyObject* result = dispatch_torch_function(self, args, nargs, kwnames, true)) return result;
  raise_no_match(d, args, nargs, kwnames, failure);
  return nullptr;
}

// A function that looks into its arguments itself, as those of any number of tensors do, refuses them after they have matched: their classes are
// asked then.
PyObject* call(PyObject* self, const Definition& d, PyObject* const* args, int nargs, PyObject* kwnames) {
  try {
    return matched(self, d, args, nargs, kwnames);
  } catch (const TypeError&) {
    if (PyObject* result = dispatch_torch_function(self, args, nargs, kwnames, true)) return result;
    throw;
  }
}

// --- the objects
// --------------------------------------------------------------------------------------------------------------------------

struct FunctionObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  Definition* definition;
};

PyObject* function_call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) noexcept {
  const Definition& d = *reinterpret_cast<FunctionObject*>(self)->definition;
  const auto run = [&]() -> PyObject* {
    const int nargs = static_cast<int>(PyVectorcall_NARGS(nargsf));
    if (overrides_watched) [[unlikely]] {
      if (PyObject* result = dispatch_torch_function(self, args, nargs, kwnames, false)) return result;
      if (batches_watched && meets_batch(args, nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0)) && (!d.method || is_tensor(args[0])))
        return call_with_batch(self, d.name, args, nargs, kwnames, [&] { return call(self, d, args, nargs, kwnames); });
    }
    if (d.method && (nargs == 0 || !is_tensor(args[0]))) {
      if (PyObject* result = dispatch_torch_function(self, args, nargs, kwnames, true)) return result;
      throw TypeError("descriptor '{}' for 'Tensor' objects doesn't apply to a '{}' object", d.name,
                      nargs ? short_name(args[0]) : "missing");
    }
    return call(self, d, args, nargs, kwnames);
  };
  return guarded(run, d.name);
}

PyObject* method_get(PyObject* self, PyObject* object, PyObject*) {
  return object && object != Py_None ? PyMethod_New(self, object) : Py_NewRef(self);
}

const Definition& definition_of(PyObject* self) { return *reinterpret_cast<FunctionObject*>(self)->definition; }

PyObject* get_name(PyObject* self, void*) { return PyUnicode_FromString(definition_of(self).name); }
PyObject* get_qualname(PyObject* self, void*) {
  const Definition& d = definition_of(self);
  return PyUnicode_FromFormat(d.method || d.is_static ? "Tensor.%s" : "%s", d.name);
}
PyObject* get_module(PyObject*, void*) { return PyUnicode_FromString("naru._C"); }
PyObject* get_doc(PyObject* self, void*) {
  const Definition& d = definition_of(self);
  std::string text;
  for (const auto& o : d.overloads) {
    if (o->deprecated && d.overloads.size() > 1) continue;
    text += fmt::format("{}{}{} -> {}\n\n{}", text.empty() ? "" : "\n\n", d.name, text_of(*o, d.method), o->result, o->doc);
  }
  return with_example(text, fmt::format("{}{}", d.method ? "Tensor." : "", d.name).c_str());
}
std::string hint_of(const Param& p) { return std::string(p.hint) + (p.or_none ? " | None" : ""); }
// The signatures in the form nanobind's functions have them, for stubs: a tuple of (signature, docstring, defaults).
PyObject* get_signatures(PyObject* self, void*) {
  const Definition& d = definition_of(self);
  PyObject* list = PyTuple_New(static_cast<Py_ssize_t>(d.overloads.size()));
  if (!list) return nullptr;
  for (size_t k = 0; k < d.overloads.size(); ++k) {
    const Overload& o = *d.overloads[k];
    std::string s = fmt::format("def {}(", d.name);
    bool star = false;
    for (size_t i = 0; i < o.params.size(); ++i) {
      const Param& p = o.params[i];
      if (i) s += ", ";
      if (i == 0 && d.method) {
        s += "self";
        continue;
      }
      if (static_cast<int>(i) == o.varargs) {
        s += fmt::format("*{}: {}", printable(p.name), hint_of(p));
        star = true;
        continue;
      }
      if (p.keyword_only && !star) {
        s += "*, ";
        star = true;
      }
      s += fmt::format("{}: {}", printable(p.name), hint_of(p));
      if (p.fallback) s += " = " + p.text;
    }
    s += fmt::format(") -> {}", o.result);
    PyObject* item = Py_BuildValue("(ssO)", s.c_str(), o.doc, Py_None);
    if (!item) {
      Py_DECREF(list);
      return nullptr;
    }
    PyTuple_SET_ITEM(list, static_cast<Py_ssize_t>(k), item);
  }
  return list;
}
PyObject* function_repr(PyObject* self) {
  const Definition& d = definition_of(self);
  return d.method ? PyUnicode_FromFormat("<method '%s' of 'torch.Tensor' objects>", d.name)
                  : PyUnicode_FromFormat("<built-in function %s>", d.name);
}
// By name: pickled and deep-copied as a reference to the module's function.
PyObject* function_reduce(PyObject* self, PyObject*) {
  const Definition& d = definition_of(self);
  if (!d.method && !d.is_static) return PyUnicode_FromString(d.name);
  nb::object getattr = nb::module_::import_("builtins").attr("getattr");
  return Py_BuildValue("(O(Os))", getattr.ptr(), reinterpret_cast<PyObject*>(tensor_type), d.name);
}

PyGetSetDef function_getset[] = {{"__name__", get_name, nullptr, nullptr, nullptr},
                                 {"__qualname__", get_qualname, nullptr, nullptr, nullptr},
                                 {"__module__", get_module, nullptr, nullptr, nullptr},
                                 {"__doc__", get_doc, nullptr, nullptr, nullptr},
                                 {"__nb_signature__", get_signatures, nullptr, nullptr, nullptr},
                                 {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef function_methods[] = {{"__reduce__", function_reduce, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyMemberDef function_members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(FunctionObject, vectorcall), READONLY, nullptr},
                                  {nullptr, 0, 0, 0, nullptr}};

PyTypeObject* make_type(const char* name, bool method) {
  PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                         {Py_tp_repr, reinterpret_cast<void*>(function_repr)},
                         {Py_tp_getset, function_getset},
                         {Py_tp_methods, function_methods},
                         {Py_tp_members, function_members},
                         {method ? Py_tp_descr_get : 0, reinterpret_cast<void*>(method_get)},
                         {0, nullptr}};
  const unsigned flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE |
                         (method ? Py_TPFLAGS_METHOD_DESCRIPTOR : 0);
  PyType_Spec spec = {name, sizeof(FunctionObject), 0, flags, slots};
  return reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&spec)));
}

nb::object make_function(PyTypeObject* type, Definition* d) {
  d->sharing = sharing_of(d->name);
  d->writes_first = std::string_view(d->name).ends_with('_') && d->name[0] != '_';
  auto* f = PyObject_New(FunctionObject, type);
  check(reinterpret_cast<PyObject*>(f));
  f->vectorcall = function_call;
  f->definition = d;
  return nb::steal(reinterpret_cast<PyObject*>(f));
}

void add_to(Definitions& map, const char* name, const char* doc, bool method, bool is_static, std::string_view params, Thunk thunk,
            const void* state, const std::vector<TypeInfo>& types, const char* result, bool deprecated) {
  Definition*& d = map[name];
  if (!d)
    d = new Definition{
        .name = name, .method = method, .is_static = is_static, .out_rule = operators::record_of(name).out.rule, .overloads = {}};
  auto o = read_params(params, types);
  if (method) remove_out(*o);
  o->thunk = thunk;
  o->state = state;
  o->result = result;
  o->deprecated = deprecated;
  o->doc = doc;
  d->overloads.push_back(std::move(o));
}

}  // namespace

void add_overload(unsigned where, const char* name, const char* params, const char* doc, Thunk thunk, const void* state,
                  const std::vector<TypeInfo>& types, const char* result) {
  const bool old = where & kDeprecated;
  if (where & kFunction) add_to(functions(), name, doc, false, false, params, thunk, state, types, result, old);
  if (where & kMethod) add_to(methods(), name, doc, true, false, params, thunk, state, types, result, old);
  if (where & kStatic) add_to(methods(), name, doc, false, true, params, thunk, state, types, result, old);
}

namespace {
// A definition must not silently replace another, unless both are in-place forms that are made of the same function.
void add_made(Definitions& all, std::string_view name, Definition* d) {
  Definition*& at = all[name];
  if (at && !(at->in_place && d->in_place)) throw std::logic_error("bindings: " + std::string(name) + " is defined twice");
  at = d;
}
}  // namespace

void mark_elementwise(const char* name, ir::OpId id, int operands) {
  for (auto* map : {&functions(), &methods()})
    if (const auto it = map->find(name); it != map->end())
      for (const auto& o : it->second->overloads)
        if (o->out >= 0) o->elementwise = id, o->operands = operands;
}

void add_alias(const char* alias, const char* name) {
  for (auto* map : {&functions(), &methods()}) {
    const auto it = map->find(name);
    if (it == map->end()) continue;
    auto* d = new Definition{
        .name = alias, .method = it->second->method, .is_static = it->second->is_static, .out_rule = it->second->out_rule, .overloads = {}};
    for (const auto& o : it->second->overloads) d->overloads.push_back(std::make_unique<Overload>(*o));
    add_made(*map, alias, d);
  }
}

void add_in_place(const char* name) {
  for (auto* map : {&functions(), &methods()}) {
    const auto it = map->find(name);
    if (it == map->end()) continue;
    const auto* text = new std::string(std::string(name) + "_");  // the definition refers to it for ever
    auto* d = new Definition{.name = text->c_str(), .method = it->second->method, .in_place = true, .overloads = {}};
    for (const auto& o : it->second->overloads) {
      d->overloads.push_back(std::make_unique<Overload>(*o));
      if (!it->second->method) remove_out(*d->overloads.back());
    }
    add_made(*map, *text, d);
  }
}

void install_functions(nb::module_& m) {
  PyTypeObject* function_type = make_type("naru._C.function", false);
  PyTypeObject* method_type = make_type("naru._C.method", true);
  for (auto& [name, d] : functions()) check(PyObject_SetAttrString(m.ptr(), d->name, make_function(function_type, d).ptr()));
  PyObject* dict = tensor_type->tp_dict;
  for (auto& [name, d] : methods()) {
    nb::object f = make_function(d->is_static ? function_type : method_type, d);
    if (d->is_static) f = nb::steal(check(PyStaticMethod_New(f.ptr())));
    // Special names have slots behind them, which only setattr keeps up to date.
    if (name.starts_with("__"))
      check(PyObject_SetAttrString(reinterpret_cast<PyObject*>(tensor_type), d->name, f.ptr()));
    else
      check(PyDict_SetItemString(dict, d->name, f.ptr()));
  }
  PyType_Modified(tensor_type);
}

}  // namespace naru::py
