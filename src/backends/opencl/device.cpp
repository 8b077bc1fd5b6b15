#include "backends/opencl/device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "naru/error.h"
#include "runtime/fork.h"
#include "runtime/kernel_cache.h"
#include "runtime/streams.h"

namespace naru::backends::opencl {
namespace {

constexpr size_t kPage = 4096, kHugePage = size_t{2} << 20;

size_t in_pages(size_t bytes, size_t page) { return (bytes + page - 1) / page * page; }

cl_device_id find_device(const DeviceInfo& info) {
  const Api& cl = api();
  std::vector<cl_platform_id> platforms(static_cast<size_t>(info.platform) + 1);
  cl_uint count = 0;
  check(cl.clGetPlatformIDs(static_cast<cl_uint>(platforms.size()), platforms.data(), &count), "clGetPlatformIDs");
  std::vector<cl_device_id> devices(static_cast<size_t>(info.number) + 1);
  if (count >= platforms.size())
    check(cl.clGetDeviceIDs(platforms.back(), CL_DEVICE_TYPE_ALL, static_cast<cl_uint>(devices.size()), devices.data(), &count), "clGetDeviceIDs");
  if (count < devices.size()) throw DeviceUnavailableError("OpenCL device '" + info.name + "' is gone. Restart the program; see `naru doctor`");
  return devices.back();
}

}  // namespace

OpenClDevice::OpenClDevice(Device device, const DeviceInfo& info)
    : device_(device), info_(info), process_(getpid()), generation_(runtime::fork_generation()), id_(find_device(info)) {
  cl_int status = CL_SUCCESS;
  context_ = api().clCreateContext(nullptr, 1, &id_, nullptr, nullptr, &status);
  check(status, "clCreateContext");
  options_ = "-w -cl-std=CL1.2";  // no warnings: some compilers print them themselves
  if (info_.exact_f32) options_ += " -cl-fp32-correctly-rounded-divide-sqrt";
  fingerprint_ = info_.platform_name + "|" + info_.name + "|" + info_.driver + "|" + info_.version;
}

render::c::Target OpenClDevice::target() const {
  render::c::Target t;
  t.dialect = &render::c::opencl();
  // NARU_OPENCL_LOOPS: kernels as for a GPU on a processor, and the other way round (for tests).
  const char* loops = std::getenv("NARU_OPENCL_LOOPS");
  t.loops = loops && *loops ? *loops != '0' : info_.cpu;
  t.lanes = info_.vector >= 16 ? 16 : 8;
  t.group = 64;
  while (t.group < 256 && static_cast<uint64_t>(t.group) * 2 <= info_.group) t.group *= 2;
  t.parameters = info_.parameters;
  t.units = static_cast<int>(std::max<uint64_t>(1, info_.units));
  t.fp64 = info_.fp64;
  t.exact_f32 = info_.exact_f32;
  return t;
}

bool OpenClDevice::forked() const noexcept { return runtime::fork_generation() != generation_; }

void OpenClDevice::check_process() const {
  if (forked()) runtime::raise_forked(device_, process_);
}

void* OpenClDevice::allocate(size_t bytes) {
  check_process();
  const size_t taken = in_pages(bytes, kPage);
  const std::lock_guard lock(memory_mutex_);
  if (bytes > info_.largest_buffer || taken > info_.memory - std::min<uint64_t>(used_, info_.memory)) return nullptr;
  void* const address = mmap(nullptr, taken, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) return nullptr;
  Piece piece{static_cast<char*>(address), bytes, nullptr, nullptr};
  if (info_.cpu) {
    // The device takes the host's own memory, which can stand on huge pages.
    piece.host = std::aligned_alloc(bytes < kHugePage ? kPage : kHugePage, in_pages(bytes, bytes < kHugePage ? kPage : kHugePage));
    if (piece.host && bytes >= kHugePage) madvise(piece.host, bytes, MADV_HUGEPAGE);
  }
  cl_int status = piece.host || !info_.cpu ? CL_SUCCESS : -6;
  if (status == CL_SUCCESS)
    piece.memory = api().clCreateBuffer(
        context_, CL_MEM_READ_WRITE | (piece.host ? CL_MEM_USE_HOST_PTR : info_.unified ? CL_MEM_ALLOC_HOST_PTR : 0), bytes, piece.host, &status);
  if (status != CL_SUCCESS) {
    std::free(piece.host);
    munmap(address, taken);
    return nullptr;
  }
  used_ += taken;
  pieces_.emplace(piece.address, piece);
  return address;
}

void OpenClDevice::release(void* address) noexcept {
  if (forked()) return;
  Piece piece;
  {
    const std::lock_guard lock(memory_mutex_);
    const auto at = pieces_.find(static_cast<char*>(address));
    if (at == pieces_.end()) return;
    piece = at->second;
    pieces_.erase(at);
    used_ -= in_pages(piece.bytes, kPage);
  }
  releases_.fetch_add(1, std::memory_order_acq_rel);
  // The allocator has waited for the work that uses it.
  api().clReleaseMemObject(piece.memory);
  std::free(piece.host);
  munmap(piece.address, in_pages(piece.bytes, kPage));
}

size_t OpenClDevice::free_memory() const {
  const std::lock_guard lock(memory_mutex_);
  return info_.memory - std::min<uint64_t>(used_, info_.memory);
}

void* OpenClDevice::allocate_pinned(size_t bytes) {
  check_process();
  if (info_.cpu) return std::aligned_alloc(64, in_pages(bytes, 64));
  const std::lock_guard lock(memory_mutex_);
  if (!mapping_) mapping_ = make_queue();
  cl_int status = CL_SUCCESS;
  const cl_mem memory = api().clCreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, nullptr, &status);
  if (status != CL_SUCCESS) return nullptr;
  void* const host = api().clEnqueueMapBuffer(mapping_, memory, 1, CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0, nullptr, nullptr, &status);
  if (status != CL_SUCCESS) {
    api().clReleaseMemObject(memory);
    return nullptr;
  }
  pinned_.emplace(host, memory);
  return host;
}

