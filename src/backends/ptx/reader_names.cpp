// What words of a module stand for: types, registers, variables and numbers.
#include "backends/ptx/reader_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>

#include "naru/error.h"

namespace naru::backends::ptx {
namespace {

constexpr std::pair<std::string_view, Type> kTypes[] = {
    {"b8", Type::B8},         {"b16", Type::B16}, {"b32", Type::B32}, {"b64", Type::B64},   {"u8", Type::U8},
    {"u16", Type::U16},       {"u32", Type::U32}, {"u64", Type::U64}, {"s8", Type::S8},     {"s16", Type::S16},
    {"s32", Type::S32},       {"s64", Type::S64}, {"f16", Type::F16}, {"bf16", Type::BF16}, {"f16x2", Type::F16x2},
    {"bf16x2", Type::BF16x2}, {"f32", Type::F32}, {"f64", Type::F64}, {"pred", Type::Pred}};

constexpr std::pair<std::string_view, Special> kSpecials[] = {{"%tid.x", Special::TidX},
                                                              {"%tid.y", Special::TidY},
                                                              {"%tid.z", Special::TidZ},
                                                              {"%ntid.x", Special::NtidX},
                                                              {"%ntid.y", Special::NtidY},
                                                              {"%ntid.z", Special::NtidZ},
                                                              {"%ctaid.x", Special::CtaidX},
                                                              {"%ctaid.y", Special::CtaidY},
                                                              {"%ctaid.z", Special::CtaidZ},
                                                              {"%nctaid.x", Special::NctaidX},
                                                              {"%nctaid.y", Special::NctaidY},
                                                              {"%nctaid.z", Special::NctaidZ},
                                                              {"%laneid", Special::Lane},
                                                              {"%warpid", Special::Warp},
                                                              {"%nwarpid", Special::Warps},
                                                              {"%smid", Special::Processor},
                                                              {"%nsmid", Special::Processors},
                                                              {"%gridid", Special::Grid},
                                                              {"%lanemask_eq", Special::LanesEqual},
                                                              {"%lanemask_lt", Special::LanesLess},
                                                              {"%lanemask_le", Special::LanesLessEqual},
                                                              {"%lanemask_gt", Special::LanesGreater},
                                                              {"%lanemask_ge", Special::LanesGreaterEqual},
                                                              {"WARP_SZ", Special::WarpSize},
                                                              {"%dynamic_smem_size", Special::DynamicShared},
                                                              {"%total_smem_size", Special::TotalShared}};

bool of_word(char c) noexcept { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' || c == '.'; }

}  // namespace

Type type_of(std::string_view word) noexcept {
  for (const auto& [name, type] : kTypes)
    if (name == word) return type;
  return Type::None;
}

int bytes_of(Type type) noexcept {
  switch (type) {
    case Type::B8:
    case Type::U8:
    case Type::S8:
      return 1;
    case Type::B16:
    case Type::U16:
    case Type::S16:
    case Type::F16:
    case Type::BF16:
      return 2;
    case Type::B32:
    case Type::U32:
    case Type::S32:
    case Type::F32:
    case Type::F16x2:
    case Type::BF16x2:
      return 4;
    case Type::B64:
    case Type::U64:
    case Type::S64:
    case Type::F64:
      return 8;
    default:
      return 0;
  }
}

std::vector<Type> types_of(const Words& words) {
  std::vector<Type> types;
  for (size_t k = 1; k < words.size(); ++k)
    if (const Type t = type_of(words[k]); t != Type::None) types.push_back(t);
  return types;
}

void Tokens::next() {
  for (;;) {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) line_ += text_[at_++] == '\n';
    if (text_.substr(at_).starts_with("//")) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (text_.substr(at_).starts_with("/*")) {
      const size_t end = text_.find("*/", at_);
      line_ += static_cast<uint32_t>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                                text_.begin() + static_cast<std::ptrdiff_t>(std::min(end, text_.size())), '\n'));
      at_ = end == std::string_view::npos ? text_.size() : end + 2;
    } else {
      break;
    }
  }
  if (at_ >= text_.size() || text_[at_] == '\0') {
    token_ = {};
    at_ = text_.size();
    return;
  }
  const size_t begin = at_;
  if (text_[at_] == '"') {
    at_ = std::min(text_.find('"', at_ + 1), text_.size() - 1) + 1;
  } else if (of_word(text_[at_])) {
    // "::" joins parts of names: L2::128B, shared::cta.
    while (at_ < text_.size() && (of_word(text_[at_]) || text_.substr(at_, 2) == "::")) at_ += text_[at_] == ':' ? 2 : 1;
  } else {
    ++at_;
  }
  token_ = text_.substr(begin, at_ - begin);
}

