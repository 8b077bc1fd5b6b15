// Which of AMD's libraries are opened.
#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/gpu/vendor_library.h"
#include "backends/rocm/hipblaslt.h"

namespace naru::backends::rocm {
namespace {

TEST(RocmLibraries, the_hipblaslt_of_rocm_5_has_other_numbers_and_is_not_opened) {
  const char* const before = std::getenv("NARU_HIPBLASLT_LIBRARY");
  const std::string kept = before ? before : "";
  unsetenv("NARU_HIPBLASLT_LIBRARY");
  const runtime::Library none = open_library(Product::HipblasLt, 50731921);
  EXPECT_FALSE(none);
  EXPECT_EQ(none.trouble(), "there is none that can be used");
  const gpu::VendorLibrary<HipblasLt> library(50731921);
  EXPECT_EQ(library.get(), nullptr);
  EXPECT_EQ(library.text(), "own kernels for products (no hipBLASLt: install AMD's package hipblaslt, of ROCm 6 or newer)");
  // One that is named is opened: it is the user's choice.
  setenv("NARU_HIPBLASLT_LIBRARY", NARU_FAKES "/libhipblaslt.so", 1);
  EXPECT_TRUE(open_library(Product::HipblasLt, 50731921));
  before ? setenv("NARU_HIPBLASLT_LIBRARY", kept.c_str(), 1) : unsetenv("NARU_HIPBLASLT_LIBRARY");
}

}  // namespace
}  // namespace naru::backends::rocm
