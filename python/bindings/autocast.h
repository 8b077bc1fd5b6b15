// Mixed precision: while a block of torch.autocast is open on a thread, calls from Python cast their tensor arguments first.
#pragma once

#include <atomic>
#include <string_view>
#include <vector>

#include "object.h"

namespace naru::py {

// What a function wants of its floating-point arguments: nothing, the block's 16-bit type, float32, the widest among
// them, or not to be called at all.
enum class CastRule : uint8_t { None, Lower, Float32, Widest, Refused };

// The rules for a function on the cpu and on the other kinds of devices.
struct CastRules {
  CastRule cpu = CastRule::None, others = CastRule::None;
};
CastRules cast_rules(std::string_view function);

// How many threads are in a block; 0 almost always, and then nobody looks further.
extern std::atomic<int> autocast_blocks;
inline bool autocast_anywhere() noexcept { return autocast_blocks.load(std::memory_order_relaxed) != 0; }

// Replaces the tensors among `slots` (lists and tuples of them, too) by cast ones as the rules say, which `owned` then
// holds. `keeps_dtype`: the caller has named a dtype for the result, which stands above the rule. Throws RuntimeError for
// a refused function.
// Returns the kind of device whose block decided, -1 for none.
int autocast_arguments(CastRules rules, const char* function, PyObject** slots, size_t count, bool keeps_dtype,
                       std::vector<nb::object>& owned);
// The same for the operands of an operator.
Tensor autocast_operand(CastRules rules, const Tensor& t);

void define_autocast();

}  // namespace naru::py
