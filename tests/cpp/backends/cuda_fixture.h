// A fixture for the cuda backend on the fake NVIDIA libraries (tests/fakes), with four devices.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/op_ids.h"
#include "runtime/device/backend.h"
#include "support/arrays.h"

namespace naru::backends {
std::unique_ptr<runtime::Backend> make_cuda();
}

namespace naru::runtime {

class CudaFixture : public ::testing::Test {
 protected:
  static constexpr int kDevices = 4;
  static constexpr size_t kMiB = size_t{1} << 20;

  void SetUp() override {
    set("NARU_CUDA_LIBRARY", NARU_FAKES "/libcuda.so");
    set("NARU_NVRTC_LIBRARY", NARU_FAKES "/libnvrtc.so");
    set("NARU_CUBLASLT_LIBRARY", NARU_FAKES "/libcublasLt.so");
    set("NARU_CUFFT_LIBRARY", NARU_FAKES "/libcufft.so");
    set("NARU_CUSOLVER_LIBRARY", NARU_FAKES "/libcusolver.so");
    set("NARU_CUDNN_LIBRARY", NARU_FAKES "/libcudnn.so");
    set("NARU_NCCL_LIBRARY", NARU_FAKES "/libnccl.so");
    set("NARU_CUDA_DEVICE_NODE", "/dev/null");
    set("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    set("CUDA_VISIBLE_DEVICES", "0,1,2,3");
    set("NARU_FAKE_GPUS", "0000:02:00.0 b 12.1 64 Newer;0000:04:00.0 d 7.5 64 T4;0000:01:00.0 a 9.0 512 H100;0000:03:00.0 c 8.0 64 A100");
    backend = backends::make_cuda();
    std::remove(log.c_str());
  }
  void TearDown() override {
    for (const auto& [name, before] : variables_) before ? setenv(name, before->c_str(), 1) : unsetenv(name);
  }
  void set(const char* name, const std::string& value) {
    if (!variables_.contains(name)) variables_[name] = std::getenv(name) ? std::optional<std::string>(std::getenv(name)) : std::nullopt;
    setenv(name, value.c_str(), 1);
  }

  // Starts counting the libraries' calls, by function.
  void listen() { set("NARU_FAKE_LOG", log); }
  std::map<std::string, int> counted() {
    unsetenv("NARU_FAKE_LOG");
    std::map<std::string, int> count;
    for (const std::string& name : calls(log)) ++count[name];
    return count;
  }

  std::unique_ptr<DeviceStream> stream(int device = 0) { return backend->create_stream(Device(DeviceType::Cuda, device), 0); }
  void* memory(size_t bytes, int device = 0) { return backend->allocate(Device(DeviceType::Cuda, device), MemoryKind::Device, bytes); }
  void* pinned(size_t bytes) { return backend->allocate(Device(DeviceType::Cuda, 0), MemoryKind::Pinned, bytes); }

  static uint64_t copy(DeviceStream& s, void* to, const void* from, size_t bytes, int target, int source) {
    const auto device = [](int i) { return i < 0 ? Device(DeviceType::Cpu, 0) : Device(DeviceType::Cuda, i); };
    return s.submit(ir::CopyBytes{to, from, bytes, device(target), device(source)}, {});
  }
  static uint64_t up(DeviceStream& s, void* to, const void* from, size_t bytes, int device = 0) {
    return copy(s, to, from, bytes, device, -1);
  }
  static uint64_t down(DeviceStream& s, void* to, const void* from, size_t bytes, int device = 0) {
    return copy(s, to, from, bytes, -1, device);
  }
  // x += x, for n float32 elements.
  static uint64_t doubled(DeviceStream& s, void* x, int64_t n) {
    const ir::View v{x, DType::F32, {1}};
    ir::Map m;
    m.program = testing::program_of(ir::op::add, {DType::F32, DType::F32}, DType::F32, DType::F32);
    m.shape = {n}, m.inputs = {v, v}, m.outputs = {v};
    return s.submit(m, {});
  }
  std::vector<std::string> calls(const std::string& file) {
    std::ifstream in(file);
    std::vector<std::string> names;
    for (std::string pid, name; in >> pid >> name;) names.push_back(name);
    return names;
  }

  // A test-only function of the fake driver.
  template <class F>
  static F* fake(const char* name) {
    void* const library = dlopen(NARU_FAKES "/libcuda.so", RTLD_NOW | RTLD_NOLOAD);
    return reinterpret_cast<F*>(dlsym(library, name));
  }

  const std::string log = ::testing::TempDir() + "/naru_cuda_calls";
  std::unique_ptr<Backend> backend;

 private:
  std::map<const char*, std::optional<std::string>> variables_;
};

}  // namespace naru::runtime
