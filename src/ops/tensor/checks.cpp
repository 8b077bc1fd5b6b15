// Checks of operands before operators compute.
#include <fmt/format.h>

#include "core/language.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru {
namespace ops {

void require_defined(const Tensor& t, const char* op, const char* role) {
  if (!t.defined()) throw RuntimeError("{}: {} is an undefined tensor; wanted a tensor", op, role);
}

namespace {

std::string describe(const Tensor& t, const char* role) {
  const TensorImpl& i = *t.impl();
  std::string text = fmt::format("\n  {}: shape {}, {}, on {}", role, i.sizes.str(), name_of(i.dtype), t.device().str());
  if (i.origin.where)
    text += fmt::format(", made by {} at {}", i.origin.op ? i.origin.op : "an operator", line_text(i.origin.where));
  else if (i.origin.op)
    text += fmt::format(", made by {}", i.origin.op);
  return text;
}

// PyTorch's text if one of the devices is meta: the first operand's device is the expected one.
std::string meta_mismatch(std::span<const Tensor* const> tensors) {
  const Device expected = tensors[0]->device();
  for (const Tensor* t : tensors)
    if (t->defined() && t->device() != expected && (t->device().is_meta() || expected.is_meta()))
      return fmt::format("Tensor on device {} is not on the expected device {}!", t->device().str(), expected.str());
  return {};
}

}  // namespace

void throw_device_mismatch(std::span<const Tensor* const> tensors, std::span<const char* const> roles, const char* op, Device first,
                           Device second) {
  // PyTorch names the accelerator first, and cpu without an index.
  if (first.is_cpu()) std::swap(first, second);
  if (second.is_cpu()) second = Device(DeviceType::Cpu);
  std::string text = meta_mismatch(tensors);
  if (text.empty())
    text = fmt::format("Expected all tensors to be on the same device, but found at least two devices, {} and {}! (operator {})",
                       first.str(), second.str(), op);
  std::string odd;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i]->defined()) continue;
    text += describe(*tensors[i], roles[i]);
    if (odd.empty() && tensors[i]->device() == second) odd = roles[i];
  }
  throw DeviceMismatchError(text + fmt::format("\n  To fix it, move {0} first: {0} = {1}", odd, spelled_move(odd, first)));
}

Device common_device(std::span<const Tensor* const> tensors, std::span<const char* const> roles, const char* op) {
  Device found = tensors[0]->impl()->storage->device;
  bool found_is_number = tensors[0]->impl()->sizes.empty();
  for (size_t i = 1; i < tensors.size(); ++i) {
    if (!tensors[i]->defined()) continue;
    const Device d = tensors[i]->impl()->storage->device;
    if (d == found) {
      found_is_number &= tensors[i]->impl()->sizes.empty();
    } else if (d.is_cpu() && tensors[i]->impl()->sizes.empty()) {
      continue;
    } else if (found.is_cpu() && found_is_number) {
      found = d;
      found_is_number = tensors[i]->impl()->sizes.empty();
    } else {
      throw_device_mismatch(tensors, roles, op, found.is_cpu() ? d : found, found.is_cpu() ? found : d);
    }
  }
  return found;
}

void require_distinct_elements(const Tensor& target, const char* op, const char* ending) {
  const TensorImpl& t = *target.impl();
  for (size_t i = 0; i < t.sizes.size(); ++i)
    if (t.sizes[i] > 1 && t.strides[i] == 0 && t.numel > 0)
      throw RuntimeError(
          "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
          "Please clone() the tensor before performing the operation. ({}{})",
          op, ending);
}

void throw_not_implemented(std::string_view kernel, DType type) {
  throw NotImplementedError("\"{}\" not implemented for '{}'", kernel, torch_name(type));
}

void refuse_bool(DType t, const char* kernel) {
  if (t == DType::Bool) throw NotImplementedError("\"{}\" not implemented for 'Bool' (convert to numbers first)", kernel);
}

void require_floating(DType t, const char* kernel) {
  if (!is_floating(t))
    throw NotImplementedError("\"{}\" not implemented for '{}' (convert to floating point first)", kernel, torch_name(t));
}

}  // namespace ops
}  // namespace naru
