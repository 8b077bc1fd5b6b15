// Loops of libraries on the threads for computation.
#include "backends/cpu/exec/thread_pool.h"
#include "naru/torch/registry.h"

namespace naru::library {
namespace {

thread_local int piece = -1;

struct PieceScope {
  int before = piece;
  explicit PieceScope(int64_t i) { piece = static_cast<int>(i); }
  ~PieceScope() { piece = before; }
};

}  // namespace

void parallel_for(int64_t begin, int64_t end, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
  const int64_t count = end - begin;
  if (count <= 0) return;
  const int64_t least = grain > 0 ? grain : 1, threads = cpu::num_threads();
  const int64_t each = std::max(least, (count + threads - 1) / threads);
  if (each >= count || piece >= 0) return body(begin, end);
  cpu::parallel_for((count + each - 1) / each, [&](int64_t i) {
    const PieceScope scope(i);
    const int64_t first = begin + i * each;
    body(first, std::min(end, first + each));
  });
}

int piece_number() noexcept { return piece < 0 ? 0 : piece; }

bool in_parallel_region() noexcept { return piece >= 0; }

}  // namespace naru::library
