// Pickles as torch.save writes them, to values and from them. Reading calls nothing: a pickle is run by a small machine that knows the functions that
// rebuild tensors and plain containers, and takes no more memory than a multiple of the pickle's length.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "naru/value.h"

namespace naru::data {

struct Pickled {
  std::string text;
  std::vector<Tensor> storages;  // what the text calls "0", "1" ...: all elements of each, in one dimension
};
// Throws ValueError for what is nested too deeply and for texts that are no UTF-8, RuntimeError for a type that PyTorch's files have no storage of.
Pickled pickle(const Value& value);

// A storage that the file refers to. Bytes: what is seen as another type later (UntypedStorage).
struct StorageId {
  std::string key, location;
  DType dtype;
  int64_t numel;
};
// Throws RuntimeError ("Weights only load failed. ...") for a pickle that is more than data, or not valid.
Value unpickle(std::string_view text, const std::function<Tensor(const StorageId&)>& storage);

constexpr int kMostNested = 1000;

}  // namespace naru::data
