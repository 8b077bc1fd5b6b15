// The backward of a kernel by another kernel of the same source.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/call/call.h"
#include "naru/ops.h"

namespace naru::ops {
namespace {

using ir::KernelParam;

// The origin of an argument of the backward kernel.
struct Part {
  enum class From { Argument, GradOfOutput, GradOfInput, GradInPlace } from;
  size_t number = 0;  // index of the output or input
  std::string name;
};

constexpr std::string_view kGrad = "grad_";

const KernelParam* find(const std::vector<KernelParam>& params, std::string_view name) {
  const auto at = std::find_if(params.begin(), params.end(), [&](const KernelParam& p) { return p.name == name; });
  return at == params.end() ? nullptr : &*at;
}

size_t number_of(const std::vector<KernelParam>& params, const KernelParam& p) {
  return static_cast<size_t>(std::count_if(params.data(), &p, [&](const KernelParam& q) { return q.pointer && q.constant == p.constant; }));
}

Part part_of(const Kernel::Plan& forward, const Kernel::Plan& plan, const KernelParam& p) {
  const auto& params = forward.entry().params;
  const auto wrong = [&](const std::string& why) {
    return ValueError("naru.kernel: parameter '{}' ({}) of '{}', the backward of '{}', {}", p.name, p.text(), plan.entry().name,
                      forward.entry().name, why);
  };
  if (const KernelParam* of = find(params, p.name)) {
    if (p.type != of->type || p.pointer != of->pointer) throw wrong(fmt::format("differs from the forward's {}", of->text()));
    if (p.pointer && !p.constant) throw wrong("is a forward argument, which must be const here");
    return {Part::From::Argument, 0, p.name};
  }
  const KernelParam* of = p.name.starts_with(kGrad) ? find(params, std::string_view(p.name).substr(kGrad.size())) : nullptr;
  if (!of || !of->pointer) throw wrong("is neither a forward argument nor grad_X for one of its tensors X");
  if (p.type != of->type || !p.pointer) throw wrong(fmt::format("must be a pointer of the type of the forward's {}", of->text()));
  if (of->constant && p.constant)
    throw wrong(fmt::format("is the gradient of the input '{}', which is to be written: it can't be const", of->name));
  return {of->constant ? Part::From::GradOfInput
          : p.constant ? Part::From::GradOfOutput
                       : Part::From::GradInPlace,
          number_of(params, *of), of->name};
}

}  // namespace

Kernel::Backward backward_by_kernel(const Kernel::Plan& forward, const Kernel& backward, const Kernel::Plan& plan) {
  std::vector<Part> parts;
  for (const KernelParam& p : plan.entry().params) parts.push_back(part_of(forward, plan, p));
  const auto& params = forward.entry().params;
  const auto pointers = [&](bool constant) {
    return static_cast<size_t>(
        std::count_if(params.begin(), params.end(), [&](const KernelParam& p) { return p.pointer && p.constant == constant; }));
  };
  return [parts, backward, inputs = pointers(true), outputs = pointers(false)](const KernelContext& context) {
    std::vector<Tensor> found(inputs + outputs);
    std::vector<KernelArgument> arguments;
    for (const Part& part : parts) switch (part.from) {
        case Part::From::Argument:
          arguments.push_back(context.argument(part.name));
          break;
        case Part::From::GradOfOutput:
          arguments.emplace_back(context.grads[part.number]);
          break;
        case Part::From::GradInPlace:
          found[inputs + part.number] = context.grads[part.number].clone();
          arguments.emplace_back(found[inputs + part.number]);
          break;
        case Part::From::GradOfInput: {
          const KernelArgument x = context.argument(part.name);
          found[part.number] = zeros(x.tensor()->sizes(), Options(x.tensor()->dtype(), x.tensor()->device()));
          arguments.emplace_back(found[part.number]);
          break;
        }
      }
    backward(arguments, context.extent);
    return found;
  };
}

}  // namespace naru::ops