bool Tokens::take(std::string_view word) {
  if (!is(word)) return false;
  next();
  return true;
}

void Tokens::expect(std::string_view word) {
  if (!take(word)) throw RuntimeError("'{}' is expected, not '{}'", word, token_);
}

std::string Tokens::take_word() {
  std::string word(token_);
  next();
  return word;
}

void Tokens::skip_line() {
  const uint32_t line = line_;
  while (!token_.empty() && line_ == line) next();
}

void Tokens::skip_braces() {
  expect("{");
  for (int depth = 1; depth > 0 && !token_.empty(); next()) depth += is("{") ? 1 : is("}") ? -1 : 0;
}

int64_t Tokens::number(const std::string& word) const {
  std::string_view w = word;
  const bool negative = w.starts_with("-");
  if (negative) w.remove_prefix(1);
  if (w.ends_with("U")) w.remove_suffix(1);
  int base = 10;
  if (w.starts_with("0x") || w.starts_with("0X")) base = 16, w.remove_prefix(2);
  uint64_t n = 0;
  const auto [end, error] = std::from_chars(w.data(), w.data() + w.size(), n, base);
  if (error != std::errc() || end != w.data() + w.size()) throw RuntimeError("'{}' is neither a name nor a number", word);
  return static_cast<int64_t>(negative ? 0 - n : n);
}

int64_t Tokens::take_number() {
  const bool negative = take("-");
  const int64_t n = number(take_word());
  return negative ? -n : n;
}

Operand Scopes::source(const Arg& arg, Type type) {
  if (arg.kind != Arg::Kind::Word) throw RuntimeError("a register or a number is expected");
  if (const Symbol* s = find(arg.word)) {
    if (s->kind == Symbol::Register) return check_size(*s, arg.word, type);
    return address_of(*s, arg.offset, bytes_of(type));
  }
  if (const auto special = special_of(arg.word, bytes_of(type))) return *special;
  return immediate(arg.word, type);
}

Operand Scopes::destination(const Arg& arg, Type type) {
  if (arg.word == "_") return {static_cast<int32_t>(take_register(bytes_of(type)))};
  const Symbol* const s = find(arg.word);
  if (arg.kind != Arg::Kind::Word || !s || s->kind != Symbol::Register) throw RuntimeError("'{}' is no register", arg.word);
  return check_size(*s, arg.word, type);
}

Operand Scopes::any_register(const std::string& word, int& bytes) {
  const Symbol* const s = find(word);
  if (!s)
    if (const auto special = special_of(word, 4)) return bytes = 4, *special;
  if (!s || s->kind != Symbol::Register) throw RuntimeError("'{}' is no register", word);
  bytes = s->bytes;
  return {static_cast<int32_t>(s->at)};
}

bool Scopes::is_register(const std::string& word) const {
  const Symbol* const s = find(word);
  return (s && s->kind == Symbol::Register) || (!s && !word.empty() && word[0] == '%');
}

int16_t Scopes::predicate(const Arg& arg) {
  if (const Symbol* s = find(arg.word)) {
    if (s->kind != Symbol::Predicate) throw RuntimeError("'{}' is no predicate", arg.word);
    return static_cast<int16_t>(s->at);
  }
  return number(arg.word) != 0 ? 0 : 1;
}

int16_t Scopes::predicate_destination(const std::string& word) {
  if (word == "_") return static_cast<int16_t>(program_->predicates++);
  const Symbol* const s = find(word);
  if (!s || s->kind != Symbol::Predicate) throw RuntimeError("'{}' is no predicate", word);
  return static_cast<int16_t>(s->at);
}

void Scopes::add_to_list(Instruction& i, Operand element) {
  if (i.list == 0) i.list = static_cast<uint32_t>(program_->lists.size());
  program_->lists.push_back(static_cast<uint32_t>(element.at));
}

const Scopes::Symbol* Scopes::find(const std::string& word) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
    if (const auto at = scope->find(word); at != scope->end()) return &at->second;
  return nullptr;
}

Operand Scopes::check_size(const Symbol& s, const std::string& word, Type type) {
  if (s.bytes != bytes_of(type))
    throw RuntimeError("register '{}' has {} bytes, and the instruction's type {}", word, s.bytes, bytes_of(type));
  return {static_cast<int32_t>(s.at)};
}

