#include "backends/cuda/launcher.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>

#include "ir/inspect.h"
#include "ir/op_ids.h"
#include "naru/error.h"

namespace naru::backends::cuda {
namespace {

// c += bias.
ir::Map bias_added(const ir::MatMul& q) {
  ir::Map map;
  ir::Program& p = map.program;
  p.nodes_count = p.outputs_count = 1, p.inputs_count = 2;
  p.outputs[0] = 0;
  p.nodes[0].op = ir::op::add, p.nodes[0].out = q.dtype, p.nodes[0].args_count = 2;
  for (uint16_t i = 0; i < 2; ++i) {
    p.inputs[i] = {q.dtype, false};
    p.nodes[0].args[i] = {ir::Program::From::Input, q.dtype, i};
  }
  const ir::View c{q.c.data, q.dtype, {q.c.batch_stride, q.c.row_stride, q.c.col_stride}};
  map.shape = {q.batch, q.m, q.n};
  map.inputs = {c, {const_cast<void*>(q.bias), q.dtype, {0, 0, q.bias_stride}}};
  map.outputs = {c};
  return map;
}

}  // namespace

void StreamLauncher::warn_out_of_workspace(Product library, const char* what) const {
  static std::array<std::array<std::atomic<bool>, 128>, kProducts> told{};
  if (told[static_cast<size_t>(library)][static_cast<size_t>(device_.device().index)].exchange(true)) return;
  std::fprintf(
      stderr,
      "naru: warning: %s has no memory left for %s to work in: %s are done by naru's own kernels, which are slower. Free some memory, "
      "or use smaller batches\n",
      device_.device().str().c_str(), label_of(library), what);
}

void StreamLauncher::run(const ir::Instruction& instruction) {
  if (const auto* c = std::get_if<ir::CopyBytes>(&instruction)) return copy(*c);
  if (const auto* m = std::get_if<ir::MatMul>(&instruction); m && matmul_by_library(*m)) return;
  if (const auto* c = std::get_if<ir::Convolution>(&instruction); c && convolve_by_library(*c)) return;
  if (const auto* f = std::get_if<ir::Fft>(&instruction)) return transform(*f);
  if (const auto* l = std::get_if<ir::Lapack>(&instruction)) return factor(*l);
  if (const auto* a = std::get_if<ir::Attention>(&instruction)) return attend(*a);
  if (const auto* e = std::get_if<ir::Exchange>(&instruction)) {
    if (!only_prepares_) e->communicator->enqueue(e->calls, reinterpret_cast<uintptr_t>(stream_));
    return;
  }
  std::visit(
      [this](const auto& i) {
        using Kind = std::decay_t<decltype(i)>;
        if constexpr (!std::is_same_v<Kind, ir::CopyBytes> && !ir::HostOnly<Kind>) render::c::run(i, *this);
      },
      instruction);
}

bool StreamLauncher::matmul_by_library(const ir::MatMul& q) {
  bool starved = false;
  const auto memory = [&](size_t bytes) -> void* {
    try {
      return scratch(bytes);
    } catch (const OutOfMemoryError&) {
      starved = true;
      return nullptr;
    }
  };
  if (by_library(q, memory)) return true;
  // If the library can't add the bias, add it afterwards.
  if (ir::MatMul plain = q; q.bias && !starved) {
    plain.bias = nullptr;
    if (by_library(plain, memory)) {
      render::c::run(bias_added(q), *this);
      return true;
    }
  }
  if (starved) warn_out_of_workspace(Product::CublasLt, "matrix products");
  return false;
}

bool StreamLauncher::by_library(ir::MatMul q, const Products::Workspace& memory) {
  Products& products = device_.products();
  // Factors without unit stride (repeated elements, every other column) are copied first.
  struct Copy {
    ir::MatMul::Matrix* factor;
    Dims shape;
    ir::View from;
  };
  std::vector<Copy> copies;
  const auto line_up = [&](ir::MatMul::Matrix& x, int64_t rows, int64_t cols) {
    if (unit_stride(x, rows, cols)) return;
    const int64_t batch = x.batch_stride == 0 ? 1 : q.batch;
    copies.push_back({&x, {batch, rows, cols}, {x.data, q.dtype, {x.batch_stride, x.row_stride, x.col_stride}}});
    x = {x.data, batch == 1 ? 0 : rows * cols, cols, 1};
  };
  line_up(q.a, q.m, q.k), line_up(q.b, q.k, q.n);
  if (!copies.empty()) {
    if (!for_library(q, true) || !products.available()) return false;
    for (const Copy& c : copies) {
      c.factor->data = memory(static_cast<size_t>(product(c.shape)) * size_of(q.dtype));
      if (!c.factor->data) return false;
      render::c::run(ir::copy_of(c.shape, c.from, {c.factor->data, q.dtype, contiguous_strides(c.shape)}), *this);
    }
  }
  return products.start(q, only_prepares_ ? nullptr : stream_, memory);
}

void StreamLauncher::start(const render::c::Launch& launch) {
  constexpr size_t kMost = 32;
  constexpr int64_t kMostGroups = (int64_t{1} << 31) - 1;
  if (launch.memory.size() > kMost)
    throw RuntimeError("CUDA: a kernel with {} pieces of memory; at most {} are allowed", launch.memory.size(), kMost);
  if (launch.groups > kMostGroups) throw RuntimeError("CUDA: a kernel of {} groups; at most {} are allowed", launch.groups, kMostGroups);
  if (launch.groups == 0) return;
  if (only_prepares_) return prepare(launch);
  const Api& cu = device_.api();
  CUdeviceptr memory[kMost + 1];
  void* parameters[kMost + 1];
  size_t n = 0;
  for (; n < launch.memory.size(); ++n) {
    memory[n] = address(launch.memory[n]);
    parameters[n] = &memory[n];
  }
  // CUDA addresses need no offsets from the start of a block.
  std::memset(launch.arguments.data(), 0, n * 8);
  parameters[n] = launch.arguments.data();
  if (render::c::in_memory(n, launch.arguments.size(), device_.target())) {
    memory[n] = address(large_arguments(launch.arguments.data(), launch.arguments.size()));
    parameters[n] = &memory[n];
  }
  const bool three = launch.group3[0] > 0;
  const auto groups = three ? launch.groups3 : std::array<int64_t, 3>{launch.groups, 1, 1};
  const auto group = three ? launch.group3 : std::array{launch.group, 1, 1};
  constexpr int64_t kMostStrided = 65535;
  if (groups[1] > kMostStrided || groups[2] > kMostStrided)
    throw RuntimeError("CUDA: a grid of {} x {} x {} groups; at most {} are allowed in the second and third dimension", groups[0],
                       groups[1], groups[2], kMostStrided);
  if (group[2] > 64)
    throw RuntimeError("CUDA: groups of {} x {} x {} items; at most 64 are allowed in the third dimension", group[0], group[1], group[2]);
  const auto u = [](int64_t n) { return static_cast<unsigned>(n); };
  device_.check(cu.cuLaunchKernel(device_.kernel_of(launch), u(groups[0]), u(groups[1]), u(groups[2]), u(group[0]), u(group[1]),
                                  u(group[2]), u(launch.shared), stream_, parameters, nullptr),
                "cuLaunchKernel");
}

void StreamLauncher::copy(const ir::CopyBytes& c) {
  if (c.bytes == 0) return;
  const Api& cu = device_.api();
  const bool from_here = c.source_device == device_.device(), to_here = c.target_device == device_.device();
  if (from_here && to_here) return copy_within(c);
  if (only_prepares_) return;
  if (to_here && c.source_device.is_cpu())
    return device_.check(cu.cuMemcpyHtoDAsync_v2(address(c.target), c.source, c.bytes, stream_), "cuMemcpyHtoDAsync");
  if (from_here && c.target_device.is_cpu())
    return device_.check(cu.cuMemcpyDtoHAsync_v2(c.target, address(c.source), c.bytes, stream_), "cuMemcpyDtoHAsync");
  if (!to_here || c.source_device.type != device_.device().type)
    throw RuntimeError("device {}: asked to copy from {} to {}", device_.device().str(), c.source_device.str(), c.target_device.str());
  const CudaDevice& there = devices_.at(c.source_device);
  device_.check(cu.cuMemcpyPeerAsync(address(c.target), device_.context(), address(c.source), there.context(), c.bytes, stream_),
                "cuMemcpyPeerAsync");
}

void StreamLauncher::copy_within(const ir::CopyBytes& c) {
  if (c.target == c.source) return;
  const auto copy = [&](const void* from, const void* to) {
    if (only_prepares_) return;
    device_.check(device_.api().cuMemcpyDtoDAsync_v2(address(to), address(from), c.bytes, stream_), "cuMemcpyDtoDAsync");
  };
  const auto *from = static_cast<const char*>(c.source), *to = static_cast<const char*>(c.target);
  const bool overlap = from < to + c.bytes && to < from + c.bytes;
  if (!overlap) return copy(from, to);
  void* const between = scratch(c.bytes);
  copy(from, between);
  copy(between, to);
}

}  // namespace naru::backends::cuda
