#include "runtime/device/self_check.h"

#include <gtest/gtest.h>

#include <cstring>

#include "ir/interpreter/interpret.h"
#include "naru/error.h"

namespace naru::runtime {
namespace {

enum class Fault { None, WrongBit, NoMemory, Throws };

// Runs elementwise programs on the host, with an injected error.
class Stream final : public DeviceStream {
 public:
  explicit Stream(Fault fault) : fault_(fault) {}
  uint64_t submit(ir::Instruction instruction, std::vector<Ref<Storage>>) override {
    if (const auto* c = std::get_if<ir::CopyBytes>(&instruction)) std::memcpy(c->target, c->source, c->bytes);
    if (const auto* m = std::get_if<ir::Map>(&instruction)) {
      if (fault_ == Fault::Throws) throw RuntimeError("the compiler is not at home");
      void* operands[] = {m->inputs[0].data, m->inputs[1].data, m->outputs[0].data};
      ir::interpret(m->program.lower(), operands, nullptr, m->shape[0], 0);
      if (fault_ == Fault::WrongBit) static_cast<char*>(m->outputs[0].data)[4 * (m->shape[0] - 1)] ^= 1;
    }
    return ++done_;
  }
  void wait(DeviceStream&, uint64_t) override {}
  uint64_t completed() const noexcept override { return done_; }
  uint64_t submitted() const noexcept override { return done_; }
  void reach(uint64_t) noexcept override {}
  std::unique_ptr<TimeStamp> stamp() override { return nullptr; }

 private:
  Fault fault_;
  uint64_t done_ = 0;
};

class FakeBackend final : public Backend {
 public:
  explicit FakeBackend(Fault fault) : fault_(fault) {}
  const char* name() const noexcept override { return "fake"; }
  int device_count(DeviceType kind) noexcept override { return kind == DeviceType::Xpu ? 2 : 0; }
  Availability probe(DeviceType) override { return {true, "", ""}; }
  Properties properties(Device) override { return {}; }
  void* allocate(Device, MemoryKind, size_t bytes) override {
    if (fault_ == Fault::NoMemory) return nullptr;
    ++held;
    return std::malloc(bytes);
  }
  void release(Device, MemoryKind, void* memory, size_t) noexcept override {
    --held;
    std::free(memory);
  }
  // Only the second device has the error.
  std::unique_ptr<DeviceStream> create_stream(Device d, int) override {
    return std::make_unique<Stream>(d.index == 1 ? fault_ : Fault::None);
  }
  int held = 0;

 private:
  Fault fault_;
};

TEST(SelfCheck, a_device_whose_kernel_gives_the_right_bits_is_available) {
  FakeBackend backend(Fault::None);
  EXPECT_EQ(wrong_numbers(backend, Device("xpu:0")), "");
  EXPECT_TRUE(backend.self_check(DeviceType::Xpu).available);
  EXPECT_EQ(backend.held, 0);
}

TEST(SelfCheck, one_wrong_bit_in_one_element_of_one_device_is_found) {
  FakeBackend backend(Fault::WrongBit);
  const Availability a = backend.self_check(DeviceType::Xpu);
  EXPECT_FALSE(a.available);
  EXPECT_EQ(a.state, DriverState::WrongNumbers);
  EXPECT_EQ(a.reason.substr(0, a.reason.find(": ")), "a kernel ran on xpu:1 and gave wrong numbers");
  EXPECT_NE(a.remedy.find("naru selftest xpu:1"), std::string::npos) << a.remedy;
  EXPECT_EQ(backend.held, 0);
}

TEST(SelfCheck, a_device_that_fails_is_not_available_either) {
  FakeBackend throws(Fault::Throws), empty(Fault::NoMemory);
  const Availability a = throws.self_check(DeviceType::Xpu), b = empty.self_check(DeviceType::Xpu);
  EXPECT_EQ(a.state, DriverState::InitError);
  EXPECT_EQ(a.reason, "the first kernel on xpu:1 failed with an error: the compiler is not at home");
  EXPECT_EQ(b.state, DriverState::InitError);
  EXPECT_NE(b.reason.find("no memory for 4000 bytes on 'xpu:0'"), std::string::npos) << b.reason;
  EXPECT_EQ(throws.held, 0);
}

}  // namespace
}  // namespace naru::runtime
