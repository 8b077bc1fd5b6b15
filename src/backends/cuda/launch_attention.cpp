// Attention on a stream: the call of cuDNN, and memory for what it keeps between its kernels.
#include "backends/cuda/launcher.h"

namespace naru::backends::cuda {

void LibraryLauncher::attend(const ir::Attention& op) {
  Attentions& attentions = device_.attentions();
  const Attentions::Room room = attentions.room(op);
  const auto memory = [&](size_t bytes) { return bytes > 0 ? scratch(bytes) : nullptr; };
  void *const workspace = memory(room.plan), *const sums = memory(room.sums), *const query = memory(room.query);
  if (!only_prepares_) attentions.start(op, workspace, sums, query, stream_);
}

}  // namespace naru::backends::cuda
