#include "runtime/queue/check_operands.h"

#include <fmt/ranges.h>

#include <cstdint>
#include <limits>

#include "ir/inspect.h"
#include "naru/dtype.h"
#include "naru/error.h"

namespace naru::runtime {
namespace {

// Bytes relative to an operand's address: [begin, end).
struct Range {
  int64_t begin = 0, end = 0;
};

// The bytes that an operand addresses. On 64-bit overflow the range ends at the maximum, which no storage can contain.
Range range_of(const ir::OperandUse& use) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  int64_t least = -use.before, most = use.behind;
  const auto item = static_cast<int64_t>(size_of(use.dtype));
  for (size_t d = 0; d < use.sizes.size(); ++d) {
    if (use.sizes[d] == 0) return {};
    int64_t reach = 0;
    int64_t& side = use.strides[d] < 0 ? least : most;
    if (__builtin_mul_overflow(use.sizes[d] - 1, use.strides[d], &reach) || __builtin_add_overflow(side, reach, &side)) return {0, kMost};
  }
  Range r;
  if (__builtin_mul_overflow(least, item, &r.begin) || __builtin_mul_overflow(most, item, &r.end) ||
      __builtin_add_overflow(r.end, item, &r.end))
    return {0, kMost};
  return r;
}

// Bytes from the storage's start to the address.
int64_t offset_in(const Storage& s, const void* address) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(s.data));
}

bool holds(const Storage& s, const void* address, Range r) {
  const int64_t offset = offset_in(s, address), bytes = static_cast<int64_t>(s.bytes);
  return s.data && offset >= -r.begin && r.end <= bytes && offset <= bytes - r.end;
}

[[noreturn]] void refuse(const ir::Instruction& instruction, const void* address, const ir::OperandUse& use, Range r,
                         const Accesses& accesses) {
  std::string name, places;
  ir::each_name(instruction, [&](const char* n) { name += (name.empty() ? "" : ", ") + std::string(n); });
  const auto list = [&](const char* kind, const auto& storages) {
    for (const Storage* s : storages)
      places += fmt::format("{}{} of {} bytes, at {} from its start", places.empty() ? "" : "; ", kind, s->bytes, offset_in(*s, address));
  };
  list("read", accesses.reads), list("written", accesses.writes);
  throw RuntimeError(
      "{}: the {} lies outside of the storages {} (a fault of naru itself; please report it): {} of sizes [{}] and strides [{}], bytes "
      "[{}, "
      "{}) from its address, which is in storages {}",
      name.empty() ? "copy" : name, use.what, use.written ? "that are written" : "accessed", name_of(use.dtype),
      fmt::format("{}", fmt::join(use.sizes, ", ")), fmt::format("{}", fmt::join(use.strides, ", ")), r.begin, r.end,
      places.empty() ? "none" : places);
}

}  // namespace

void check_operands(const ir::Instruction& instruction, const Accesses& accesses) {
  ir::each_operand(instruction, [&](const void* address, const ir::OperandUse& use) {
    const Range r = range_of(use);
    if (r.begin == r.end) return;
    bool found = false;
    for (const Storage* s : accesses.writes) found = found || holds(*s, address, r);
    for (const Storage* s : accesses.reads) found = found || (!use.written && holds(*s, address, r));
    if (!found) refuse(instruction, address, use, r, accesses);
  });
}

}  // namespace naru::runtime
