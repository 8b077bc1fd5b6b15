#include "backends/opencl/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/aligned.h"
#include "naru/error.h"
#include "runtime/device/kernel_cache.h"
#include "runtime/os/fork.h"
#include "runtime/os/system.h"
#include "runtime/queue/streams.h"

namespace naru::backends::opencl {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

using runtime::system::page_bytes;

size_t in_pages(size_t bytes, size_t page) { return (bytes + page - 1) / page * page; }

cl_device_id find_device(const DeviceInfo& info) {
  const Api& cl = api();
  std::vector<cl_platform_id> platforms(static_cast<size_t>(info.platform) + 1);
  cl_uint count = 0;
  check(cl.clGetPlatformIDs(static_cast<cl_uint>(platforms.size()), platforms.data(), &count), "clGetPlatformIDs");
  std::vector<cl_device_id> devices(static_cast<size_t>(info.number) + 1);
  if (count >= platforms.size())
    check(cl.clGetDeviceIDs(platforms.back(), CL_DEVICE_TYPE_ALL, static_cast<cl_uint>(devices.size()), devices.data(), &count),
          "clGetDeviceIDs");
  if (count < devices.size())
    throw DeviceUnavailableError("OpenCL device '" + info.name + "' is gone. Restart the program; see `naru doctor`");
  return devices.back();
}

}  // namespace

OpenClDevice::OpenClDevice(Device device, const DeviceInfo& info)
    : device_(device),
      info_(info),
      process_(runtime::system::process_id()),
      generation_(runtime::fork_generation()),
      id_(find_device(info)) {
  cl_int status = CL_SUCCESS;
  context_ = api().clCreateContext(nullptr, 1, &id_, nullptr, nullptr, &status);
  check(status, "clCreateContext");
  options_ = "-w -cl-std=CL1.2";  // no warnings: some compilers print them themselves
  if (info_.arithmetic.exact_division) options_ += " -cl-fp32-correctly-rounded-divide-sqrt";
  fingerprint_ = info_.platform_name + "|" + info_.name + "|" + info_.driver + "|" + info_.version;
}

render::c::Target OpenClDevice::target() const {
  render::c::Target t;
  t.dialect = &render::c::opencl();
  // NARU_OPENCL_LOOPS: selects GPU-style kernels on a processor, or loop kernels on a GPU (for tests).
  const char* loops = std::getenv("NARU_OPENCL_LOOPS");
  t.loops = loops && *loops ? *loops != '0' : info_.cpu;
  t.lanes = info_.vector >= 16 ? 16 : 8;
  t.group = 64;
  while (t.group < 256 && static_cast<uint64_t>(t.group) * 2 <= info_.group) t.group *= 2;
  t.largest_group = t.group;  // of processors, too, whose compiler (PoCL's) takes minutes for large groups that meet at barriers
  while (!info_.cpu && t.largest_group < 1024 && static_cast<uint64_t>(t.largest_group) * 2 <= info_.group) t.largest_group *= 2;
  t.parameters = info_.parameters;
  if (info_.local_memory > 0) t.local = static_cast<int64_t>(std::min<uint64_t>(info_.local_memory, 48 << 10));
  t.units = static_cast<int>(std::max<uint64_t>(1, info_.units));
  t.arithmetic = info_.arithmetic;
  return t;
}

bool OpenClDevice::forked() const noexcept { return runtime::fork_generation() != generation_; }

void OpenClDevice::check_process() const {
  if (forked()) runtime::raise_forked(device_, process_);
}

bool OpenClDevice::get_shared(Piece& piece) const {
  piece.address = static_cast<char*>(api().clSVMAlloc(context_, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, piece.bytes, 0));
  if (!piece.address) return false;
  if (info_.cpu && piece.bytes >= kHugePage) {
    // Use huge pages for its whole pages, if possible.
    const size_t skip = in_pages(reinterpret_cast<uintptr_t>(piece.address), page_bytes()) - reinterpret_cast<uintptr_t>(piece.address);
    runtime::system::prefer_huge(piece.address + skip, (piece.bytes - skip) / page_bytes() * page_bytes());
  }
  return true;
}

// Alignment of the host memory of a piece.
size_t OpenClDevice::boundary_of(const Piece& piece) noexcept {
  return piece.bytes < kHugePage ? runtime::system::page_bytes() : kHugePage;
}