uint32_t Scopes::take_register(int bytes) {
  const uint32_t at = program_->register_bytes;
  program_->register_bytes += static_cast<uint32_t>(bytes * kLanes);
  return at;
}

Operand Scopes::constant(const void* value, int bytes) {
  const std::string key(static_cast<const char*>(value), static_cast<size_t>(bytes));
  const auto [at, fresh] = constants_.emplace(key, static_cast<int32_t>(program_->constants.size()));
  if (fresh)
    for (int l = 0; l < kLanes; ++l)
      program_->constants.insert(program_->constants.end(), static_cast<const std::byte*>(value),
                                 static_cast<const std::byte*>(value) + bytes);
  return {~at->second};
}

double Scopes::float_of(const std::string& word) {
  const bool negative = word.starts_with("-");
  const std::string w = negative ? word.substr(1) : word;
  double x = 0;
  if (w.starts_with("0f") || w.starts_with("0F"))
    x = static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(std::stoul(w.substr(2), nullptr, 16))));
  else if (w.starts_with("0d") || w.starts_with("0D"))
    x = std::bit_cast<double>(static_cast<uint64_t>(std::stoull(w.substr(2), nullptr, 16)));
  else
    x = std::stod(w);
  return negative ? -x : x;
}

bool Scopes::is_float_text(const std::string& word) noexcept {
  const std::string_view w = word.starts_with("-") ? std::string_view(word).substr(1) : std::string_view(word);
  return w.size() > 2 && w[0] == '0' && (w[1] == 'f' || w[1] == 'F' || w[1] == 'd' || w[1] == 'D');
}

Operand Scopes::immediate(const std::string& word, Type type) {
  const bool floats = type == Type::F32 || type == Type::F64;
  if (is_float_text(word)) {  // the bits as they are: of a NaN, too
    const bool negative = word[0] == '-', narrow = std::tolower(word[negative + 1]) == 'f';
    uint64_t bits = std::stoull(word.substr(2 + negative), nullptr, 16);
    if (bytes_of(type) == (narrow ? 4 : 8)) {
      if (negative) bits ^= uint64_t{1} << (narrow ? 31 : 63);
      return constant(&bits, bytes_of(type));
    }
    const double x = float_of(word);
    if (type == Type::F32) {
      const auto f = static_cast<float>(x);
      return constant(&f, 4);
    }
    if (type == Type::F64) return constant(&x, 8);
    throw RuntimeError("a float where an integer is expected");
  }
  if (floats) {
    const double x = float_of(word);
    const auto f = static_cast<float>(x);
    return type == Type::F32 ? constant(&f, 4) : constant(&x, 8);
  }
  const int64_t n = number(word);
  return constant(&n, bytes_of(type));
}

std::optional<Operand> Scopes::special_of(const std::string& word, int bytes) {
  if (word.empty() || (word[0] != '%' && word != "WARP_SZ")) return std::nullopt;
  for (const auto& [name, special] : kSpecials) {
    if (name != word) continue;
    const auto key = std::pair(special, bytes);
    const auto [at, fresh] = specials_.try_emplace(key);
    if (fresh) {
      at->second = {static_cast<int32_t>(take_register(bytes))};
      program_->specials.emplace_back(special, at->second);
      special_bytes_.push_back(bytes);
    }
    if (bytes != 4) throw NotImplementedError(fmt::format("the register {} in {} bits", word, 8 * bytes));
    return at->second;
  }
  throw NotImplementedError(fmt::format("the register {}", word));
}

Operand Scopes::address_of(const Symbol& s, int64_t offset, int bytes) {
  uint64_t value = s.at + static_cast<uint64_t>(offset);
  switch (s.space) {
    case Space::Shared:
    case Space::Local:
      break;
    case Space::Parameter:
      value |= kParameterWindow;
      break;
    case Space::Global:
    case Space::Constant: {
      if (bytes != 8) throw NotImplementedError("an address of 32 bits");
      // Each has a constant of its own, to which the address of the memory is added at the end.
      const auto at = static_cast<int32_t>(program_->constants.size());
      for (int l = 0; l < kLanes; ++l) {
        const auto* const p = reinterpret_cast<const std::byte*>(&value);
        program_->constants.insert(program_->constants.end(), p, p + 8);
      }
      addresses_.push_back(static_cast<uint32_t>(at));
      return {~at};
    }
    default:
      throw NotImplementedError("the address of such a name");
  }
  return constant(&value, bytes);
}

}  // namespace naru::backends::ptx
