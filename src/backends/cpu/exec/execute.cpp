#include "backends/cpu/exec/execute.h"

#include <cstring>

#include "backends/cpu/exec/instructions.h"
#include "backends/cpu/exec/layout.h"

namespace naru::cpu {

void run(const ir::CopyBytes& copy) {
  constexpr int64_t kPage = 4096;
  const auto bytes = static_cast<int64_t>(copy.bytes);
  char* const target = static_cast<char*>(copy.target);
  const char* const source = static_cast<const char*>(copy.source);
  if (bytes == 0 || target == source) return;
  // Move overlapping ranges (of one device) with a single memmove.
  if (target < source + bytes && source < target + bytes) {
    std::memmove(target, source, copy.bytes);
    return;
  }
  split(bytes, static_cast<double>(bytes) * 0.05, kPage,
        [=](int64_t begin, int64_t end) { std::memcpy(target + begin, source + begin, static_cast<size_t>(end - begin)); });
}

// On host memory there is no stream: the calls are done when it returns.
void run(const ir::Exchange& e) { e.communicator->enqueue(e.calls, 0); }

void execute(const ir::Instruction& instruction) {
  std::visit([](const auto& i) { run(i); }, instruction);
}

namespace {

class PreparedOther final : public Prepared {
 public:
  explicit PreparedOther(const ir::Instruction& instruction) : instruction_(instruction) {}
  void run() override { execute(instruction_); }

 private:
  const ir::Instruction& instruction_;
};

template <class I>
std::unique_ptr<Prepared> prepared_if_possible(const I& instruction) {
  if constexpr (requires { prepared(instruction); })
    return prepared(instruction);
  else
    return nullptr;
}

}  // namespace

PreparedList::PreparedList(std::span<const ir::Instruction> work) {
  for (const ir::Instruction& instruction : work) {
    auto p = std::visit([](const auto& i) { return prepared_if_possible(i); }, instruction);
    list_.push_back(p ? std::move(p) : std::make_unique<PreparedOther>(instruction));
  }
}
PreparedList::~PreparedList() = default;

void PreparedList::run() const {
  for (const auto& p : list_) p->run();
}

void prepare(const ir::Instruction& instruction) {
  std::visit(
      [](const auto& i) {
        if constexpr (requires { compile(i); }) compile(i);
      },
      instruction);
}

}  // namespace naru::cpu
