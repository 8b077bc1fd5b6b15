#include "ir/bad_index.h"

#include <fmt/format.h>

#include "core/language.h"

namespace naru::ir {

std::string bad_index_text(const IndexOperand& index, const Dims& shape, int number, int64_t flat, int64_t value, const char* op,
                           uint32_t where) {
  Dims position(shape.size(), 0);
  for (int d = static_cast<int>(shape.size()) - 1; d >= 0; --d) {
    if (index.positions.strides[d] == 0) continue;
    position[d] = flat % shape[d];
    flat /= shape[d];
  }
  return fmt::format(
      "index {} is out of bounds for dimension {} with size {} ({}: wanted {} <= index < {}, got {} at position {} of "
      "the indices{})",
      value, index.dimension >= 0 ? index.dimension : number, index.bound, op, index.least(), index.bound, value, position.str(),
      where ? "; called at " + line_text(where) : "");
}

}  // namespace naru::ir
