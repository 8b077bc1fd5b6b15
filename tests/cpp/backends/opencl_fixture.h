// The fixture of the OpenCL tests: each runs with kernels for a processor and with kernels for a GPU.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/exec/execute.h"
#include "backends/opencl/stream.h"
#include "backends/support.h"
#include "ir/op_ids.h"
#include "naru/error.h"

namespace naru::runtime {

using testing::Array;
using testing::download;
using testing::Layout;
using testing::OnDevice;
using testing::program_of;
using View = ir::View;

// The first xpu device, with kernels for a processor (loops) or for a GPU; processors count as xpu devices during the test.
class OpenCl : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    setenv("NARU_OPENCL_CPU", "1", 1);
    setenv("NARU_OPENCL_LOOPS", GetParam() ? "1" : "0", 1);
    if (device_count(DeviceType::Xpu) == 0)
      GTEST_SKIP() << "no xpu device: " << availability(DeviceType::Xpu).reason << "; ./run test installs pocl-opencl-icd";
    stream = backend_of(DeviceType::Xpu).create_stream(device, 0);
  }
  void TearDown() override {
    stream.reset();
    unsetenv("NARU_OPENCL_CPU");
    unsetenv("NARU_OPENCL_LOOPS");
  }

  // Runs make(views) on the host and on the device, on copies of the same arrays, and compares all of their memory.
  template <class Make>
  void same(const std::vector<Array*>& arrays, const Make& make, const std::string& what) {
    std::vector<OnDevice> there;
    std::vector<View> views, here;
    for (Array* a : arrays) {
      there.emplace_back(*stream, device, *a);
      views.push_back(there.back().view);
      here.push_back(a->view());
    }
    cpu::execute(make(here));
    std::vector<Ref<Storage>> hold;
    for (const OnDevice& d : there) hold.push_back(d.storage);
    stream->submit(make(views), hold);
    for (size_t i = 0; i < arrays.size(); ++i)
      EXPECT_TRUE(download(*stream, there[i].storage) == arrays[i]->memory()) << what << ", array " << i;
  }

  const Device device{DeviceType::Xpu, 0};
  std::unique_ptr<DeviceStream> stream;
};

}  // namespace naru::runtime
