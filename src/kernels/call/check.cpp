// Checks the arguments of user kernels against the parameters in the source.
#include <fmt/ranges.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "core/language.h"
#include "kernels/call/call.h"
#include "ops/tensor/common.h"

namespace naru::ops {
namespace {

using ir::CType;
using ir::KernelParam;

constexpr int64_t kMostThreads = 1024, kMostShared = 1 << 20;

// "float32" with PyTorch's prefix in Python; and the dtype as a caller writes it.
std::string type_name(DType t) { return fmt::format("{}{}", spelled("", "torch."), name_of(t)); }
std::string written(DType t) { return program_in_python() ? type_name(t) : fmt::format("parse_dtype(\"{}\")", name_of(t)); }
std::string parameter(const Kernel::Plan& plan, const KernelParam& p) {
  return fmt::format("{}(): parameter '{}' ({})", plan.entry().name, p.name, p.text());
}
std::string what(const Tensor& t) {
  return fmt::format("a {} tensor of shape {} on {}", type_name(t.dtype()), t.sizes().str(), t.device().str());
}

void check_tensor(const Kernel::Plan& plan, const KernelParam& p, const Tensor& t) {
  if (!t.defined()) throw TypeError("{} wants a tensor, got an undefined one", parameter(plan, p));
  const DType wanted = *ir::dtype_of(p.type);
  if (t.dtype() != wanted)
    throw TypeError("{} wants a {} tensor, got {}. {}", parameter(plan, p), type_name(wanted), what(t),
                    fmt::format(fmt::runtime(p.constant ? "Convert it: {1}.to({2})" : "Make it with {0}{2}"), spelled("", "dtype="), p.name,
                                written(wanted)));
  if (!t.is_contiguous())
    throw ValueError("{} wants a contiguous tensor, got {} with strides {}. {}", parameter(plan, p), what(t), t.strides().str(),
                     p.constant ? fmt::format("Pass {}.contiguous()", p.name) : "Pass a contiguous tensor and copy it over with copy_()");
}

template <class T>
uint64_t integer(const Kernel::Plan& plan, const KernelParam& p, Scalar s) {
  if (s.is_float())
    throw TypeError("{} wants an integer, got {}. Round it, or make the parameter a float", parameter(plan, p), s.to_double());
  const int64_t v = s.to_int();
  const bool fits = std::is_same_v<T, uint64_t> ? v >= 0
                                                : v >= static_cast<int64_t>(std::numeric_limits<T>::min()) &&
                                                      v <= static_cast<int64_t>(std::numeric_limits<T>::max());
  if (!fits) {
    const KernelParam& q = p;
    throw ValueError("{} holds {} to {}, got {}. Make the parameter {}", parameter(plan, q), std::numeric_limits<T>::min(),
                     std::numeric_limits<T>::max(), v, v < 0 ? "signed, as long" : "long");
  }
  return static_cast<uint64_t>(v);
}

uint64_t check_number(const Kernel::Plan& plan, const KernelParam& p, Scalar s) {
  uint64_t bits = 0;
  switch (p.type) {
    case CType::F32: {
      const double d = s.to_double();
      const auto f = static_cast<float>(d);
      if (std::isinf(f) && !std::isinf(d))
        throw ValueError("{} holds up to 3.4e38, got {}. Make the parameter a double", parameter(plan, p), d);
      std::memcpy(&bits, &f, 4);
      return bits;
    }
    case CType::F64: {
      const double d = s.to_double();
      std::memcpy(&bits, &d, 8);
      return bits;
    }
    case CType::Bool:
      if (!s.is_bool() && (s.is_float() || (s.to_int() != 0 && s.to_int() != 1)))
        throw TypeError("{} wants True or False, got {}", parameter(plan, p), s.to_double());
      return s.to_bool();
    case CType::I8:
      return integer<int8_t>(plan, p, s);
    case CType::U8:
      return integer<uint8_t>(plan, p, s);
    case CType::I16:
      return integer<int16_t>(plan, p, s);
    case CType::U16:
      return integer<uint16_t>(plan, p, s);
    case CType::I32:
      return integer<int32_t>(plan, p, s);
    case CType::U32:
      return integer<uint32_t>(plan, p, s);
    case CType::U64:
      return integer<uint64_t>(plan, p, s);
    default:
      return integer<int64_t>(plan, p, s);
  }
}

void check_device(const Kernel::Plan& plan, std::span<const KernelArgument> arguments) {
  const Tensor* first = nullptr;
  const char* name = nullptr;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Tensor* t = arguments[i].tensor();
    if (!t) continue;
    const KernelParam& p = plan.entry().params[i];
    if (!first) first = t, name = p.name.c_str();
    // Unlike in operators, a one-element tensor does not count as a scalar.
    if (t->device() != first->device())
      throw DeviceMismatchError(fmt::format(
          "Expected all tensors to be on the same device, but found at least two devices, {} and {}! ({}(): parameter '{}' is on {}, "
          "parameter '{}' on {}. Move it: {})",
          first->device().str(), t->device().str(), plan.entry().name, name, first->device().str(), p.name, t->device().str(),
          spelled_move(p.name, first->device())));
  }
}

void check_extent(const Kernel::Plan& plan, const Extent& e, const Device& device, ir::UserKernel& k) {
  const std::string& name = plan.entry().name;
  const auto three = [&](const Dims& dims, const char* which, int64_t least) {
    std::array<int64_t, 3> v{1, 1, 1};
    if (dims.size() > 3) throw ValueError("{}(): {}={} has {} dimensions; at most 3 are allowed", name, which, dims.str(), dims.size());
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] < least || dims[d] > (int64_t{1} << 40))
        throw ValueError("{}(): {}={}: each number must be {} or more, and less than 2**40", name, which, dims.str(), least);
      v[d] = dims[d];
    }
    return v;
  };
  const bool grid = !e.grid.empty(), blocks = !e.blocks.empty(), threads = !e.threads.empty();
  if (grid == blocks || (blocks && !threads))
    throw TypeError("{}(): say how many items run: either grid=n (exactly n), or blocks= and threads= (their product); got {}{}{}", name,
                    grid ? "grid " : "", blocks ? "blocks " : "",
                    threads          ? "threads"
                    : grid || blocks ? ""
                                     : "neither");
  if (threads)
    k.threads = three(e.threads, "threads", 1);
  else
    k.threads = e.grid.size() == 1   ? std::array<int64_t, 3>{256, 1, 1}
                : e.grid.size() == 2 ? std::array<int64_t, 3>{16, 16, 1}
                                     : std::array<int64_t, 3>{8, 8, 4};
  k.items = grid ? three(e.grid, "grid", 0) : three(e.blocks, "blocks", 1);
  const int most = runtime::properties(device).max_threads_per_block;
  const int64_t limit = most > 0 ? std::min<int64_t>(most, kMostThreads) : kMostThreads, all = k.threads[0] * k.threads[1] * k.threads[2];
  if (k.threads[0] > limit || k.threads[1] > limit || k.threads[2] > limit || all > limit) {
    throw ValueError("{}(): threads={} makes {} items a group; {} takes at most {}. Use fewer threads and more blocks", name,
                     e.threads.str(), all, device.str(), limit);
  }
  double items = 1;
  for (size_t d = 0; d < 3; ++d) {
    if (!grid) k.items[d] *= k.threads[d];
    items *= static_cast<double>(k.items[d]);
  }
  if (items > 0x1p60) throw ValueError("{}(): {} items are too many", name, items);
}

