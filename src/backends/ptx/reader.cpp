// Reads a module's text: declarations, functions and their instructions.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "backends/ptx/decode.h"
#include "backends/ptx/reader_names.h"
#include "naru/error.h"

namespace naru::backends::ptx {
namespace {

std::vector<std::string_view> parts_of(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(at);
    if (end != 0) parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// The name of a variable as the source has it: "tile" of "_ZZ5shiftE4tile".
std::string source_name(const std::string& name) {
  if (!name.starts_with("_Z")) return name;
  for (size_t at = 2; at < name.size(); ++at) {
    if (!std::isdigit(static_cast<unsigned char>(name[at])) || std::isdigit(static_cast<unsigned char>(name[at - 1]))) continue;
    size_t length = 0, end = at;
    while (end < name.size() && std::isdigit(static_cast<unsigned char>(name[end])))
      length = 10 * length + static_cast<size_t>(name[end++] - '0');
    if (length > 0 && end + length == name.size()) return name.substr(end);
  }
  return name;
}

uint64_t rounded_up(uint64_t n, uint64_t to) noexcept { return (n + to - 1) / to * to; }

class Reader final : public Scopes {
 public:
  Reader(std::string_view text, std::string_view name) : Scopes(text), wanted_(name) {
    program_->name = name;
    program_->lists.push_back(0);  // so that 0 is no list
    program_->predicates = 2;      // always true, always false
    scopes_.emplace_back();
  }

  std::unique_ptr<Program> read() {
    try {
      next();
      while (!token_.empty()) module_level();
    } catch (const NotImplementedError& e) {
      throw NotImplementedError("PTX of '{}', line {}: '{}' is not supported: {}", wanted_, line_, current_, e.what());
    } catch (const RuntimeError& e) {
      throw RuntimeError("PTX of '{}', line {}: {}{}", wanted_, line_, e.what(), current_.empty() ? "" : " ('" + current_ + "')");
    }
    if (!found_) throw RuntimeError("PTX: there is no kernel '{}'", wanted_);
    link();
    return std::move(program_);
  }

 private:
  struct FunctionFacts {
    uint32_t start = 0;
    bool read = false;
    std::vector<Symbol> results, parameters;
  };
  struct Place {
    uint32_t file = 0, line = 0, outer_file = 0, outer_line = 0;  // outer: where a function is called that has become part of the caller
  };
  struct PendingCall {
    uint32_t at;
    std::string function;
    std::vector<Symbol> results, arguments;
    uint32_t line;
  };
  struct PendingBranch {
    bool in_list;
    uint32_t at;
    std::string label;
    uint32_t line;
  };

  // --- declarations ---
  void module_level() {
    current_.clear();
    if (is(".version") || is(".target") || is(".address_size")) {
      skip_line();
    } else if (take(".file")) {
      const auto n = static_cast<size_t>(take_number());
      if (program_->files.size() <= n) program_->files.resize(n + 1);
      const std::string_view path = token_.substr(1, token_.size() - 2);
      program_->files[n] = path.substr(path.rfind('/') + 1);  // of the name that the compiler was given
      skip_line();
    } else if (is(".loc")) {
      location();
    } else if (take(".section")) {
      while (!is("{") && !token_.empty()) next();
      skip_braces();
    } else if (is(".entry") || is(".func")) {
      function();
    } else if (is(".visible") || is(".weak") || is(".extern") || is(".common")) {
      external_ = is(".extern");
      next();
      return;
    } else if (is(".shared") || is(".global") || is(".const")) {
      variable();
    } else if (is(".pragma") || is(".alias")) {
      while (!take(";") && !token_.empty()) next();
    } else if (is("@")) {  // @@DWARF
      skip_line();
    } else {
      throw NotImplementedError(fmt::format("'{}' at the level of a module", token_));
    }
    external_ = false;
  }

  void location() {  // .loc file line column [, function_name x, inlined_at file line column]
    const uint32_t on = line_;
    next();
    const auto file = static_cast<uint32_t>(take_number()), line = static_cast<uint32_t>(take_number());
    where_ = {file, line, 0, 0};
    while (!token_.empty() && line_ == on) {
      if (take("inlined_at")) {
        where_.outer_file = static_cast<uint32_t>(take_number()), where_.outer_line = static_cast<uint32_t>(take_number());
      } else {
        next();
      }
    }
  }

  struct Declared {
    std::string name;
    Type type = Type::B8;
    uint64_t align = 1, bytes = 0, count = 1;
    bool open = false;  // []
  };
  // Behind the space: .align n, .v2, the type, the name, [n].
  Declared declaration() {
    Declared d;
    bool aligned = false;
    uint64_t vector = 1;
    for (;;) {
      if (take(".align")) {
        d.align = static_cast<uint64_t>(take_number()), aligned = true;
      } else if (is(".ptr") || is(".global") || is(".shared") || is(".const") || is(".local") || is(".attribute") || is(".managed") ||
                 is(".noreturn")) {
        next();
      } else if (take(".v2")) {
        vector = 2;
      } else if (take(".v4")) {
        vector = 4;
      } else if (const Type t = token_.starts_with(".") ? type_of(token_.substr(1)) : Type::None; t != Type::None) {
        d.type = t;
        next();
      } else {
        break;
      }
    }
    d.name = take_word();
    while (take("[")) {
      if (take("]")) {
        d.open = true, d.count = 0;
        continue;
      }
      d.count *= static_cast<uint64_t>(take_number());
      expect("]");
    }
    const auto element = static_cast<uint64_t>(bytes_of(d.type)) * vector;
    if (!aligned) d.align = element;
    d.bytes = element * d.count;
    return d;
  }

  void variable() {
    const Space space = is(".shared") ? Space::Shared : is(".global") ? Space::Global : Space::Constant;
    next();
    const Declared d = declaration();
    Symbol s{Symbol::Variable, 0, 0, d.bytes, space};
    if (space == Space::Shared) {
      if (d.open) {
        program_->dynamic = true;
        dynamic_align_ = std::max(dynamic_align_, d.align);
        dynamic_names_.push_back(d.name);
        s.at = kOpen;
      } else {
        s.at = place_shared(d.bytes, d.align);
      }
    } else {
      if (external_) throw NotImplementedError("a variable of another module");
      const uint64_t at = rounded_up(program_->memory.size(), std::max<uint64_t>(d.align, 16));
      program_->memory.resize(at + d.bytes);
      s.at = at;
    }
    if (!d.open) program_->variables.push_back({source_name(d.name), space, s.at, d.bytes, d.align});
    scopes_.front()[d.name] = s;
    if (take("=")) {
      uint64_t at = s.at;
      initial(at, d.type, s.at + d.bytes);
    }
    expect(";");
  }
  // Between variables lie gaps that no access may touch. They keep what an address is modulo 128 bytes, by which banks are chosen.
  uint64_t place_shared(uint64_t bytes, uint64_t align) {
    const uint64_t real = rounded_up(program_->shared_bytes, align);
    program_->shared_bytes = static_cast<uint32_t>(real + bytes);
    const uint64_t base = rounded_up(std::max<uint64_t>(program_->shared_end, 0), 128) + 128 + real % 128;
    program_->shared_end = static_cast<uint32_t>(base + bytes);
    return base;
  }
  void initial(uint64_t& at, Type type, uint64_t end) {
    if (take("{")) {
      while (!take("}")) {
        initial(at, type, end);
        take(",");
      }
      return;
    }
    const auto bytes = static_cast<size_t>(bytes_of(type));
    if (at + bytes > end) throw RuntimeError("too many values for a variable");
    std::string word = is("-") ? (next(), "-" + take_word()) : take_word();
    bool generic = word == "generic";
    if (generic) {
      expect("(");
      word = take_word();
      expect(")");
    }
    if (const Symbol* s = find(word)) {
      if (bytes != 8 || (s->space != Space::Global && s->space != Space::Constant)) throw NotImplementedError("this address as a value");
      pointers_.emplace_back(static_cast<uint32_t>(at), static_cast<uint32_t>(s->at));
    } else if (is_float_text(word) || type == Type::F32 || type == Type::F64) {
      const double x = float_of(word);
      const auto f = static_cast<float>(x);
      if (bytes == 4)
        std::memcpy(&program_->memory[at], &f, 4);
      else
        std::memcpy(&program_->memory[at], &x, 8);
    } else {
      const int64_t n = number(word);
      std::memcpy(&program_->memory[at], &n, bytes);
    }
    at += bytes;
  }

  // (.param .b64 a, .param .b32 b): of a kernel, or of a function.
  std::vector<std::pair<std::string, Symbol>> parameters(bool entry) {
    std::vector<std::pair<std::string, Symbol>> found;
    if (!take("(")) return found;
    while (!take(")")) {
      if (take(",")) continue;
      if (take(".reg")) throw NotImplementedError("parameters in registers");
      expect(".param");
      const Declared d = declaration();
      if (entry) {
        const auto at = static_cast<uint32_t>(rounded_up(program_->parameter_bytes, d.align));
        program_->parameter_bytes = at + static_cast<uint32_t>(d.bytes);
        program_->parameters.push_back({at, static_cast<uint32_t>(d.bytes)});
        found.emplace_back(d.name, Symbol{Symbol::EntryParameter, at, 0, d.bytes, Space::Parameter});
      } else {
        found.emplace_back(d.name, argument(d));
      }
    }
    return found;
  }
  Symbol argument(const Declared& d) {
    const auto at = static_cast<uint32_t>(rounded_up(program_->argument_bytes, std::max<uint64_t>(d.align, 8)));
    program_->argument_bytes = at + static_cast<uint32_t>(d.bytes);
    return {Symbol::Argument, at, 0, d.bytes, Space::Argument};
  }

  void function() {
    const bool entry = is(".entry");
    next();
    if (entry && token_ != wanted_) {  // another kernel of the module
      while (!is("{") && !is(";") && !token_.empty()) next();
      if (!take(";")) skip_braces();
      return;
    }
    const auto results = entry ? std::vector<std::pair<std::string, Symbol>>() : parameters(false);
    const std::string name = take_word();
    const auto formals = parameters(entry);
    while (!is("{") && !is(";") && !token_.empty()) {
      if (take(".maxntid") || take(".reqntid")) {
        int all = 1;
        do all *= static_cast<int>(take_number());
        while (take(","));
        program_->most_threads = all;
      } else {
        next();
      }
    }
    if (!entry) {
      FunctionFacts& f = functions_[name];
      if (f.read) return static_cast<void>(take(";"));
      f.results.clear(), f.parameters.clear();
      for (const auto& [n, s] : results) f.results.push_back(s);
      for (const auto& [n, s] : formals) f.parameters.push_back(s);
    }
    if (take(";")) return;
    if (entry)
      found_ = true, program_->start = static_cast<uint32_t>(program_->code.size());
    else
      functions_[name].start = static_cast<uint32_t>(program_->code.size()), functions_[name].read = true;
    scopes_.emplace_back();
    for (const auto* list : {&results, &formals})
      for (const auto& [n, s] : *list) scopes_.back()[n] = s;
    in_entry_ = entry;
    labels_.clear(), branches_.clear(), tables_.clear();
    where_ = {};
    expect("{");
    int depth = 1;
    while (depth > 0) {
      if (token_.empty()) throw RuntimeError("a function does not end");
      if (take("{")) {
        scopes_.emplace_back(), ++depth;
      } else if (is("}")) {
        scopes_.pop_back(), --depth;
        next();
      } else {
        statement();
      }
    }
    // A function may end without ret or exit.
    Instruction end;
    end.control = entry ? Control::Exit : Control::Return, end.of = Class::Control, end.name = "ret";
    places_.push_back({});
    program_->code.push_back(end);
    for (const PendingBranch& b : branches_) {
      const auto at = labels_.find(b.label);
      if (at == labels_.end()) throw RuntimeError("there is no label '{}'", b.label);
      (b.in_list ? program_->lists[b.at] : program_->code[b.at].target) = at->second;
    }
  }

  void statement() {
    current_.clear();
    if (is(".loc")) return location();
    if (take(".reg")) {
      const Type type = type_of(token_.substr(1));
      next();
      do {
        const std::string name = take_word();
        int64_t count = -1;
        if (take("<")) {
          count = take_number();
          expect(">");
        }
        for (int64_t k = 0; k < (count < 0 ? 1 : count); ++k) {
          Symbol s;
          if (type == Type::Pred)
            s.kind = Symbol::Predicate, s.at = program_->predicates++;
          else
            s.bytes = bytes_of(type), s.at = take_register(s.bytes);
          scopes_.back()[count < 0 ? name : fmt::format("{}{}", name, k)] = s;
        }
      } while (take(","));
      return expect(";");
    }
    if (take(".param")) {
      const Declared d = declaration();
      scopes_.back()[d.name] = argument(d);
      return expect(";");
    }
    if (take(".local")) {
      const Declared d = declaration();
      const auto at = static_cast<uint32_t>(rounded_up(program_->local_bytes, std::max<uint64_t>(d.align, 16)));
      program_->local_bytes = at + static_cast<uint32_t>(d.bytes);
      scopes_.back()[d.name] = {Symbol::Local, at, 0, d.bytes, Space::Local};
      return expect(";");
    }
    if (is(".shared") || is(".global") || is(".const")) return variable();
    if (take(".branchtargets") || take(".calltargets")) {
      auto& list = tables_[last_label_];
      do list.push_back(take_word());
      while (take(","));
      return expect(";");
    }
    if (is(".pragma") || is(".callprototype")) {
      while (!take(";") && !token_.empty()) next();
      return;
    }
    if (take("@")) {
      guard_negated_ = take("!");
      guard_ = take_word();
    } else {
      const std::string word = take_word();
      if (take(":")) {
        labels_[word] = static_cast<uint32_t>(program_->code.size());
        last_label_ = word;
        return;
      }
      guard_.clear();
      return instruction(word);
    }
    instruction(take_word());
  }

  Arg operand() {
    Arg a;
    if (take("{") || is("(")) {
      a.kind = is("(") ? Arg::Kind::List : Arg::Kind::Vector;
      if (a.kind == Arg::Kind::List) next();
      const std::string_view end = a.kind == Arg::Kind::List ? ")" : "}";
      while (!take(end)) {
        if (token_.empty()) throw RuntimeError("'{}' is missing", end);
        a.parts.push_back(operand());
        take(",");
      }
      return a;
    }
    if (take("[")) {
      a.kind = Arg::Kind::Address;
      if (std::isdigit(static_cast<unsigned char>(token_[0])) || is("-"))
        a.offset = take_number();
      else
        a.word = take_word();
      while (is("+") || is("-")) {
        const bool minus = take("-");
        if (!minus) next();
        a.offset += minus ? -take_number() : take_number();
      }
      expect("]");
      return a;
    }
    a.negated = take("!");
    a.word = take("-") ? "-" + take_word() : take_word();
    if (take("|")) a.second = take_word();
    if (take("+")) a.offset = take_number();
    return a;
  }

  void instruction(const std::string& name) {
    current_ = name;
    std::vector<Arg> args;
    while (!take(";")) {
      if (token_.empty()) throw RuntimeError("';' is missing");
      args.push_back(operand());
      take(",");
    }
    Instruction i;
    i.name = keep(name);
    places_.push_back(where_);
    if (!guard_.empty()) {
      Arg g;
      g.word = guard_;
      i.guard = predicate(g), i.negated = guard_negated_;
    }
    const Words words = parts_of(name, '.');
    if (!control(i, words, args) && !addresses(i, words, args) && !decode_warp(i, words, args, *this) &&
        !decode_conversion(i, words, args, *this) && !decode_arithmetic(i, words, args, *this))
      throw NotImplementedError("there is no such instruction here. Please report the kernel");
    program_->code.push_back(i);
  }

  // The label that a branch leads to.
  void to_label(Instruction& i, const std::string& label) {
    static_cast<void>(i);
    branches_.push_back({false, static_cast<uint32_t>(program_->code.size()), label, line_});
  }

  bool control(Instruction& i, const Words& words, const std::vector<Arg>& args) {
    const std::string_view op = words[0];
    i.of = Class::Control;
    if (op == "bra") {
      i.control = Control::Branch;
      to_label(i, args.at(0).word);
      return true;
    }
    if (op == "brx") {
      i.control = Control::Table;
      i.a = source(args.at(0), Type::U32);
      const auto table = tables_.find(args.at(1).word);
      if (table == tables_.end()) throw RuntimeError("there is no table '{}'", args[1].word);
      i.count = static_cast<uint32_t>(table->second.size());
      for (const std::string& label : table->second) {
        add_to_list(i, {});
        branches_.push_back({true, static_cast<uint32_t>(program_->lists.size() - 1), label, line_});
      }
      return true;
    }
    if (op == "ret" || op == "exit") {
      i.control = op == "exit" || in_entry_ ? Control::Exit : Control::Return;
      return true;
    }
    if (op == "trap" || op == "brkpt") {
      i.control = Control::Trap;
      return true;
    }
    if (op == "call") {
      i.control = Control::Call;
      PendingCall call{static_cast<uint32_t>(program_->code.size()), {}, {}, {}, line_};
      size_t k = 0;
      const auto symbols = [&](const Arg& list) {
        std::vector<Symbol> out;
        for (const Arg& a : list.parts) {
          const Symbol* const s = find(a.word);
          if (!s || s->space != Space::Argument) throw NotImplementedError("an argument that is no .param");
          out.push_back(*s);
        }
        return out;
      };
      if (args.at(0).kind == Arg::Kind::List) call.results = symbols(args[k++]);
      call.function = args.at(k++).word;
      if (find(call.function)) throw NotImplementedError("calls through pointers");
      if (k < args.size() && args[k].kind == Arg::Kind::List) call.arguments = symbols(args[k]);
      calls_.push_back(std::move(call));
      return true;
    }
    if ((op == "bar" || op == "barrier") && !(words.size() > 1 && words[1] == "warp")) {
      i.of = Class::Synchronization;
      if (has(words, "cluster")) throw NotImplementedError("clusters");
      const bool reduces = has(words, "red");
      i.control = has(words, "arrive") ? Control::BlockArrive : Control::BlockBarrier;
      size_t first = reduces ? 1 : 0, last = reduces ? args.size() - 1 : args.size();
      i.a = source(args.at(first), Type::U32);
      i.count = last - first > 1 ? 1 : 0;
      if (i.count) i.b = source(args[first + 1], Type::U32);
      if (reduces) {
        i.mode = has(words, "popc") ? 1 : has(words, "and") ? 2 : 3;
        i.predicate = predicate(args.back()), i.predicate_negated = args.back().negated;
        if (i.mode == 1)
          i.d = destination(args[0], Type::U32);
        else
          i.d.at = predicate_destination(args[0].word);
      }
      return true;
    }
    return false;
  }

  // Instructions with addresses: memory, and conversions between address spaces.
  bool addresses(Instruction& i, const Words& words, const std::vector<Arg>& args) {
    const std::string_view op = words[0];
    const auto space = [&] {
      if (has(words, "global")) return Space::Global;
      if (has(words, "const")) return Space::Constant;
      if (has(words, "local")) return Space::Local;
      for (const std::string_view w : words)
        if (w.starts_with("shared"))
          return Space::Shared;
        else if (w.starts_with("param"))
          return Space::Parameter;
      return Space::Generic;
    };
    if (op == "cvta" || op == "isspacep") {
      const Space s = space();
      const Type type = op == "cvta" ? types_of(words).back() : Type::U64;
      if (bytes_of(type) != 8) throw NotImplementedError("addresses of 32 bits");
      i.a = source(args.at(1), type);
      i.offset = static_cast<int64_t>(s == Space::Shared      ? kSharedWindow
                                      : s == Space::Local     ? kLocalWindow
                                      : s == Space::Parameter ? kParameterWindow
                                                              : 0);
      if (op == "isspacep") {
        i.d.at = predicate_destination(args[0].word);
        i.run = [](Warp& w, const Instruction& j, Mask m) {
          const Vec<uint64_t> a = get<uint64_t>(w, j.a);
          Mask found = 0;
          for (int l = 0; l < kLanes; ++l) found |= Mask{(a.v[l] & kWindows) == static_cast<uint64_t>(j.offset)} << l;
          put_predicate(w, static_cast<int16_t>(j.d.at), found, m);
        };
        return true;
      }
      i.d = destination(args[0], type);
      const bool away = words[1] == "to";
      // Variables of parameters and generic addresses of them have their window already.
      if (away)
        i.run = [](Warp& w, const Instruction& j, Mask m) {
          Vec<uint64_t> a = get<uint64_t>(w, j.a);
          if (j.offset)
            for (uint64_t& x : a.v) x -= static_cast<uint64_t>(j.offset);
          put(w, j.d, a, m);
        };
      else
        i.run = [](Warp& w, const Instruction& j, Mask m) {
          Vec<uint64_t> a = get<uint64_t>(w, j.a);
          for (uint64_t& x : a.v) x |= static_cast<uint64_t>(j.offset);
          put(w, j.d, a, m);
        };
      return true;
    }
    const bool loads = op == "ld" || op == "ldu" || op == "atom", stores = op == "st" || op == "red";
    if (!loads && !stores) return decode_memory(i, words, args, *this);
    i.space = space();
    const size_t where = loads && !(op == "atom" && args.size() > 1 && args[0].kind == Arg::Kind::Address) ? 1 : 0;
    const Arg& address = args.at(where);
    if (address.kind != Arg::Kind::Address) throw RuntimeError("an address is expected");
    i.offset = address.offset;
    if (!address.word.empty()) {
      const Symbol* const s = find(address.word);
      if (!s) throw RuntimeError("there is no '{}'", address.word);
      if (s->kind == Symbol::Register) {
        i.a = {static_cast<int32_t>(s->at)}, i.count = static_cast<uint32_t>(s->bytes);
      } else if (s->space == Space::Global || s->space == Space::Constant) {
        i.a = address_of(*s, 0, 8), i.count = 8;
      } else {
        i.offset += static_cast<int64_t>(s->at);
        if (s->at == kOpen) i.offset = address.offset, opens_.push_back(static_cast<uint32_t>(program_->code.size()));
        i.space = s->space;
      }
    }
    return decode_memory(i, words, args, *this);
  }

  const char* keep(const std::string& name) {
    const auto [at, fresh] = kept_.try_emplace(name, nullptr);
    if (fresh) {
      program_->names.push_back(std::make_unique<std::string>(name));
      at->second = program_->names.back()->c_str();
    }
    return at->second;
  }

  // What is known only at the end: where functions and dynamic shared memory begin, and the addresses of variables.
  void link() {
    Program& p = *program_;
    // Of functions in CUDA's own headers the line that calls them is meant.
    for (size_t k = 0; k < p.code.size(); ++k) {
      const Place& at = places_[k];
      const bool own = at.outer_line == 0 || at.file >= p.files.size() || p.files[at.file].starts_with("kernel");
      p.code[k].file = own ? at.file : at.outer_file, p.code[k].line = own ? at.line : at.outer_line;
    }
    p.dynamic_at = static_cast<uint32_t>(place_shared(0, std::max<uint64_t>(dynamic_align_, 16)));
    p.shared_end = p.dynamic_at;
    for (const uint32_t at : opens_) p.code[at].offset += p.dynamic_at;
    // Constants that hold the marker are addresses of dynamic shared memory.
    for (const auto& [key, at] : constants_) {
      uint64_t value = 0;
      std::memcpy(&value, key.data(), key.size());
      if (value != kOpen) continue;
      value = p.dynamic_at;
      for (int l = 0; l < kLanes; ++l)
        std::memcpy(&p.constants[static_cast<size_t>(at) + static_cast<size_t>(l) * key.size()], &value, key.size());
    }
    const auto base = reinterpret_cast<uint64_t>(p.memory.data());
    for (const uint32_t at : addresses_)
      for (int l = 0; l < kLanes; ++l) {
        uint64_t value = 0;
        std::byte* const where = &p.constants[at + static_cast<size_t>(l) * 8];
        std::memcpy(&value, where, 8);
        value += base;
        std::memcpy(where, &value, 8);
      }
    for (const auto& [at, to] : pointers_) {
      const uint64_t value = base + to;
      std::memcpy(&p.memory[at], &value, 8);
    }
    for (const PendingCall& c : calls_) {
      const auto f = functions_.find(c.function);
      if (f == functions_.end() || !f->second.read)
        throw NotImplementedError("PTX of '{}', line {}: the function '{}' is not in the module", wanted_, c.line, c.function);
      Instruction& i = p.code[c.at];
      i.target = f->second.start;
      if (c.arguments.size() != f->second.parameters.size() || c.results.size() != f->second.results.size())
        throw RuntimeError("PTX of '{}', line {}: a call of '{}' with another number of arguments", wanted_, c.line, c.function);
      // (from, to, bytes) of each argument, then of each result.
      i.list = static_cast<uint32_t>(p.lists.size());
      i.count = static_cast<uint32_t>(c.arguments.size());
      i.offset = static_cast<int64_t>(c.results.size());
      const auto copies = [&](const Symbol& from, const Symbol& to) {
        for (const uint64_t n : {from.at, to.at, std::min(from.size, to.size)}) p.lists.push_back(static_cast<uint32_t>(n));
      };
      for (size_t k = 0; k < c.arguments.size(); ++k) copies(c.arguments[k], f->second.parameters[k]);
      for (size_t k = 0; k < c.results.size(); ++k) copies(f->second.results[k], c.results[k]);
    }
  }

  static constexpr uint64_t kOpen = 0x7ff0a0d0;  // stands for the beginning of dynamic shared memory

  const std::string wanted_;
  std::string current_, guard_, last_label_;
  bool guard_negated_ = false, external_ = false, found_ = false, in_entry_ = false;
  Place where_;
  std::vector<Place> places_;  // by instruction
  uint64_t dynamic_align_ = 1;
  std::vector<std::string> dynamic_names_;
  std::map<std::string, FunctionFacts> functions_;
  std::vector<PendingCall> calls_;
  std::vector<PendingBranch> branches_;
  std::map<std::string, uint32_t> labels_;
  std::map<std::string, std::vector<std::string>> tables_;
  std::map<std::string, const char*> kept_;
  std::vector<uint32_t> opens_;
  std::vector<std::pair<uint32_t, uint32_t>> pointers_;
};

}  // namespace

std::unique_ptr<Program> read_program(std::string_view text, std::string_view name) { return Reader(text, name).read(); }

}  // namespace naru::backends::ptx
