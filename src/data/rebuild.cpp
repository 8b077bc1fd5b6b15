#include "data/rebuild.h"

#include <cstdint>

#include "naru/ops.h"

namespace naru::data {
namespace {

// The number of elements that a storage needs. Products cannot overflow: each step is bounded first.
int64_t reach(const Dims& size, const Dims& stride, int64_t offset) {
  __int128 last = offset, count = 1;
  bool good = size.size() == stride.size() && offset >= 0, empty = false;
  for (size_t i = 0; good && i < size.size(); ++i) {
    good = size[i] >= 0 && stride[i] >= 0;
    empty = empty || size[i] == 0;
    last += static_cast<__int128>(size[i] - 1) * stride[i];
    count *= size[i] > 0 ? size[i] : 1;
    good = good && count <= INT64_MAX && last < INT64_MAX;
  }
  if (!good)
    throw ValueError("a stored tensor has size {}, stride {}, offset {}, which no tensor can have", size.str(), stride.str(), offset);
  return empty ? 0 : static_cast<int64_t>(last) + 1;
}

}  // namespace

Tensor laid_over(const Tensor& base, const Dims& size, const Dims& stride, int64_t offset) {
  if (reach(size, stride, offset) > base.numel())
    throw ValueError("a stored tensor of size {}, stride {} and offset {} reaches beyond its storage of {} elements", size.str(),
                     stride.str(), offset, base.numel());
  return base.as_strided(size, stride, offset).detach();
}

Tensor without_elements(DType dtype, const Dims& size, const Dims& stride) {
  reach(size, stride, 0);
  return empty_strided(size, stride, Options(dtype, Device(DeviceType::Meta)));
}

}  // namespace naru::data
