#include "kernels/call/call.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "autograd/history/history.h"
#include "naru/ops.h"
#include "ops/tensor/common.h"

namespace naru {

using autograd::Edge;
using autograd::Node;
using autograd::Saved;
using ir::KernelParam;

namespace {

// Backward of a user kernel. grads are those of the kernel's outputs, in order. The edges lead to the inputs, then to the outputs' former values.
class KernelNode final : public Node {
 public:
  KernelNode(std::shared_ptr<const Kernel::Plan> plan, Extent extent)
      : Node("KernelBackward"), plan_(std::move(plan)), extent_(std::move(extent)) {}

  std::string name() const override { return plan_->entry().name + "Backward"; }
  void release_saved() override {
    const SavedGuard guard(*this);
    for (auto& [name, saved] : tensors_) saved.release();
  }
  void each_saved(const autograd::TensorVisitor& f) const override {
    const SavedGuard guard(*this);
    for (const auto& [name, saved] : tensors_) saved.visit(f);
  }

  std::vector<Tensor> apply(std::vector<Tensor> grads, autograd::Needed) override {
    const std::string& kernel = plan_->entry().name;
    if (!plan_->backward)
      throw RuntimeError(
          "derivative for the kernel '{}' is not known: give it one, as naru.kernel(source, '{}', backward=...), or call it under "
          "no_grad()",
          kernel, kernel);
    KernelContext context;
    context.extent = extent_;
    for (size_t i = 0; i < results.size(); ++i)
      context.grads.push_back(i < grads.size() && grads[i].defined() ? grads[i].contiguous() : zeros(results[i].sizes, results[i].options));
    context.argument = [this](const std::string& name) -> KernelArgument {
      if (const auto at = tensors_.find(name); at != tensors_.end()) {
        SavedGuard guard(*this);
        const Saved saved = at->second;
        guard.release();
        return saved.get(this);
      }
      if (const auto at = numbers_.find(name); at != numbers_.end()) return at->second;
      throw ValueError("backward of the kernel '{}': it has no parameter '{}'", plan_->entry().name, name);
    };
    std::vector<Tensor> found = plan_->backward(context);
    if (found.size() != inputs && found.size() != next().size())
      throw RuntimeError(
          "backward of the kernel '{}' returned {} gradients; wanted {}, one for each input, or {} with those of what the outputs held "
          "before",
          kernel, found.size(), inputs, next().size());
    found.resize(next().size());
    for (size_t i = 0; i < found.size(); ++i) found[i] = autograd::fit_gradient(std::move(found[i]), wanted[i], name(), i);
    return found;
  }

  void keep(const std::string& name, const Tensor& t) { tensors_.insert_or_assign(name, Saved(t)); }
  void keep(const std::string& name, Scalar s) { numbers_.insert_or_assign(name, s); }

  struct Result {
    Dims sizes;
    Options options;
  };
  std::vector<Result> results;               // one per output
  std::vector<autograd::TensorLike> wanted;  // one per edge
  size_t inputs = 0;

 private:
  const std::shared_ptr<const Kernel::Plan> plan_;
  const Extent extent_;
  std::map<std::string, Saved> tensors_;
  std::map<std::string, Scalar> numbers_;
};

// Links an output to its KernelNode. The first edge, for the output's former value, gets no gradient here: KernelNode has an edge for that.
class KernelOutputNode final : public Node {
 public:
  explicit KernelOutputNode(std::string name) : Node("KernelBackward"), text_(std::move(name)) {}
  std::string name() const override { return text_; }
  std::vector<Tensor> apply(std::vector<Tensor> grads, autograd::Needed) override { return {Tensor(), grads[0]}; }

