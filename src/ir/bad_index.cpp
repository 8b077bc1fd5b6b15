#include "ir/bad_index.h"

#include <fmt/format.h>

#include "core/language.h"
#include "naru/error.h"

namespace naru::ir {

std::exception_ptr bad_index(const IndexOperand& index, const Dims& shape, int number, int64_t flat, int64_t value, const char* op,
                             uint32_t where) {
  Dims position(shape.size(), 0);
  for (int d = static_cast<int>(shape.size()) - 1; d >= 0; --d) {
    if (index.positions.strides[d] == 0) continue;
    position[d] = flat % shape[d];
    flat /= shape[d];
  }
  const std::string text = fmt::format(
      "index {} is out of bounds for dimension {} with size {} ({}: wanted {} <= index < {}, got {} at position {} of "
      "the indices{})",
      value, index.dimension >= 0 ? index.dimension : number, index.bound, op, index.least(), index.bound, value, position.str(),
      where ? "; called at " + line_text(where) : "");
  return index.raises == BadIndex::RuntimeError ? std::make_exception_ptr(RuntimeError("{}", text))
                                                : std::make_exception_ptr(IndexError("{}", text));
}

}  // namespace naru::ir
