// Checks of writes to memory that the same call reads.
#include "object/overlap.h"

#include <algorithm>
#include <vector>

#include "autograd/graph/batch.h"
#include "naru/autograd.h"
#include "ops/shape/strides.h"

namespace naru::py {
namespace {

bool one_storage(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return false;
  const TensorImpl &x = *a.impl(), &y = *b.impl();
  if (x.special & y.special & kBatched) return one_storage(batch_parts(a).value, batch_parts(b).value);
  return x.storage && x.storage.get() == y.storage.get() && x.numel > 0 && y.numel > 0;
}

// How the memory of two dense tensors overlaps (PyTorch's MemOverlapStatus). Tensors that are not dense count as None.
enum class Overlap : uint8_t { None, Full, Partial };
Overlap overlap_of(const Tensor& a, const Tensor& b) {
  if (!one_storage(a, b)) return Overlap::None;
  const TensorImpl &x = *a.impl(), &y = *b.impl();
  if (&x == &y) return Overlap::Full;
  if (!ops::is_dense(x.sizes, x.strides) || !ops::is_dense(y.sizes, y.strides)) return Overlap::None;
  const auto byte_range = [](const TensorImpl& t) {
    const auto size = static_cast<int64_t>(size_of(t.dtype));
    return std::pair(t.offset * size, (t.offset + t.numel) * size);
  };
  const auto p = byte_range(x), q = byte_range(y);
  if (p.first >= q.second || q.first >= p.second) return Overlap::None;
  return p == q && x.strides == y.strides ? Overlap::Full : Overlap::Partial;
}

}  // namespace

Sharing sharing_of(std::string_view function) {
  const bool in_place = function.ends_with('_');
  const std::string_view name = in_place ? function.substr(0, function.size() - 1) : function;
  const operators::Record& record = operators::record_of(name);
  if (const Sharing known = in_place ? record.in_place : record.sharing; known != Sharing::Same) return known;
  const bool unchecked = name.starts_with("linalg_") || name.starts_with("fft_") || (name.ends_with("_copy") && name != "index_copy");
  return unchecked ? Sharing::Any : Sharing::Same;
}

void check_sharing(const char* function, Sharing sharing, const Tensor& written, const Tensor& read) {
  if (sharing == Sharing::Any || (sharing == Sharing::Fill && read.dim() == 0)) return;
  if (const Overlap m = overlap_of(written, read); m == Overlap::None || (m == Overlap::Full && sharing != Sharing::Apart)) return;
  throw RuntimeError(
      "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please "
      "clone() the tensor before performing the operation. ({})",
      function);
}

void check_sharing(const char* function, Sharing sharing, const Tensor& written, std::span<PyObject* const> arguments) {
  if (sharing == Sharing::Any) return;
  const auto check = [&](PyObject* o) {
    if (o && is_tensor(o)) check_sharing(function, sharing, written, tensor_of(o));
  };
  for (PyObject* const argument : arguments) {
    check(argument);
    if (!argument || !(PyList_CheckExact(argument) || PyTuple_CheckExact(argument))) continue;
    // Nested lists are not searched: they may contain themselves, and no function takes tensors in them.
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(argument); ++i) check(PySequence_Fast_GET_ITEM(argument, i));
  }
}

void check_assignment(const Tensor& target, std::span<const Index> parts, const Tensor& value) {
  const auto shared = [&](const Index& i) { return i.kind == Index::Kind::Tensor && one_storage(target, i.tensor); };
  if (!one_storage(target, value) && std::ranges::none_of(parts, shared)) return;
  // Index tensors and masks select within the view that the other parts give.
  std::vector<Index> rest;
  size_t tensors = 0, masks = 0;
  for (const Index& i : parts) {
    if (i.kind == Index::Kind::Bool) return;
    if (i.kind != Index::Kind::Tensor) {
      rest.push_back(i);
      continue;
    }
    const bool mask = i.tensor.dtype() == DType::Bool || i.tensor.dtype() == DType::U8;
    ++tensors, masks += mask;
    for (int64_t d = 0; d < (mask ? i.tensor.dim() : 1); ++d) rest.push_back(Index(Slice()));
  }
  const NoGrad off;
  const Tensor view = target.index(rest);
  for (const Index& i : parts)
    if (i.kind == Index::Kind::Tensor) check_sharing("index_put_", Sharing::Apart, view, i.tensor);
  if (!value.defined()) return;
  Tensor v = value;
  while (v.dim() > view.dim() && v.size(0) == 1) v = v.squeeze(0);
  const bool filled = value.dim() == 0 && tensors == masks && tensors < 2;  // a 0-d value, through at most one mask
  // A value that is broadcast is not dense, so only one of the view's size can overlap it.
  if (!filled && (tensors || v.numel() == view.numel())) check_sharing("index_put_", tensors ? Sharing::Apart : Sharing::Same, view, v);
}

}  // namespace naru::py
