// A vendor's library, opened on first use. If it can't be used, the list of libraries shows the reason.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "runtime/os/library.h"

namespace naru::backends::gpu {

// For a list LIST(F) of F(result, name, (parameters)): declares a function pointer for each, and find(), which looks all of them up in
// `library`.
#define NARU_DECLARE_FUNCTION(result, name, parameters) result(*name) parameters = nullptr;
#define NARU_FIND_FUNCTION(result, name, parameters) library.find(name, #name);
#define NARU_FUNCTIONS(LIST)  \
  LIST(NARU_DECLARE_FUNCTION) \
  void find() { LIST(NARU_FIND_FUNCTION) }
// For a list LIST(F) of F(name, number): the enumerators, and a table of their names.
#define NARU_ENUMERATOR(name, number) name = number,
#define NARU_STATUS(name, number) {number, #name},
#define NARU_STATUSES(LIST) \
  { LIST(NARU_STATUS) }
struct Status {
  int number;
  const char* name;
};

// Requirements on a library's struct of functions. kProduct is of the vendor's enumeration of products, beside which there are
//   const char* label_of(Product)                             "cuFFT"
//   const char* without(Product)                              what happens without it: "Fourier transforms on the cpu"
//   std::string remedy_of(Product, int driver_version)        what to install
//   runtime::Library open_library(Product, int driver_version)
// version() / kMajor is the major version. cuda() is the CUDA version that it belongs to (13), or 0 if it belongs to none.
template <class F>
concept VendorFunctions = requires(F f) {
  { label_of(F::kProduct) } -> std::convertible_to<std::string>;
  { F::kStatuses[0] } -> std::convertible_to<Status>;
  { F::kMajor } -> std::convertible_to<int>;
  f.library.trouble();
  f.find();
  { f.version() } -> std::same_as<int>;
  { f.cuda() } -> std::same_as<int>;
};

// "CUFFT_INVALID_SIZE"
inline std::string status_name(std::span<const Status> statuses, int status) {
  for (const Status& s : statuses)
    if (s.number == status) return s.name;
  return fmt::format("status {}", status);
}
template <class F>
std::string status_name(int status) {
  return status_name(F::kStatuses, status);
}
// "cuFFT 12.0.0"; without a version if the library does not tell it without a device.
template <VendorFunctions F>
std::string name_of(const F& functions) {
  const int v = functions.version();
  if (v == 0) return label_of(F::kProduct);
  return fmt::format("{} {}.{}.{}", label_of(F::kProduct), v / F::kMajor, v % F::kMajor / 100, v % 100);
}

// Thread-safe.
template <VendorFunctions Functions>
class VendorLibrary {
 public:
  // driver_version: as the driver counts; for CUDA 12080 is 12.8.
  explicit VendorLibrary(int driver_version) : driver_version_(driver_version) {}
  VendorLibrary(const VendorLibrary&) = delete;

  // Null if it can't be used; text() tells why.
  const Functions* get() const {
    const std::lock_guard lock(mutex_);
    if (!functions_) {
      functions_.emplace();
      functions_->library = open_library(Functions::kProduct, driver_version_);
      functions_->find();
    }
    return functions_->library.trouble().empty() && !too_new() ? &*functions_ : nullptr;
  }
  // Records that a device rejected the library with this status, as when the driver is too old.
  void refused(int status) const {
    const std::lock_guard lock(mutex_);
    refused_ = status_name<Functions>(status);
  }
  // "cuFFT 12.0.0", or what happens without it, what is wrong, and how to fix it.
  std::string text() const {
    const Functions* const f = get();
    const std::lock_guard lock(mutex_);
    if (f && refused_.empty()) return name_of(*f);
    const std::string why = f                      ? fmt::format("{} failed to start with {}", name_of(*f), refused_)
                            : !functions_->library ? fmt::format("no {}", label_of(Functions::kProduct))
                            : too_new() ? fmt::format("{} needs a driver of CUDA {}, this one is of CUDA {}", name_of(*functions_),
                                                      functions_->cuda(), driver_version_ / 1000)
                                        : functions_->library.trouble();
    return fmt::format("{} ({}: {})", without(Functions::kProduct), why, remedy_of(Functions::kProduct, driver_version_));
  }

 private:
  // A library needs a driver of its CUDA version or a newer one.
  bool too_new() const {
    return functions_->library.trouble().empty() && driver_version_ > 0 && functions_->cuda() > driver_version_ / 1000;
  }
  const int driver_version_;
  mutable std::mutex mutex_;
  mutable std::optional<Functions> functions_;
  mutable std::string refused_;
};

}  // namespace naru::backends::gpu
