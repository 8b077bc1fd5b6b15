// One of NVIDIA's libraries, opened when it is first asked for; what stands in its way is said where libraries are listed.
#pragma once

#include <fmt/format.h>

#include <mutex>
#include <optional>
#include <string>

#include "backends/cuda/libraries.h"

namespace naru::backends::cuda {

// Functions: kProduct; `library`; find(), which looks for all functions; name(), "cuFFT 12.0.0"; cuda(), the version of CUDA that it is of (13), or
// 0 where it does not say. Thread-safe.
template <class Functions>
class VendorLibrary {
 public:
  // driver_version: 12080 is CUDA 12.8.
  explicit VendorLibrary(int driver_version) : driver_version_(driver_version) {}
  VendorLibrary(const VendorLibrary&) = delete;

  // Null where it can't be used; see text().
  const Functions* get() const {
    const std::lock_guard lock(mutex_);
    if (!functions_) {
      functions_.emplace();
      functions_->library = open_library(Functions::kProduct, driver_version_);
      functions_->find();
    }
    return functions_->library.trouble().empty() && !too_new() ? &*functions_ : nullptr;
  }
  // A device would not have it, with this status: as where the driver is too old.
  void refused(std::string status) const {
    const std::lock_guard lock(mutex_);
    refused_ = std::move(status);
  }
  // "cuFFT 12.0.0", or what is done without it, what is wrong and what to do about it.
  std::string text() const {
    const Functions* const f = get();
    const std::lock_guard lock(mutex_);
    if (f && refused_.empty()) return f->name();
    const std::string why = f                      ? fmt::format("{} failed to start with {}", f->name(), refused_)
                            : !functions_->library ? fmt::format("no {}", label_of(Functions::kProduct))
                            : too_new()            ? fmt::format("{} needs a driver of CUDA {}, this one is of CUDA {}", functions_->name(),
                                                                 functions_->cuda(), driver_version_ / 1000)
                                                   : functions_->library.trouble();
    return fmt::format("{} ({}: {})", without(Functions::kProduct), why, remedy_of(Functions::kProduct, driver_version_));
  }

 private:
  // Libraries run on drivers of their own CUDA version and of newer ones.
  bool too_new() const {
    return functions_->library.trouble().empty() && driver_version_ > 0 && functions_->cuda() > driver_version_ / 1000;
  }
  const int driver_version_;
  mutable std::mutex mutex_;
  mutable std::optional<Functions> functions_;
  mutable std::string refused_;
};

}  // namespace naru::backends::cuda
