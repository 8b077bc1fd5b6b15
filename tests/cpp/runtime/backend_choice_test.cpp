#include "runtime/device/backend_choice.h"

#include <gtest/gtest.h>

#include "core/device_kinds.h"
#include "naru/error.h"

namespace naru::runtime {
namespace {

// Supports one kind of device, and has `count` of them or a reason for having none.
class Fake final : public Backend {
 public:
  Fake(const char* name, DeviceType kind, int count, const char* reason = "", bool simulated = false)
      : name_(name), kind_(kind), count_(count), reason_(reason), simulated_(simulated) {}
  const char* name() const noexcept override { return name_; }
  bool simulated() const noexcept override { return simulated_; }
  int device_count(DeviceType kind) noexcept override { return kind == kind_ ? count_ : 0; }
  Availability probe(DeviceType kind) override {
    if (kind != kind_) return {};
    return {count_ > 0, reason_, "", DriverState::NoLibrary};
  }
  Properties properties(Device) override { return {}; }
  void* allocate(Device, MemoryKind, size_t) override { return nullptr; }
  void release(Device, MemoryKind, void*, size_t) noexcept override {}
  std::unique_ptr<DeviceStream> create_stream(Device, int) override { return nullptr; }

 private:
  const char* name_;
  DeviceType kind_;
  int count_;
  const char* reason_;
  bool simulated_;
};

using List = std::vector<std::unique_ptr<Backend>>;
template <class... F>
List list_of(F... f) {
  List list;
  (list.push_back(std::make_unique<Fake>(f)), ...);
  return list;
}

const Availability& right(size_t, DeviceType) {
  static const Availability a{true, "", ""};
  return a;
}
// The first backend's kernels give wrong bits.
const Availability& first_is_wrong(size_t backend, DeviceType kind) {
  static const Availability wrong{false, "wrong numbers", "", DriverState::WrongNumbers};
  return backend == 0 ? wrong : right(backend, kind);
}

constexpr auto kRocm = DeviceType::Rocm, kXpu = DeviceType::Xpu;

TEST(BackendChoice, the_first_in_the_list_that_has_devices_serves_the_kind) {
  const List backends = list_of(Fake("hip", kRocm, 0, "no driver"), Fake("opencl", kRocm, 2), Fake("vulkan", kRocm, 1));
  EXPECT_EQ(choose_backend(backends, kRocm, false, right), 1);
  EXPECT_EQ(choose_backend(backends, kXpu, false, right), -1);
}

TEST(BackendChoice, one_whose_kernels_give_wrong_bits_leaves_the_kind_to_the_next) {
  const List backends = list_of(Fake("opencl", kXpu, 1), Fake("vulkan", kXpu, 1));
  EXPECT_EQ(choose_backend(backends, kXpu, false, right), 0);
  EXPECT_EQ(choose_backend(backends, kXpu, false, first_is_wrong), 1);
}

TEST(BackendChoice, simulated_devices_that_were_asked_for_stand_in_front_of_real_ones) {
  const List backends = list_of(Fake("opencl", kXpu, 1), Fake("virtual", kXpu, 1, "", true));
  EXPECT_EQ(choose_backend(backends, kXpu, true, right), 1);
}

TEST(BackendChoice, where_none_works_each_backend_of_the_kind_says_why) {
  const List backends = list_of(Fake("hip", kRocm, 0, "no driver library"), Fake("metal", DeviceType::Mps, 0, "another system"),
                                Fake("opencl", kRocm, 0, "no platform"));
  const Availability a = why_none(backends, kRocm, right);
  EXPECT_EQ(a.reason, "no driver library; opencl: no platform");
  EXPECT_EQ(a.state, DriverState::NoLibrary);
  EXPECT_EQ(why_none(backends, DeviceType::Mps, right).reason, "another system");
  EXPECT_EQ(why_none(backends, kXpu, right).state, DriverState::NoBackend);
  EXPECT_EQ(why_none(list_of(Fake("opencl", kXpu, 1)), kXpu, first_is_wrong).reason, "wrong numbers");
}

TEST(BackendChoice, simulated_devices_that_are_hidden_speak_for_the_real_ones) {
  const List backends = list_of(Fake("virtual", kXpu, 0, "hidden", true), Fake("opencl", kXpu, 0, "no platform"));
  EXPECT_EQ(why_none(backends, kXpu, right).reason, "hidden");
}

TEST(DeviceKinds, each_row_is_found_by_its_type_and_by_its_name) {
  EXPECT_EQ(device_kinds().front().type, DeviceType::Cpu);
  EXPECT_EQ(computing_kinds().size() + 1, device_kinds().size());
  EXPECT_EQ(accelerator_kinds().size() + 1, computing_kinds().size());
  EXPECT_EQ(device_kinds().back().type, DeviceType::Meta);
  for (const DeviceKind& k : device_kinds()) {
    EXPECT_EQ(&kind_of(k.type), &k);
    EXPECT_EQ(parse_device_type(k.name), k.type);
    EXPECT_EQ(name_of(k.type), k.name);
  }
  EXPECT_EQ(names_of(accelerator_kinds().first(2)), "cuda, rocm");
}

}  // namespace
}  // namespace naru::runtime
