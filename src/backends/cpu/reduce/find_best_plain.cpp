// find_best.h for any processor.
#include "backends/cpu/reduce/find_best.h"

#include <type_traits>

namespace naru::cpu::plain {
#include "backends/cpu/reduce/find_best.inc"
}  // namespace naru::cpu::plain
