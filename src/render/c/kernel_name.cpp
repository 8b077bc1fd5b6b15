#include "render/c/kernel_name.h"

#include <array>
#include <cctype>
#include <utility>

namespace naru::render::c {
namespace {

constexpr size_t kMost = 63;

constexpr std::array kKinds = {
    "map",        "map_each",  "reduction", "strided_reduction", "tree",    "arg_reduction", "scan",       "check_index", "gather",
    "offsets",    "scatter",   "matmul",    "convolution",       "windows", "sort_keys",     "sort_group", "sort_step",   "sort_put",
    "sort_count", "sort_sums", "sort_move", "sort_select",       "nonzero", "rows",          "user"};
static_assert(kKinds.size() == static_cast<size_t>(Kind::User) + 1);

// In the order of DType.
constexpr const char* kTypes[] = {"bool", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"};

const char* short_name(DType t) noexcept {
  const auto i = static_cast<size_t>(t);
  return i < std::size(kTypes) ? kTypes[i] : "";
}

// The derivative "exp'a" becomes exp_da.
std::string identifier(std::string_view operation) {
  std::string text;
  for (const char c : operation)
    text += c == '\'' ? std::string("_d") : std::string(1, std::isalnum(static_cast<unsigned char>(c)) ? c : '_');
  return text;
}

// The range of the kernel's name in the text: a user kernel's name has a prefix, any other follows KERNEL(...).
std::pair<size_t, size_t> place_of_name(std::string_view text) {
  size_t begin = text.find(") naru_user_");
  if (begin == text.npos) {
    size_t kernel = text.find("KERNEL(");
    while (kernel != text.npos && kernel > 0 && text[kernel - 1] == ' ') kernel = text.find("KERNEL(", kernel + 1);  // its definition
    begin = kernel == text.npos ? kernel : text.find(") ", kernel);
  }
  if (begin == text.npos) return {0, 0};
  begin += 2;
  const size_t end = text.find('(', begin);
  return end == text.npos ? std::pair<size_t, size_t>{0, 0} : std::pair{begin, end};
}

}  // namespace

std::string kernel_name(const Key& key) {
  std::string name = std::string("naru_") + kKinds[static_cast<size_t>(key.kind)], type;
  if (const ir::Program* const p = key.program) {
    if (p->outputs_count > 0) type = std::string("_") + short_name(p->nodes[p->outputs[0]].out);
    for (size_t i = 0; i < p->nodes_count; ++i) {
      const std::string next = "_" + identifier(ir::op_table()[p->nodes[i].op].name);
      if (name.size() + next.size() + type.size() > kMost) break;
      name += next;
    }
  }
  return name + type;
}

std::string_view kernel_of_text(std::string_view text) {
  const auto [begin, end] = place_of_name(text);
  return text.substr(begin, end - begin);
}

std::string with_name(std::string text, std::string_view name) {
  const auto [begin, end] = place_of_name(text);
  return end - begin == 1 ? text.replace(begin, 1, name) : text;
}

}  // namespace naru::render::c
