// Runs instructions on storages of any device, without the operators of higher layers.
#pragma once

#include <cstring>
#include <vector>

#include "runtime/device/registry.h"
#include "runtime/memory/memory.h"
#include "runtime/queue/queue.h"
#include "support/arrays.h"

namespace naru::testing {

// Enables virtual devices for the duration of a test.
class Virtual {
 public:
  explicit Virtual(const std::string& spec) { runtime::set_virtual_devices(spec); }
  ~Virtual() { runtime::set_virtual_devices(""); }
};

inline Ref<Storage> upload(runtime::DeviceStream& stream, Device device, const void* data, size_t bytes) {
  auto host = runtime::make_storage(Device("cpu"), bytes);
  auto storage = runtime::make_storage(device, bytes);
  std::memcpy(host->data, data, bytes);
  stream.submit(ir::CopyBytes{storage->data, host->data, bytes, device, Device("cpu")}, {host, storage});
  return storage;
}
inline std::vector<char> download(runtime::DeviceStream& stream, const Ref<Storage>& storage) {
  std::vector<char> bytes(storage->bytes);
  const uint64_t seq = stream.submit(ir::CopyBytes{bytes.data(), storage->data, bytes.size(), Device("cpu"), storage->device}, {storage});
  stream.synchronize(seq);
  return bytes;
}

// A copy of an array's memory on the device, and a view of it.
struct OnDevice {
  Ref<Storage> storage;
  ir::View view;
  OnDevice(runtime::DeviceStream& stream, Device device, Array& a)
      : storage(upload(stream, device, a.memory().data(), a.memory().size())), view(a.view()) {
    view.data = static_cast<char*>(storage->data) + (static_cast<char*>(a.at(0)) - a.memory().data());
  }
};

}  // namespace naru::testing
