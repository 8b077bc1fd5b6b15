// Files of tensors in the safetensors format.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "naru/error.h"
#include "naru/io.h"
#include "naru/ops.h"

namespace naru {
namespace {

TEST(SafeTensors, ComeBackAsTheyWere) {
  const std::string path = (std::filesystem::temp_directory_path() / "naru_safetensors_test").string();
  SafeTensors s;
  s.tensors = {{"w", arange(0, 6, 1).reshape({2, 3})}, {"flags", ones({3}, Options(DType::Bool))}};
  s.metadata["note"] = "from C++";
  save_safetensors(path, s);
  const SafeTensors back = load_safetensors(path);
  std::remove(path.c_str());
  ASSERT_EQ(back.tensors.size(), 2u);
  EXPECT_EQ(back.tensors[0].first, "w");
  EXPECT_TRUE(equal(back.tensors[0].second, s.tensors[0].second));
  EXPECT_TRUE(equal(back.tensors[1].second, s.tensors[1].second));
  EXPECT_EQ(back.metadata, s.metadata);
}

TEST(SafeTensors, OutliveTheirFile) {
  const std::string path = (std::filesystem::temp_directory_path() / "naru_safetensors_gone").string();
  SafeTensors s;
  s.tensors = {{"w", full({1000}, 3)}};
  save_safetensors(path, s);
  Tensor w = load_safetensors(path).tensors[0].second;
  std::remove(path.c_str());
  w.add_(1);
  EXPECT_EQ(w.sum().item<double>(), 4000);
}

TEST(SafeTensors, EveryPrefixOfAFileIsAnError) {
  SafeTensors s;
  s.tensors = {{"a", ones({3})}, {"b", ones({2, 2}, Options(DType::I64))}};
  const std::string bytes = to_safetensors(s);
  EXPECT_NO_THROW(parse_safetensors(bytes));
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_THROW(parse_safetensors(std::string_view(bytes).substr(0, n)), ValueError) << n;
}

}  // namespace
}  // namespace naru
