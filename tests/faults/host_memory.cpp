#include "host_memory.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>

namespace naru::faults {
namespace {

struct Range {
  uintptr_t begin = 0, end = 0;
  bool holds(uintptr_t address) const noexcept { return address >= begin && address < end; }
};

// The address range of the library that contains `function`.
Range range_of(const void* function) noexcept {
  struct Search {
    uintptr_t address;
    Range found;
  } search{reinterpret_cast<uintptr_t>(function), {}};
  dl_iterate_phdr(
      [](dl_phdr_info* library, size_t, void* data) {
        auto& s = *static_cast<Search*>(data);
        for (int i = 0; i < library->dlpi_phnum; ++i) {
          const auto& part = library->dlpi_phdr[i];
          const Range range{library->dlpi_addr + part.p_vaddr, library->dlpi_addr + part.p_vaddr + part.p_memsz};
          if (part.p_type == PT_LOAD && (part.p_flags & PF_X) && range.holds(s.address)) s.found = range;
        }
        return 0;
      },
      &search);
  return search.found;
}

std::atomic<int64_t> left{0};  // allocations until the one that fails; 0: none will
std::atomic<bool> with_library{true};
Range program, library;

bool fails(const void* caller) noexcept {
  if (left.load(std::memory_order_relaxed) <= 0) return false;
  const auto address = reinterpret_cast<uintptr_t>(caller);
  if (!program.holds(address) && !(with_library.load(std::memory_order_relaxed) && library.holds(address))) return false;
  return left.fetch_sub(1, std::memory_order_relaxed) == 1;
}

bool armed = false;

}  // namespace

void fail_request(uint64_t n, Callers callers) noexcept {
  if (!program.end) {
    program = range_of(reinterpret_cast<const void*>(&fail_request));
    library = range_of(dlsym(RTLD_DEFAULT, "_ZNSt9exceptionD1Ev"));
  }
  with_library = callers == Callers::AndStandardLibrary;
  armed = n != 0;
  left = static_cast<int64_t>(n);
}

bool stop_failing() noexcept { return left.exchange(0) <= 0 && armed; }

namespace {

void* take(size_t bytes, const void* caller) {
  if (void* const p = fails(caller) ? nullptr : std::malloc(bytes ? bytes : 1)) return p;
  throw std::bad_alloc();
}
void* aligned(size_t bytes, std::align_val_t alignment, const void* caller) noexcept {
  void* p = nullptr;
  return !fails(caller) && posix_memalign(&p, static_cast<size_t>(alignment), bytes ? bytes : 1) == 0 ? p : nullptr;
}
void* take(size_t bytes, std::align_val_t alignment, const void* caller) {
  if (void* const p = aligned(bytes, alignment, caller)) return p;
  throw std::bad_alloc();
}

}  // namespace
}  // namespace naru::faults

using naru::faults::aligned;
using naru::faults::fails;
using naru::faults::take;
#define CALLER __builtin_return_address(0)

void* operator new(size_t bytes) { return take(bytes, CALLER); }
void* operator new[](size_t bytes) { return take(bytes, CALLER); }
void* operator new(size_t bytes, std::align_val_t a) { return take(bytes, a, CALLER); }
void* operator new[](size_t bytes, std::align_val_t a) { return take(bytes, a, CALLER); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return fails(CALLER) ? nullptr : std::malloc(bytes ? bytes : 1); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return fails(CALLER) ? nullptr : std::malloc(bytes ? bytes : 1); }
// naru's allocators use this form.
void* operator new(size_t bytes, std::align_val_t a, const std::nothrow_t&) noexcept { return aligned(bytes, a, CALLER); }
void* operator new[](size_t bytes, std::align_val_t a, const std::nothrow_t&) noexcept { return aligned(bytes, a, CALLER); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t, const std::nothrow_t&) noexcept { std::free(p); }