void check_shared(const Kernel::Plan& plan, int64_t bytes, ir::UserKernel& k) {
  if (bytes < 0 || bytes > kMostShared)
    throw ValueError("{}(): shared={}: wanted 0 to {} bytes of shared memory a group", plan.entry().name, bytes, kMostShared);
  if (!plan.entry().open_shared) return;
  if (bytes == 0)
    throw ValueError(
        "{}(): it has a shared array without a length: give its bytes, as shared=1024 (the third number of <<<blocks, threads, bytes>>>)",
        plan.entry().name);
  k.shared = bytes;
}

}  // namespace

Device device_of(std::span<const KernelArgument> arguments) {
  for (const KernelArgument& a : arguments)
    if (a.tensor()) return a.tensor()->impl()->storage->device;
  return Device();
}

ir::UserKernel check_call(const Kernel::Plan& plan, std::span<const KernelArgument> arguments, const Extent& extent) {
  const ir::KernelEntry& entry = plan.entry();
  if (arguments.size() != entry.params.size()) {
    std::vector<std::string> list;
    for (const KernelParam& p : entry.params) list.push_back(p.text());
    throw TypeError("{}(): takes {} arguments ({}), got {}", entry.name, entry.params.size(), fmt::format("{}", fmt::join(list, ", ")),
                    arguments.size());
  }
  ir::UserKernel k;
  k.source = plan.source;
  k.entry = plan.number;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const KernelParam& p = entry.params[i];
    const Tensor* t = arguments[i].tensor();
    if (p.pointer && !t)
      throw TypeError("{} wants a {} tensor, got a number. Pass a tensor of one element, or make the parameter a number",
                      parameter(plan, p), type_name(*ir::dtype_of(p.type)));
    if (!p.pointer && t)
      throw TypeError("{} wants a number, got {}. Pass {}.item(), or make the parameter a pointer", parameter(plan, p),
                      t->defined() ? what(*t) : "an undefined tensor", p.name);
    if (p.pointer)
      check_tensor(plan, p, *t);
    else
      k.numbers.push_back(check_number(plan, p, arguments[i].number()));
  }
  check_device(plan, arguments);
  const Device device = device_of(arguments);
  if (plan.source->native() && !runtime::backend_of(device.type).capabilities(device).cuda_source)
    k.source = &plan.source->in_dialect(plan.number), k.entry = 0;
  check_extent(plan, extent, device, k);
  check_shared(plan, extent.shared, k);
  return k;
}

}  // namespace naru::ops
