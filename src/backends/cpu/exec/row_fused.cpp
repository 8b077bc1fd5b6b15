// Reductions and elementwise work over the same rows, a few rows at a time.
#include <algorithm>

#include "backends/cpu/exec/instructions.h"
#include "backends/cpu/exec/layout.h"
#include "ir/reduce.h"

namespace naru::cpu {
namespace {

// Elements of rows that are taken together: their operands stay in the second cache, and memory is read in long pieces
// (4096 elements, which the first cache holds, are 10 % slower).
constexpr int64_t kTogether = 16384;

}  // namespace

void run(const ir::RowFused& w) {
  const bool* const only = static_cast<const bool*>(w.only);
  if (only && std::find(only, only + w.rows, true) == only + w.rows) return;
  std::vector<std::unique_ptr<RowPart>> parts;
  double time = 0;
  int64_t unit = 1, longest = 1;
  const void* kept = nullptr;
  for (const ir::RowFused::Part& p : w.parts) {
    std::visit(
        [&](const auto& work) {
          longest = std::max(longest, product(work.shape) / w.rows);
          parts.push_back(row_part(work, {w.rows, kept, p.kept != nullptr}));
        },
        p.work);
    if (p.kept) kept = p.kept;
    time += parts.back()->nanoseconds();
    // The rows of a chunk are reduced by one thread, in order.
    if (parts.back()->reduces_rows()) unit = ir::kStridedChunk;
  }
  const int64_t together = std::clamp<int64_t>(kTogether / longest, 1, ir::kStridedChunk);
  split((w.rows + unit - 1) / unit, time, 1, [&](int64_t begin, int64_t end) {
    struct alignas(64) Line {
      char bytes[64];
    };
    const size_t lines = kept ? static_cast<size_t>(together * longest) / 8 + 1 : 0;
    const std::unique_ptr<Line[]> values(lines ? new Line[lines] : nullptr);
    const int64_t last = std::min(end * unit, w.rows);
    for (int64_t row = begin * unit; row < last;) {
      if (only && !only[row]) {
        ++row;
        continue;
      }
      const int64_t chunk_end = unit == 1 ? last : std::min(last, (row / unit + 1) * unit);
      int64_t until = std::min(row + together, chunk_end);
      if (only) until = std::find(only + row, only + until, false) - only;
      for (const auto& part : parts) part->run(row, until, reinterpret_cast<char*>(values.get()));
      row = until;
    }
  });
  for (const auto& part : parts) part->finish();
}

}  // namespace naru::cpu