bool OpenClDevice::get_buffer(Piece& piece) const {
  void* const address = runtime::system::map_addresses(in_pages(piece.bytes, page_bytes()));
  if (!address) return false;
  piece.address = static_cast<char*>(address);
  if (info_.cpu) {
    // The device uses host memory that naru allocates, as it can be on huge pages.
    const size_t page = boundary_of(piece);
    piece.host = aligned_memory(in_pages(piece.bytes, page), page);
    if (piece.host && page == kHugePage) runtime::system::prefer_huge(piece.host, piece.bytes);
  }
  const cl_ulong kind = piece.host ? CL_MEM_USE_HOST_PTR : info_.unified ? CL_MEM_ALLOC_HOST_PTR : 0;
  cl_int status = CL_SUCCESS;
  if (piece.host || !info_.cpu) piece.memory = api().clCreateBuffer(context_, CL_MEM_READ_WRITE | kind, piece.bytes, piece.host, &status);
  if (piece.memory && status == CL_SUCCESS) return true;
  give_back(piece);
  return false;
}

void OpenClDevice::give_back(const Piece& piece) const noexcept {
  if (info_.shared) return api().clSVMFree(context_, piece.address);
  if (piece.memory) api().clReleaseMemObject(piece.memory);
  release_aligned(piece.host, boundary_of(piece));
  runtime::system::unmap(piece.address, in_pages(piece.bytes, page_bytes()));
}

void* OpenClDevice::allocate(size_t bytes) {
  check_process();
  const size_t taken = in_pages(bytes, page_bytes());
  const std::lock_guard lock(memory_mutex_);
  if (bytes > info_.largest_buffer || taken > info_.memory - std::min<uint64_t>(used_, info_.memory)) return nullptr;
  Piece piece{nullptr, bytes, nullptr, nullptr};
  if (!(info_.shared ? get_shared(piece) : get_buffer(piece))) return nullptr;
  try {
    pieces_.emplace(piece.address, piece);
  } catch (...) {
    give_back(piece);
    throw;
  }
  used_ += taken;
  return piece.address;
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
    used_ -= in_pages(piece.bytes, page_bytes());
  }
  releases_.fetch_add(1, std::memory_order_acq_rel);
  // The allocator has already waited for the work that uses the memory.
  give_back(piece);
}

size_t OpenClDevice::free_memory() const {
  const std::lock_guard lock(memory_mutex_);
  return info_.memory - std::min<uint64_t>(used_, info_.memory);
}

void* OpenClDevice::allocate_pinned(size_t bytes) {
  check_process();
  if (info_.cpu) return aligned_memory(in_pages(bytes, 64));
  const std::lock_guard lock(memory_mutex_);
  if (!mapping_) mapping_ = make_queue();
  cl_int status = CL_SUCCESS;
  OwnedMem memory(api().clCreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, nullptr, &status));
  if (status != CL_SUCCESS) return nullptr;
  void* const host =
      api().clEnqueueMapBuffer(mapping_.get(), memory.get(), 1, CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0, nullptr, nullptr, &status);
  if (status != CL_SUCCESS) return nullptr;
  pinned_.emplace(host, memory.get());  // if this throws, the object is released together with its mapping
  memory.release();
  return host;
}

void OpenClDevice::release_pinned(void* host) noexcept {
  if (info_.cpu) return release_aligned(host);
  if (forked()) return;
  const std::lock_guard lock(memory_mutex_);
  const auto at = pinned_.find(host);
  if (at == pinned_.end()) return;
  api().clEnqueueUnmapMemObject(mapping_.get(), at->second, host, 0, nullptr, nullptr);
  api().clFinish(mapping_.get());
  api().clReleaseMemObject(at->second);
  pinned_.erase(at);
}

OpenClDevice::BufferOffset OpenClDevice::place_of(const void* address, const char* what) const {
  if (info_.shared) return {address, 0};
  const auto* const p = static_cast<const char*>(address);
  const std::lock_guard lock(memory_mutex_);
  auto at = pieces_.upper_bound(p);
  if (at != pieces_.begin() && p < (--at)->first + at->second.bytes) return {at->second.memory, static_cast<size_t>(p - at->first)};
  throw RuntimeError("device {}: the {} is not in its memory (address {})", device_.str(), what, address);
}

void OpenClDevice::set_argument(cl_kernel kernel, cl_uint number, const void* memory) const {
  if (info_.shared && memory) return check(api().clSetKernelArgSVMPointer(kernel, number, memory), "clSetKernelArgSVMPointer");
  check(api().clSetKernelArg(kernel, number, sizeof(cl_mem), &memory), "clSetKernelArg");
}

