// find_best.h for any processor.
#include "host/find_best.h"

#include <type_traits>

namespace naru::host::plain {
#include "host/find_best.inc"
}  // namespace naru::host::plain
