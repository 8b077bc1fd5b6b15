#include "host/execute.h"

#include <cstring>

#include "host/instructions.h"
#include "host/layout.h"

namespace naru::host {

void run(const ir::CopyBytes& copy) {
  constexpr int64_t kPage = 4096;
  const auto bytes = static_cast<int64_t>(copy.bytes);
  char* const target = static_cast<char*>(copy.target);
  const char* const source = static_cast<const char*>(copy.source);
  if (bytes == 0 || target == source) return;
  // Overlapping ranges (within one device) are moved in one piece.
  if (target < source + bytes && source < target + bytes) {
    std::memmove(target, source, copy.bytes);
    return;
  }
  split(bytes, static_cast<double>(bytes) * 0.05, kPage,
        [=](int64_t begin, int64_t end) { std::memcpy(target + begin, source + begin, static_cast<size_t>(end - begin)); });
}

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

}  // namespace

PreparedList::PreparedList(std::span<const ir::Instruction> work) {
  for (const ir::Instruction& instruction : work) {
    std::unique_ptr<Prepared> p;
    if (const auto* map = std::get_if<ir::Map>(&instruction)) p = prepared(*map);
    if (const auto* reduce = std::get_if<ir::Reduce>(&instruction)) p = prepared(*reduce);
    if (const auto* product = std::get_if<ir::MatMul>(&instruction)) p = prepared(*product);
    list_.push_back(p ? std::move(p) : std::make_unique<PreparedOther>(instruction));
  }
}
PreparedList::~PreparedList() = default;

void PreparedList::run() const {
  for (const auto& p : list_) p->run();
}

void prepare(const ir::Instruction& instruction) {
  if (const auto* k = std::get_if<ir::UserKernel>(&instruction)) prepare(*k);
}

}  // namespace naru::host