void OpenClDevice::copy(cl_command_queue queue, Way way, void* to, const void* from, size_t bytes, bool wait, cl_event* event) const {
  const Api& cl = api();
  if (info_.shared) return check(cl.clEnqueueSVMMemcpy(queue, wait, to, from, bytes, 0, nullptr, event), "clEnqueueSVMMemcpy");
  const BufferOffset source = way == Way::In ? BufferOffset{from, 0} : place_of(from, "source of a copy"),
                     target = way == Way::Out ? BufferOffset{to, 0} : place_of(to, "target of a copy");
  const auto buffer = [](const BufferOffset& p) { return static_cast<cl_mem>(const_cast<void*>(p.memory)); };
  if (way == Way::In)
    return check(cl.clEnqueueWriteBuffer(queue, buffer(target), wait, target.offset, bytes, from, 0, nullptr, event),
                 "clEnqueueWriteBuffer");
  if (way == Way::Out)
    return check(cl.clEnqueueReadBuffer(queue, buffer(source), wait, source.offset, bytes, to, 0, nullptr, event), "clEnqueueReadBuffer");
  check(cl.clEnqueueCopyBuffer(queue, buffer(source), buffer(target), source.offset, target.offset, bytes, 0, nullptr, event),
        "clEnqueueCopyBuffer");
}

OwnedQueue OpenClDevice::make_queue(bool timed) {
  check_process();
  cl_int status = CL_SUCCESS;
  OwnedQueue queue(api().clCreateCommandQueue(context_, id_, timed ? CL_QUEUE_PROFILING_ENABLE : 0, &status));
  check(status, "clCreateCommandQueue");
  return queue;
}

Kernel& OpenClDevice::kernel_of(const render::c::Launch& launch, const render::c::Target& target) {
  return kernels_[target.loops].of(launch, [&] { return compile(launch.text()); });
}

OwnedProgram OpenClDevice::build(const std::string& text) {
  const Api& cl = api();
  const char* source = text.c_str();
  cl_int status = CL_SUCCESS;
  OwnedProgram program(cl.clCreateProgramWithSource(context_, 1, &source, nullptr, &status));
  check(status, "clCreateProgramWithSource");
  const cl_int built = cl.clBuildProgram(program.get(), 1, &id_, options_.c_str(), nullptr, nullptr);
  // Errors that are not caused by the source.
  if (built != CL_BUILD_PROGRAM_FAILURE) check(built, "clBuildProgram");
  if (built != CL_SUCCESS) {
    size_t size = 0;
    cl.clGetProgramBuildInfo(program.get(), id_, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
    std::string log(size, '\0');
    cl.clGetProgramBuildInfo(program.get(), id_, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
    throw render::c::CompilerError(fmt::format("device {}: its OpenCL compiler ({} {}) refused a kernel of naru's: {}\n{}", device_.str(),
                                               info_.platform_name, info_.driver, log.c_str(), text),
                                   fmt::format("the OpenCL compiler of {} ({} {})", device_.str(), info_.platform_name, info_.driver),
                                   log.c_str());
  }
  return program;
}

void OpenClDevice::check_group_memory(cl_kernel kernel) const {
  cl_ulong bytes = 0;
  if (api().clGetKernelWorkGroupInfo(kernel, id_, CL_KERNEL_LOCAL_MEM_SIZE, sizeof bytes, &bytes, nullptr) != CL_SUCCESS ||
      bytes <= info_.local_memory)
    return;
  throw RuntimeError("device {}: a kernel's shared arrays take {} bytes, and a group has {} there. Make them smaller", device_.str(), bytes,
                     info_.local_memory);
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
    const OwnedProgram program(cl.clCreateProgramWithBinary(context_, 1, &id_, &size, &data, &accepted, &status));
    if (status == CL_SUCCESS && accepted == CL_SUCCESS && cl.clBuildProgram(program.get(), 1, &id_, "", nullptr, nullptr) == CL_SUCCESS) {
      OwnedKernel kernel(cl.clCreateKernel(program.get(), "k", &status));  // the kernel retains the program
      if (status == CL_SUCCESS) {
        check_group_memory(kernel.get());
        return {std::move(kernel), nullptr, ""};
      }
    }
    // The driver no longer accepts its own cached binary: compile as if there were none.
  }
  OwnedProgram program = build(text);
  cache.count_compilation();
  OwnedKernel kernel(cl.clCreateKernel(program.get(), "k", &status));
  check(status, "clCreateKernel");
  check_group_memory(kernel.get());
  return {std::move(kernel), std::move(program), std::move(key)};
}

void OpenClDevice::ran(Kernel& kernel) {
  const Api& cl = api();
  runtime::KernelCache& cache = runtime::kernel_cache();
  const OwnedProgram program = std::move(kernel.program);
  const std::string key = std::exchange(kernel.key, {});
  size_t size = 0;
  if (cache.enabled() && cl.clGetProgramInfo(program.get(), CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr) == CL_SUCCESS &&
      size > 0) {
    std::string binary(size, '\0');
    char* data = binary.data();
    if (cl.clGetProgramInfo(program.get(), CL_PROGRAM_BINARIES, sizeof data, &data, nullptr) == CL_SUCCESS) cache.store(key, binary);
  }
}

}  // namespace naru::backends::opencl
