#include <fstream>
#include <iterator>

#include "naru/data.h"
#include "naru/ops.h"
#include "runtime/os/file_path.h"

namespace naru::data {

Tensor read_idx(const std::string& path) {
  std::ifstream file(runtime::file_path(path), std::ios::binary);
  if (!file) throw RuntimeError("Error opening images file at {}", path);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  // The header: two zeros, the type (8: bytes), the number of dimensions, and a 4-byte size for each.
  if (bytes.size() < 4 || byte(0) || byte(1) || byte(2) != 8 || byte(3) == 0)
    throw RuntimeError("{} is no idx file of bytes (it begins otherwise)", path);
  const size_t dims = byte(3), start = 4 + 4 * dims;
  Dims sizes;
  uint64_t total = 1;
  for (size_t d = 0; d < dims && bytes.size() >= start; ++d) {
    uint32_t n = 0;
    for (size_t i = 0; i < 4; ++i) n = n << 8 | byte(4 + 4 * d + i);
    sizes.push_back(n);
    if (n && total > bytes.size() / n) total = bytes.size() + 1;  // too large: avoids overflow; the check below fails
    total *= total > bytes.size() ? 1 : n;
  }
  if (sizes.size() != dims || bytes.size() - start != total)
    throw RuntimeError("{} is cut short, or too long: it has {} bytes behind the sizes {}", path,
                       bytes.size() < start ? 0 : bytes.size() - start, sizes.str());
  return from_data(bytes.data() + start, sizes, DType::U8, Options(Device(DeviceType::Cpu)));
}

}  // namespace naru::data
