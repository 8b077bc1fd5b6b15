#include "runtime/device/self_check.h"

#include <fmt/format.h>

#include <cmath>

#include "ir/interpreter/interpret.h"
#include "ir/op_ids.h"
#include "ir/program_builder.h"
#include "naru/error.h"
#include "runtime/os/child.h"

namespace naru::runtime {
namespace {

constexpr int64_t kCount = 1000;  // not a multiple of any vector width
constexpr size_t kBytes = kCount * sizeof(float);
constexpr std::chrono::seconds kCheckLimit{120};

// a * b + a, each step rounded separately.
ir::Program program() {
  ir::Program p;
  ir::ProgramBuilder b(p);
  const auto x = b.input(DType::F32, DType::F32), y = b.input(DType::F32, DType::F32);
  const auto product = b.node(ir::op::mul, DType::F32, {x, y});
  b.output(b.node(ir::op::add, DType::F32, {b.result(product, DType::F32), x}));
  return p;
}

// Device memory for the length of a check.
class Buffer {
 public:
  Buffer(Backend& backend, Device device) : backend_(backend), device_(device), data(backend.allocate(device, MemoryKind::Device, kBytes)) {
    if (!data) throw RuntimeError("no memory for {} bytes on '{}'", kBytes, device.str());
  }
  ~Buffer() { backend_.release(device_, MemoryKind::Device, data, kBytes); }
  Buffer(const Buffer&) = delete;

 private:
  Backend& backend_;
  const Device device_;

 public:
  void* const data;
};

}  // namespace

std::string wrong_numbers(Backend& backend, Device device) {
  std::vector<float> a(kCount), b(kCount), wanted(kCount), got(kCount);
  for (int64_t i = 0; i < kCount; ++i) {
    const auto x = static_cast<float>(i);
    a[i] = (x - 500) / 7, b[i] = x / 3 + 0.1f;
  }
  const ir::Program p = program();
  void* operands[] = {a.data(), b.data(), wanted.data()};
  ir::interpret(p.lower(), operands, nullptr, kCount, 0);

  Buffer da(backend, device), db(backend, device), dout(backend, device);
  const std::unique_ptr<DeviceStream> stream = backend.create_stream(device, 0);
  const auto copy = [&](void* to, const void* from, Device target, Device source) {
    return stream->submit(ir::CopyBytes{to, from, kBytes, target, source}, {});
  };
  const Device host(DeviceType::Cpu);
  copy(da.data, a.data(), device, host);
  copy(db.data, b.data(), device, host);
  copy(dout.data, got.data(), device, host);
  const Dims one{1};
  stream->submit(ir::Map{p, {kCount}, {{da.data, DType::F32, one}, {db.data, DType::F32, one}}, {{dout.data, DType::F32, one}}, {}}, {});
  stream->synchronize(copy(got.data(), dout.data, host, device));
  for (int64_t i = 0; i < kCount; ++i)
    if (got[i] != wanted[i]) return fmt::format("{} * {} + {} is {}, not {}", a[i], b[i], a[i], wanted[i], got[i]);
  return "";
}

Availability check_in_child(Backend& backend, Device device) {
  const ChildAnswer answer = ask_in_child(
      [&]() -> std::string {
        try {
          return "w" + wrong_numbers(backend, device);
        } catch (const std::exception& e) {
          return std::string("e") + e.what();
        }
      },
      kCheckLimit);
  if (answer.text == "w") return {true, "", ""};
  const Properties p = backend.properties(device);
  if (answer.text && answer.text->starts_with("w"))
    return unavailable(DriverState::WrongNumbers, {{"device", device.str()}, {"driver", p.driver}, {"detail", answer.text->substr(1)}});
  return unavailable(DriverState::InitError, {{"function", fmt::format("the first kernel on {} ({})", device.str(), p.name)},
                                              {"code", "an error"},
                                              {"cause", answer.text ? answer.text->substr(1) : answer.trouble},
                                              {"cure", "Update its driver, or use device 'cpu'"}});
}

Availability check_in_child(Backend& backend, DeviceType kind) {
  const int count = backend.device_count(kind);
  // First check all devices in one child, because a driver may take seconds to start; then one by one, only to find the one that fails.
  const auto all_right = [&]() -> std::string {
    for (int i = 0; i < count; ++i)
      if (!wrong_numbers(backend, Device(kind, i)).empty()) return "";
    return "right";
  };
  if (count > 1 && ask_in_child(all_right, kCheckLimit).text == "right") return {true, "", ""};
  for (int i = 0; i < count; ++i)
    if (Availability a = check_in_child(backend, Device(kind, i)); !a.available) return a;
  return {true, "", ""};
}

Availability Backend::self_check(DeviceType kind) {
  for (int i = 0; i < device_count(kind); ++i) {
    const Device device(kind, i);
    try {
      if (const std::string wrong = wrong_numbers(*this, device); !wrong.empty())
        return unavailable(DriverState::WrongNumbers, {{"device", device.str()}, {"driver", "its driver"}, {"detail", wrong}});
    } catch (const std::exception& e) {
      return unavailable(DriverState::InitError, {{"function", fmt::format("the first kernel on {}", device.str())},
                                                  {"code", "an error"},
                                                  {"cause", e.what()},
                                                  {"cure", "Update its driver, or use device 'cpu'"}});
    }
  }
  return {true, "", ""};
}

}  // namespace naru::runtime
