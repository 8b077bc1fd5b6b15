#include "runtime/device/peer.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <mutex>
#include <tuple>

#include "naru/error.h"
#include "runtime/device/registry.h"
#include "runtime/memory/memory.h"
#include "runtime/queue/capture.h"
#include "runtime/queue/queue.h"

namespace naru::runtime {
namespace {

thread_local bool checking = false;

struct Found {
  std::mutex mutex;
  std::map<std::tuple<DeviceType, int, DeviceType, int>, bool> pairs;
};
Found& found() {
  static auto* f = new Found;
  return *f;
}

struct Checking {
  Checking() { checking = true; }
  ~Checking() { checking = false; }
};

bool arrives(Device from, Device to) {
  const Checking scope;
  constexpr size_t kBytes = 4096;
  const Device host(DeviceType::Cpu, 0);
  const Ref<Storage> sent = make_storage(host, kBytes), there = make_storage(from, kBytes), here = make_storage(to, kBytes),
                     got = make_storage(host, kBytes);
  for (size_t i = 0; i < kBytes; ++i) static_cast<uint8_t*>(sent->data)[i] = static_cast<uint8_t>(i * 151 + i / 256 + 7);
  std::memset(got->data, 0, kBytes);
  const auto copy = [](Queue& q, Storage& target, const Storage& source) {
    return q.submit(ir::CopyBytes{target.data, source.data, kBytes, target.device, source.device},
                    {{const_cast<Storage*>(&source)}, {&target}});
  };
  copy(queue_of(from), *there, *sent);
  Queue& q = queue_of(to);
  copy(q, *here, *there);
  q.stream().reach(copy(q, *got, *here));  // does not throw: errors of earlier work stay kept for the next wait
  return std::memcmp(sent->data, got->data, kBytes) == 0;
}

}  // namespace

bool checking_peers() noexcept { return checking; }

bool peer_works(Device from, Device to) {
  Backend& backend = backend_of(to.type);
  if (&backend != &backend_of(from.type) || !backend.can_access_peer(from, to)) return false;
  const auto key = std::tuple(from.type, int{from.index}, to.type, int{to.index});
  {
    const std::lock_guard lock(found().mutex);
    if (const auto it = found().pairs.find(key); it != found().pairs.end()) return it->second;
  }
  if (Capture* c = Capture::current())
    c->refuse(fmt::format("the first copy from {} to {} is checked; make one before the capture", from.str(), to.str()));
  const bool works = arrives(from, to);
  const std::lock_guard lock(found().mutex);
  found().pairs[key] = works;
  return works;
}

void forget_peers() {
  const std::lock_guard lock(found().mutex);
  found().pairs.clear();
}

}  // namespace naru::runtime
