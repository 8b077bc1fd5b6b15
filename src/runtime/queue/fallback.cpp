#include "runtime/queue/fallback.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <string_view>

#include "core/device_kinds.h"
#include "core/language.h"
#include "ir/inspect.h"
#include "naru/error.h"
#include "runtime/device/registry.h"
#include "runtime/memory/memory.h"
#include "runtime/queue/streams.h"

namespace naru {
namespace {

struct Uses {
  std::mutex mutex;
  std::map<std::pair<std::string, DeviceType>, FallbackUse> by_op;
  std::set<std::pair<std::string, DeviceType>> warned;
};
Uses& uses() {
  static auto* u = new Uses;
  return *u;
}

constexpr int kUnset = -1;
std::atomic<int> chosen{kUnset};

}  // namespace

FallbackPolicy fallback_policy(DeviceType kind) {
  if (const int set = chosen.load(); set != kUnset) return static_cast<FallbackPolicy>(set);
  if (const char* text = std::getenv("NARU_FALLBACK"); text && *text) {
    const std::string_view word = text;
    if (word == "error") return FallbackPolicy::Error;
    if (word == "warn") return FallbackPolicy::Warn;
    if (word == "count") return FallbackPolicy::Count;
    throw RuntimeError("NARU_FALLBACK: wanted error, warn or count, got '{}'", word);
  }
  const char* variable = kind_of(kind).fallback;
  const char* text = variable ? std::getenv(variable) : nullptr;
  return text && std::string_view(text) == "1" ? FallbackPolicy::Warn : FallbackPolicy::Error;
}

std::optional<FallbackPolicy> set_fallback_policy(std::optional<FallbackPolicy> policy) {
  const int before = chosen.exchange(policy ? static_cast<int>(*policy) : kUnset);
  if (before == kUnset) return {};
  return static_cast<FallbackPolicy>(before);
}

std::vector<FallbackUse> fallback_report() {
  std::vector<FallbackUse> list;
  {
    const std::lock_guard lock(uses().mutex);
    for (const auto& [key, use] : uses().by_op) list.push_back(use);
  }
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.milliseconds > b.milliseconds; });
  return list;
}

void reset_fallback_report() {
  const std::lock_guard lock(uses().mutex);
  uses().by_op.clear();
  uses().warned.clear();
}

namespace runtime {

const char* unsupported_in(const Capabilities& capabilities, const ir::Instruction& instruction) {
  const char* found = nullptr;
  ir::each_name(instruction, [&](const char* name) {
    if (!found && !capabilities.supports(name)) found = name;
  });
  return found;
}

const char* unsupported_in(const Capabilities& capabilities, ir::OpId id) {
  const char* name = ir::op_table()[id].name;
  return capabilities.supports(name) ? nullptr : name;
}

void note_unsupported(Device device, const char* op) {
  const FallbackPolicy policy = fallback_policy(device.type);
  const DeviceKind& kind = kind_of(device.type);
  if (policy == FallbackPolicy::Error)
    throw NotImplementedError(
        "The operator 'aten::{}' is not currently implemented for the {} device. ({} does not support it. To run it on the cpu, with "
        "copies there and "
        "back, set the environment variable {}, or call {})",
        op, kind.label, device.str(), kind.fallback ? fmt::format("{}=1", kind.fallback) : "NARU_FALLBACK=warn",
        spelled("set_fallback_policy(FallbackPolicy::Warn)", "naru.fallback.set_policy('warn')"));
  if (policy != FallbackPolicy::Warn) return;
  {
    const std::lock_guard lock(uses().mutex);
    if (!uses().warned.emplace(op, device.type).second) return;
  }
  warn(fmt::format(
      "The operator 'aten::{}' is not currently supported on the {} backend and will fall back to run on the CPU. This may have "
      "performance implications. ({} tells how much)",
      op, kind.label, spelled("fallback_report()", "naru.fallback.report()")));
}

void run_on_host(Queue& queue, ir::Instruction instruction, const Accesses& accesses, const char* op) {
  const auto start = std::chrono::steady_clock::now();
  const Device host(DeviceType::Cpu, 0);
  struct Pair {
    Storage* there;
    Ref<Storage> here;
  };
  std::vector<Pair> pairs;
  uint64_t bytes = 0, seq = 0;
  const auto note = [&] {
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    const std::lock_guard lock(uses().mutex);
    FallbackUse& use = uses().by_op[{op, queue.device().type}];
    use.op = op, use.kind = queue.device().type;
    ++use.calls, use.bytes += bytes, use.milliseconds += time.count();
  };
  if (queue.capabilities().unified_memory) {
    queue.stream().synchronize(queue.stream().submitted());
    queue_of(host, 0).submit(std::move(instruction), accesses);
    return note();
  }
  const auto here = [&](Storage* s) -> Storage* {
    for (const Pair& p : pairs)
      if (p.there == s) return p.here.get();
    pairs.push_back({s, make_storage(host, s->bytes)});
    Storage* copy = pairs.back().here.get();
    if (s->bytes == 0) return copy;
    seq = queue.submit(ir::CopyBytes{copy->data, s->data, s->bytes, host, s->device}, {{s}, {copy}});
    bytes += s->bytes;
    return copy;
  };
  Accesses moved;
  for (Storage* s : accesses.reads) moved.reads.push_back(here(s));
  for (Storage* s : accesses.writes) moved.writes.push_back(here(s));
  queue.stream().synchronize(seq);
  ir::each_operand(instruction, [&](void*& address, const ir::OperandUse&) {
    char* const p = static_cast<char*>(address);
    for (const Pair& pair : pairs) {
      char* const base = static_cast<char*>(pair.there->data);
      if (p >= base && p < base + pair.there->bytes) {
        address = static_cast<char*>(pair.here->data) + (p - base);
        return;
      }
    }
    throw RuntimeError("fallback of {}: an operand is not in any of the tensors it was given", op);
  });
  queue_of(host, 0).submit(std::move(instruction), moved);
  for (size_t i = 0; i < accesses.writes.size(); ++i) {
    Storage *s = accesses.writes[i], *copy = moved.writes[i];
    if (s->bytes == 0) continue;
    seq = queue.submit(ir::CopyBytes{s->data, copy->data, s->bytes, s->device, host}, {{copy}, {s}});
    bytes += s->bytes;
  }
  queue.stream().synchronize(seq);
  note();
}

void require_type(Device device, DType type, const char* op) {
  if (queue_of(device).capabilities().supports(storage_type(real_of(type)))) return;
  const std::string_view name = name_of(type);
  if (const char* words = kind_of(device.type).no_dtype)
    throw TypeError("{} ({}, on {})", fmt::format(fmt::runtime(words), name), op, device.str());
  throw TypeError("{}: device '{}' has no {}. Please use float32 instead, as in {}", op, device.str(), name,
                  program_in_python() ? fmt::format("x.to('{}', naru.float32)", device.str()) : spelled_move("x.to(DType::F32)", device));
}

}  // namespace runtime
}  // namespace naru
