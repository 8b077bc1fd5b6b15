// Infers the address spaces of pointers in a CUDA source. CUDA's pointers are generic; the dialect's, as OpenCL's, have one address space
// each, which follows from the values that they are set to.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "kernels/source/cuda_source.h"

namespace naru::ir {
namespace {

enum class AddressSpace : uint8_t { Unknown, Tensor, Shared, Private, Constant };
constexpr const char* kBefore[] = {"", "", "shared ", "private ", "constant "};
constexpr const char* kNames[] = {"", "a tensor", "a shared array", "an item's own variables", "constants"};

struct Variable {
  std::string name;
  size_t at = 0, type = 0;  // tokens: its name, the first word of its type
  AddressSpace space = AddressSpace::Unknown;
  bool memory = false, pointer = false;  // pointer: its type gets the address space
  size_t from = 0, to = 0;               // tokens of its initialiser
};

struct Function {
  const CudaPart* part;
  std::vector<Variable> variables;                // in source order
  std::vector<std::optional<size_t>> parameters;  // per parameter: its index in variables, if it is a pointer
  std::vector<size_t> told;                       // per parameter: the token of the call that determined its address space
};

class Pointers {
 public:
  Pointers(Spelling& out, const std::vector<const CudaPart*>& parts, const std::vector<const CudaPart*>& constants,
           const std::set<std::string>& types)
      : out_(out), s_(out.source), types_(types) {
    for (const CudaPart* p : constants) declare(file_, p->begin, p->end, AddressSpace::Constant);
    for (const CudaPart* p : parts)
      if (p->body) functions_.push_back({p, {}, {}, {}});
    for (Function& f : functions_) read(f);
  }

  void spell() {
    for (bool changed = true; changed;) {
      changed = false;
      for (Function& f : functions_) changed |= flow(f);
    }
    for (const Function& f : functions_) {
      std::map<size_t, const Variable*> told;
      for (const Variable& v : f.variables) {
        if (!v.pointer) continue;
        const auto [at, fresh] = told.emplace(v.type, &v);
        if (!fresh && at->second->space != v.space)
          out_.refuse(v.at, fmt::format("`{}` leads to {} and `{}` to {}: declare them apart", at->second->name, name_of(at->second->space),
                                        v.name, name_of(v.space)));
        if (fresh) say(v.type, v.space);
      }
      casts(f);
    }
  }

 private:
  static const char* name_of(AddressSpace space) {
    return space == AddressSpace::Unknown ? "a tensor" : kNames[static_cast<size_t>(space)];
  }
  // Writes the address space before a type. The default is a tensor's memory, except for types that the source defines, which need an
  // explicit `global`.
  void say(size_t type, AddressSpace space) {
    const bool tensor = space == AddressSpace::Unknown || space == AddressSpace::Tensor;
    out_.before[type] = tensor && types_.contains(std::string(word(type))) ? "global " : kBefore[static_cast<size_t>(space)];
  }
  std::string_view word(size_t i) const { return i < s_.tokens().size() ? s_.word(i) : std::string_view(); }
  bool is_type(size_t i) const {
    return out_.is_name(i) && !out_.gone[i] && (is_type_word(word(i)) || word(i) == "auto" || types_.contains(std::string(word(i))));
  }
  static bool is_decoration(std::string_view w) {
    return w == "const" || w == "volatile" || w == "__restrict__" || w == "__restrict" || w == "restrict" || w == "static" || w == "extern";
  }

  // One past the expression that starts at i: the next comma, semicolon or closing bracket.
  size_t end_of(size_t i, size_t end) const {
    while (i < end && word(i) != "," && word(i) != ";" && word(i) != ")" && word(i) != "}" && word(i) != "]")
      i = word(i) == "(" || word(i) == "[" || word(i) == "{" ? std::min(s_.matching(i) + 1, end) : i + 1;
    return i;
  }

  // Parses the declaration that starts at i, if there is one, and adds its variables. Returns one past it, or i.
  size_t declare(std::vector<Variable>& list, size_t i, size_t end, AddressSpace arrays) const {
    const size_t begin = i, count = list.size();
    for (; i < end; ++i) {
      const std::string_view w = word(i);
      if (w == "__align__" || w == "alignas")
        i = s_.matching(i + 1);
      else if (!is_decoration(w) && !out_.gone[i] && w != "__shared__" && w != "__constant__" && w != "__device__")
        break;
    }
    const size_t type = i;
    while (i < end && (is_type(i) || is_decoration(word(i)))) ++i;
    if (i == type || !is_type(type)) return begin;
    const bool automatic = word(type) == "auto";
    for (;;) {
      bool star = false;
      for (; i < end && (word(i) == "*" || is_decoration(word(i))); ++i) star |= word(i) == "*";
      const std::string_view next = word(i + 1);
      if (!out_.is_name(i) || (next != "=" && next != ";" && next != "," && next != "[" && next != ")"))
        return list.size() == count ? begin : i;
      Variable v{std::string(word(i)), i, type};
      v.pointer = star && !automatic && arrays != AddressSpace::Constant;
      v.memory = star || automatic || next == "[";
      v.space = star || automatic ? AddressSpace::Unknown : arrays;
      for (++i; i < end && word(i) == "["; i = std::min(s_.matching(i) + 1, end)) {
      }
      if (word(i) == "=") {
        v.from = i + 1;
        i = v.to = end_of(i + 1, end);
      }
      list.push_back(v);
      if (word(i) != ",") return i;
      ++i;
    }
  }

