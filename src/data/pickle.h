// Writes and reads pickles in torch.save's format. Reading calls no Python code: a small virtual machine knows only the functions that rebuild
// tensors and plain containers. It uses at most a constant multiple of the pickle's length in memory.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "naru/io/value.h"

namespace naru::data {

struct Pickled {
  std::string text;
  std::vector<Tensor> storages;  // the storages with keys "0", "1" ...: each as a 1-D tensor of all its elements
};
// Throws ValueError for values nested too deeply and for strings that are not UTF-8; RuntimeError for dtypes without a PyTorch storage type.
Pickled pickle(const Value& value);

// A storage that the pickle refers to. The dtype is bytes for an UntypedStorage, which is viewed as another type later.
struct StorageId {
  std::string key, location;
  DType dtype;
  int64_t numel;
};
// Throws RuntimeError ("Weights only load failed. ...") for a pickle that is invalid or contains more than data.
Value unpickle(std::string_view text, const std::function<Tensor(const StorageId&)>& storage);

constexpr int kMostNested = 1000;

}  // namespace naru::data