 private:
  std::string text_;
};

struct Call {
  const std::vector<KernelParam>& params;
  std::span<const KernelArgument> arguments;
  template <class F>
  void each(bool constant, const F& f) const {
    for (size_t i = 0; i < params.size(); ++i)
      if (params[i].pointer && params[i].constant == constant) f(params[i], *arguments[i].tensor());
  }
};

// Makes the call's backward node, without its outputs, which end_record() adds after the call. Returns null if nothing is recorded.
Ref<KernelNode> begin_record(const std::shared_ptr<const Kernel::Plan>& plan, const Call& call, const Extent& extent) {
  if (!grad_enabled()) return {};
  bool needed = false;
  call.each(true, [&](const KernelParam&, const Tensor& t) { needed |= autograd::requires_grad(t); });
  call.each(false, [&](const KernelParam&, const Tensor& t) { needed |= autograd::recording_write(t); });
  if (!needed) return {};
  call.each(false, [&](const KernelParam& p, const Tensor& t) {
    autograd::check_in_place(t, fmt::format("kernel {}, parameter '{}'", plan->entry().name, p.name).c_str());
  });
  auto node = make_ref<KernelNode>(plan, extent);
  const auto connect = [&](const KernelParam&, const Tensor& t) {
    node->next().push_back(autograd::requires_grad(t) ? autograd::gradient_edge(t) : Edge{});
    node->wanted.emplace_back(t);
  };
  call.each(true, connect);
  node->inputs = node->next().size();
  call.each(false, connect);
  call.each(true, [&](const KernelParam& p, const Tensor& t) { node->keep(p.name, t); });
  for (size_t i = 0; i < call.params.size(); ++i)
    if (!call.params[i].pointer) node->keep(call.params[i].name, call.arguments[i].number());
  return node;
}

void end_record(const Ref<KernelNode>& node, const Call& call) {
  uint32_t output = 0;
  call.each(false, [&](const KernelParam& p, const Tensor& t) {
    node->results.push_back({t.sizes(), Options(t.dtype(), t.device())});
    // Detached: with its history it would form a reference cycle.
    node->keep(p.name, t.detach());
    const uint32_t number = output++;
    if (!is_inexact(t.dtype())) return;
    auto pass = make_ref<KernelOutputNode>(node->name());
    pass->next().push_back(Edge{});
    pass->next().push_back({Ref<Node>(node), number});
    autograd::rebase_history(t, Ref<Node>(pass));
  });
  node->outputs = output;
}

}  // namespace

Kernel::Kernel(const std::string& source, const std::string& name) : plan_(std::make_shared<Plan>()) {
  plan_->source = &ir::KernelSource::of(source);
  plan_->number = plan_->source->find(name);
  const auto& params = plan_->entry().params;
  if (std::none_of(params.begin(), params.end(), [](const KernelParam& p) { return p.pointer && !p.constant; }))
    throw ValueError(
        "naru.kernel: '{}' has nothing to write to: one of its parameters must be a pointer that is not const, as `float* out`", name);
}

Kernel& Kernel::set_backward(Backward backward) {
  plan_->backward = std::move(backward);
  return *this;
}

Kernel& Kernel::set_backward(const std::string& kernel) {
  const Kernel other(plan_->source->text(), kernel);
  return set_backward(ops::backward_by_kernel(*plan_, other, *other.plan_));
}

const std::string& Kernel::name() const { return plan_->entry().name; }

std::string Kernel::signature() const {
  std::vector<std::string> list;
  for (const KernelParam& p : plan_->entry().params) list.push_back(p.text());
  return fmt::format("kernel void {}({})", name(), fmt::join(list, ", "));
}

namespace {
template <class F>
std::vector<std::string> names_where(const Kernel::Plan& plan, const F& f) {
  std::vector<std::string> names;
  for (const KernelParam& p : plan.entry().params)
    if (f(p)) names.push_back(p.name);
  return names;
}
}  // namespace

std::vector<std::string> Kernel::parameters() const {
  return names_where(*plan_, [](const KernelParam&) { return true; });
}
std::vector<std::string> Kernel::inputs() const {
  return names_where(*plan_, [](const KernelParam& p) { return p.pointer && p.constant; });
}
std::vector<std::string> Kernel::outputs() const {
  return names_where(*plan_, [](const KernelParam& p) { return p.pointer && !p.constant; });
}

void Kernel::operator()(std::initializer_list<KernelArgument> arguments, const Extent& extent) const {
  (*this)(std::span<const KernelArgument>(arguments.begin(), arguments.size()), extent);
}
void Kernel::operator()(std::span<const KernelArgument> arguments, const Extent& extent) const {
  ir::UserKernel k = ops::check_call(*plan_, arguments, extent);
  const Call call{plan_->entry().params, arguments};
  const Ref<KernelNode> node = begin_record(plan_, call, extent);
  std::vector<const Tensor*> reads, writes;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (const Tensor* t = arguments[i].tensor()) {
      (call.params[i].constant ? reads : writes).push_back(t);
      k.memory.push_back(t->numel() == 0 ? nullptr : ops::view_of(*t, t->sizes()).data);
    }
  const Device device = ops::device_of(arguments);
  for (const Tensor* t : writes) autograd::before_write(*t);
  if (k.items[0] > 0 && k.items[1] > 0 && k.items[2] > 0) {
    ir::Instruction instruction = std::move(k);
    runtime::queue_of(device).stream().prepare(instruction);
    ops::submit(std::move(instruction), reads, writes);
  }
  for (const Tensor* t : writes) ops::bump_version(*t);
  if (node) end_record(node, call);
}

}  // namespace naru