  void read(Function& f) {
    const CudaPart& p = *f.part;
    for (size_t i = p.open + 1; i < p.close;) {
      const size_t last = end_of(i, p.close);
      const size_t before = f.variables.size();
      declare(f.variables, i, p.close + 1, AddressSpace::Private);
      // (A parameter ends at its comma.)
      f.variables.resize(std::min(f.variables.size(), before + 1));
      f.parameters.emplace_back();
      f.told.push_back(0);
      if (f.variables.size() > before) {
        Variable& v = f.variables.back();
        if (v.space == AddressSpace::Private && v.memory) v.space = AddressSpace::Unknown, v.pointer = true;  // float p[]
        if (v.pointer && p.kind == CudaPart::Kind::Kernel) v.space = AddressSpace::Tensor;
        if (v.pointer) f.parameters.back() = before;
      }
      i = last + 1;
    }
    for (size_t i = p.body + 1; i < p.end; ++i) {
      const std::string_view before = word(i - 1);
      if (out_.gone[i] || (before != ";" && before != "{" && before != "}" && before != "(" && before != ")" && before != "else" &&
                           before != "static" && before != "extern"))
        continue;
      bool shared = false;
      for (size_t k = i; word(k) == "__shared__" || is_decoration(word(k)); ++k) shared |= word(k) == "__shared__";
      if (const size_t end = declare(f.variables, i, p.end, shared ? AddressSpace::Shared : AddressSpace::Private); end > i) i = end - 1;
    }
  }

  const Variable* find(const Function& f, size_t use) const {
    const std::string_view name = word(use);
    const auto last = [&](const std::vector<Variable>& list) {
      const auto at = std::find_if(list.rbegin(), list.rend(), [&](const Variable& v) { return v.at < use && v.name == name; });
      return at == list.rend() ? nullptr : &*at;
    };
    const Variable* const own = last(f.variables);
    return own ? own : last(file_);
  }

  // The address space of an expression.
  AddressSpace root(const Function& f, size_t begin, size_t end) const {
    for (size_t i = begin; i < end; ++i) {
      if (word(i) == "[" && i > begin) {
        i = s_.matching(i);
      } else if (out_.is_name(i) && word(i - 1) != ".") {
        if (word(i + 1) == "(" && s_.is_function(word(i))) {
          i = s_.matching(i + 1);
          continue;
        }
        const Variable* const v = find(f, i);
        if (v && (v->memory || (word(i - 1) == "&" && (i == begin + 1 || !out_.is_name(i - 2))))) return v->space;
      }
    }
    return AddressSpace::Unknown;
  }

  bool flow(Function& f) {
    bool changed = false;
    for (Variable& v : f.variables) {
      if (v.space != AddressSpace::Unknown) continue;
      AddressSpace found = v.from ? root(f, v.from, v.to) : AddressSpace::Unknown;
      // Without an initialiser: use a later assignment.
      for (size_t i = v.at + 1; !v.from && found == AddressSpace::Unknown && i < f.part->end; ++i)
        if (word(i) == v.name && word(i + 1) == "=" && word(i + 2) != "=" && find(f, i) == &v)
          found = root(f, i + 2, end_of(i + 2, f.part->end));
      changed |= found != AddressSpace::Unknown;
      v.space = found;
    }
    for (size_t i = f.part->body; i < f.part->end; ++i)
      if (!out_.gone[i] && out_.is_name(i) && word(i + 1) == "(" && s_.is_function(word(i))) changed |= call(f, i);
    return changed;
  }

  bool call(const Function& from, size_t at) {
    bool changed = false;
    for (Function& f : functions_) {
      if (f.part->name != word(at) || f.part->at == at) continue;
      size_t i = at + 2;
      for (size_t n = 0; n < f.parameters.size() && i < s_.matching(at + 1); ++n) {
        const size_t end = end_of(i, s_.tokens().size());
        const AddressSpace space = f.parameters[n] ? root(from, i, end) : AddressSpace::Unknown;
        if (space != AddressSpace::Unknown) {
          Variable& v = f.variables[*f.parameters[n]];
          if (v.space == AddressSpace::Unknown) v.space = space, f.told[n] = at, changed = true;
          if (v.space != space)
            out_.refuse(at,
                        fmt::format("'{}' is given {} for `{}` here and {} on line {}: pointers of the dialect lead to one kind of memory. "
                                    "Write the function once for each",
                                    f.part->name, name_of(space), v.name, name_of(v.space), s_.line_at(s_.tokens()[f.told[n]].at)));
        }
        i = end + 1;
      }
    }
    return changed;
  }

  // (float*)p, reinterpret_cast<float*>(p)
  void casts(const Function& f) {
    for (size_t i = f.part->body; i < f.part->end; ++i) {
      if (out_.gone[i] || (word(i) != "(" && word(i) != "<")) continue;
      size_t k = i + 1;
      while (is_decoration(word(k))) ++k;
      const size_t type = k;
      while (is_type(k) || is_decoration(word(k))) ++k;
      if (k == type || word(k) != "*") continue;
      while (word(k) == "*" || is_decoration(word(k))) ++k;
      if (word(k) != (word(i) == "(" ? ")" : ">")) continue;
      const size_t end = word(i) == "<" ? s_.matching(k + 1) : end_of(k + 1, f.part->end);
      const AddressSpace space = root(f, k + 1, end);
      say(type, space);
    }
  }

  Spelling& out_;
  const KernelSource& s_;
  const std::set<std::string>& types_;
  std::vector<Variable> file_;
  std::vector<Function> functions_;
};

}  // namespace

void write_address_spaces(Spelling& spelling, const std::vector<const CudaPart*>& functions, const std::vector<const CudaPart*>& constants,
                          const std::set<std::string>& types) {
  Pointers(spelling, functions, constants, types).spell();
}

}  // namespace naru::ir