void OpenClDevice::release_pinned(void* host) noexcept {
  if (info_.cpu) return std::free(host);
  if (forked()) return;
  const std::lock_guard lock(memory_mutex_);
  const auto at = pinned_.find(host);
  if (at == pinned_.end()) return;
  api().clEnqueueUnmapMemObject(mapping_, at->second, host, 0, nullptr, nullptr);
  api().clFinish(mapping_);
  api().clReleaseMemObject(at->second);
  pinned_.erase(at);
}

const Piece& OpenClDevice::piece_of(const void* address, const char* what) const {
  const auto* const p = static_cast<const char*>(address);
  const std::lock_guard lock(memory_mutex_);
  auto at = pieces_.upper_bound(p);
  if (at != pieces_.begin() && p < (--at)->first + at->second.bytes) return at->second;
  throw RuntimeError("device {}: the {} is not in its memory (address {})", device_.str(), what, address);
}

cl_command_queue OpenClDevice::make_queue(bool timed) {
  check_process();
  cl_int status = CL_SUCCESS;
  const cl_command_queue queue = api().clCreateCommandQueue(context_, id_, timed ? CL_QUEUE_PROFILING_ENABLE : 0, &status);
  check(status, "clCreateCommandQueue");
  return queue;
}

Kernel& OpenClDevice::kernel_of(const render::c::Launch& launch, const render::c::Target& target) {
  return kernels_[target.loops].of(launch, [&] { return compile(launch.text()); });
}

cl_program OpenClDevice::build(const std::string& text) {
  const Api& cl = api();
  const char* source = text.c_str();
  cl_int status = CL_SUCCESS;
  const cl_program program = cl.clCreateProgramWithSource(context_, 1, &source, nullptr, &status);
  check(status, "clCreateProgramWithSource");
  if (cl.clBuildProgram(program, 1, &id_, options_.c_str(), nullptr, nullptr) != CL_SUCCESS) {
    size_t size = 0;
    cl.clGetProgramBuildInfo(program, id_, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
    std::string log(size, '\0');
    cl.clGetProgramBuildInfo(program, id_, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
    cl.clReleaseProgram(program);
    throw render::c::CompilerError(fmt::format("device {}: its OpenCL compiler ({} {}) refused a kernel of naru's: {}\n{}", device_.str(), info_.platform_name,
                                               info_.driver, log.c_str(), text),
                                   fmt::format("the OpenCL compiler of {} ({} {})", device_.str(), info_.platform_name, info_.driver), log.c_str());
  }
  return program;
}

Kernel OpenClDevice::compile(const std::string& text) {
  const Api& cl = api();
  runtime::KernelCache& cache = runtime::kernel_cache();
  std::string key = runtime::KernelCache::key(text, options_, fingerprint_);
  cl_int status = CL_SUCCESS;
  if (const auto binary = cache.find(key)) {
    const auto* data = reinterpret_cast<const unsigned char*>(binary->data());
    const size_t size = binary->size();
    cl_int accepted = CL_SUCCESS;
    const cl_program program = cl.clCreateProgramWithBinary(context_, 1, &id_, &size, &data, &accepted, &status);
    if (status == CL_SUCCESS && accepted == CL_SUCCESS && cl.clBuildProgram(program, 1, &id_, "", nullptr, nullptr) == CL_SUCCESS) {
      const cl_kernel kernel = cl.clCreateKernel(program, "k", &status);
      if (status == CL_SUCCESS) return {kernel, nullptr, ""};
    }
    // A driver that does not know its own binary any more: as if there had been none.
    if (program) cl.clReleaseProgram(program);
  }
  const cl_program program = build(text);
  cache.count_compilation();
  const cl_kernel kernel = cl.clCreateKernel(program, "k", &status);
  check(status, "clCreateKernel");
  return {kernel, program, std::move(key)};
}

void OpenClDevice::ran(Kernel& kernel) {
  const Api& cl = api();
  runtime::KernelCache& cache = runtime::kernel_cache();
  size_t size = 0;
  if (cache.enabled() && cl.clGetProgramInfo(kernel.program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr) == CL_SUCCESS && size > 0) {
    std::string binary(size, '\0');
    char* data = binary.data();
    if (cl.clGetProgramInfo(kernel.program, CL_PROGRAM_BINARIES, sizeof data, &data, nullptr) == CL_SUCCESS) cache.store(kernel.key, binary);
  }
  cl.clReleaseProgram(kernel.program);
  kernel.program = nullptr;
  kernel.key = {};
}

}  // namespace naru::backends::opencl
