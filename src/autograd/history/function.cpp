#include "autograd/history/function.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>

#include "naru/autograd/function.h"
#include "naru/ops.h"

namespace naru::autograd {

std::vector<Tensor> SavedTensors::get() {
  std::vector<Tensor> list;
  Ref<Node> alive;  // destroyed after unlocking
  std::vector<Saved> copies;
  {
    const std::lock_guard lock(mutex_);
    if (node_ && node_->try_retain()) alive = Ref<Node>::adopt(const_cast<Node*>(node_));
    copies = saved_;
  }
  for (const Saved& s : copies) list.push_back(s.get(alive.get()));  // without the lock, because saved-tensor hooks may run any code
  return list;
}

void SavedTensors::add(const Tensor& t, bool output, uint32_t number) {
  Saved saved(t, output, number);
  const std::lock_guard lock(mutex_);
  saved_.push_back(std::move(saved));
}

void SavedTensors::release() {
  const std::lock_guard lock(mutex_);
  for (Saved& s : saved_) s.release();
}

void SavedTensors::visit(const TensorVisitor& f) {
  const std::lock_guard lock(mutex_);
  for (const Saved& s : saved_) s.visit(f);
}

void SavedTensors::belong_to(const Node* node) {
  const std::lock_guard lock(mutex_);
  node_ = node;
}

namespace {

class UserNode final : public Node {
 public:
  UserNode(FunctionCall call, std::shared_ptr<SavedTensors> saved, std::span<const Tensor> outputs, std::vector<size_t> differentiable)
      : Node("UserFunction"),
        text_(std::move(call.name)),
        backward_(std::move(call.backward)),
        object_(std::move(call.object)),
        materialize_(call.materialize),
        saved_(std::move(saved)),
        differentiable_(std::move(differentiable)) {
    for (const Tensor& t : call.inputs) wanted_.push_back(t.defined() ? TensorLike(t) : TensorLike());
    for (const Tensor& t : outputs) like_.push_back(t.defined() ? TensorLike(t) : TensorLike()), given_.push_back(t.defined());
    observe();
    saved_->belong_to(this);
  }
  ~UserNode() override { saved_->belong_to(nullptr); }
  std::string name() const override { return text_; }
  void* python_object() const override { return object_.get(); }
  std::vector<Tensor> apply(std::vector<Tensor> grads, Needed needed) override {
    std::vector<Tensor> full(like_.size());
    for (size_t k = 0; k < differentiable_.size(); ++k) full[differentiable_[k]] = std::move(grads[k]);
    if (materialize_)
      for (size_t i = 0; i < full.size(); ++i)
        if (!full[i].defined() && given_[i]) full[i] = zeros(like_[i].sizes, Options(like_[i].dtype, like_[i].device));
    std::vector<Tensor> found = backward_(std::move(full), needed);
    found.resize(next().size());
    for (size_t i = 0; i < found.size(); ++i)
      if (next()[i].node) found[i] = fit_gradient(std::move(found[i]), wanted_[i], text_, i);
    return found;
  }
  void release_saved() override { saved_->release(); }
  void each_saved(const TensorVisitor& f) const override { saved_->visit(f); }

 private:
  std::string text_;
  std::function<std::vector<Tensor>(std::vector<Tensor>, Needed)> backward_;
  std::shared_ptr<void> object_;
  bool materialize_;
  std::shared_ptr<SavedTensors> saved_;
  std::vector<size_t> differentiable_;  // for each output of the node, the index of the function's output
  std::vector<TensorLike> wanted_, like_;
  std::vector<bool> given_;  // which outputs are tensors
};

bool contains(std::span<const Tensor> list, const Tensor& t) {
  return std::any_of(list.begin(), list.end(), [&](const Tensor& each) { return each.is(t); });
}

// Makes `node` the history of its results. An input that forward modified and returned is rebased. A result that is a view refuses later
// in-place writes, because they would bypass the function.
void connect_results(const Ref<Node>& node, std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
  connect(*node, inputs);
  node->outputs = static_cast<uint32_t>(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& out = outputs[i];
    if (contains(inputs, out)) {
      check_in_place(out, "an autograd.Function");
      rebase_history(out, node);
    } else {
      set_history(out, node, static_cast<uint32_t>(i));
      if (out.impl()->base) out.impl()->view_kind = ViewKind::OfFunction;
    }
  }
}

}  // namespace

std::shared_ptr<SavedTensors> record_function(FunctionCall call, std::span<Tensor> outputs) {
  for (const Tensor& t : call.dirty)
    if (!contains(outputs, t))
      throw RuntimeError(
          "Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified inplace must "
          "all be outputs of the Function. ({})",
          call.name);
  std::vector<size_t> differentiable;
  std::vector<Tensor> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    Tensor& out = outputs[i];
    if (!out.defined() || contains(call.fixed, out) || !is_inexact(out.dtype())) continue;
    if (contains(call.inputs, out) && !contains(call.dirty, out)) out = out.view(out.sizes());
    differentiable.push_back(i);
    results.push_back(out);
  }
  if (results.empty()) return nullptr;
  auto saved = std::make_shared<SavedTensors>();
  const std::vector<Tensor> inputs = call.inputs, kept = std::move(call.saved);
  const Ref<Node> node = make_ref<UserNode>(std::move(call), saved, outputs, std::move(differentiable));
  connect_results(node, inputs, results);
  for (const Tensor& t : kept) {
    const auto at = t.defined() ? std::find_if(results.begin(), results.end(), [&](const Tensor& r) { return r.is(t); }) : results.end();
    saved->add(t, at != results.end(), at != results.end() ? static_cast<uint32_t>(at - results.begin()) : 0);
  }
  return saved;
}

// --- the C++ API

double Value::to_double() const {
  if (const auto* d = std::any_cast<double>(&held_)) return *d;
  if (const auto* i = std::any_cast<int64_t>(&held_)) return static_cast<double>(*i);
  if (const auto* b = std::any_cast<bool>(&held_)) return *b;
  throw_wrong_type(typeid(double));
}
int64_t Value::to_int() const {
  if (const auto* i = std::any_cast<int64_t>(&held_)) return *i;
  if (const auto* b = std::any_cast<bool>(&held_)) return *b;
  throw_wrong_type(typeid(int64_t));
}
bool Value::to_bool() const {
  if (const auto* b = std::any_cast<bool>(&held_)) return *b;
  if (const auto* i = std::any_cast<int64_t>(&held_)) return *i != 0;
  throw_wrong_type(typeid(bool));
}

namespace {

std::string type_name(const std::type_info& type) {
  int status = 0;
  char* text = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string name = status == 0 && text ? text : type.name();
  std::free(text);
  return name;
}

// "Cube": the unqualified name of a class.
std::string short_type_name(const std::type_info& type) {
  std::string name = type_name(type);
  name = name.substr(0, name.find('<'));
  const size_t colons = name.rfind("::");
  return colons == std::string::npos ? name : name.substr(colons + 2);
}

}  // namespace

void Value::throw_wrong_type(const std::type_info& wanted) const {
  if (!held_.has_value()) throw TypeError("saved_data: wanted a value of type {}, but there is none under this name", type_name(wanted));
  throw TypeError("saved_data: wanted a value of type {}, but it holds one of type {}", type_name(wanted), type_name(held_.type()));
}

std::string Value::toStringRef() const { return to<std::string>(); }
Tensor Value::toTensor() const { return to<Tensor>(); }

void Context::save_for_backward(std::vector<Tensor> tensors) { to_save_ = std::move(tensors); }
std::vector<Tensor> Context::saved_tensors() const { return kept_ ? kept_->get() : to_save_; }
std::vector<Tensor> Context::get_saved_variables() const { return saved_tensors(); }
void Context::mark_dirty(std::vector<Tensor> inputs) { dirty_ = std::move(inputs); }
void Context::mark_non_differentiable(std::vector<Tensor> outputs) { fixed_ = std::move(outputs); }

namespace {

// The backward that runs on this thread: what it shall compute, by the number of the argument. Contexts are shared by threads.
struct RunningBackward {
  const Context* context;
  const std::vector<bool>& is_tensor;
  Needed needed;
  const RunningBackward* outer;
};
thread_local constinit const RunningBackward* running_backward = nullptr;

}  // namespace

bool Context::needs_input_grad(size_t i) const {
  if (i >= needed_.size() || !needed_[i]) return false;
  const RunningBackward* run = running_backward;
  while (run && run->context != this) run = run->outer;
  if (!run) return true;
  size_t edge = 0;  // one for each argument that is a tensor
  for (size_t k = 0; k < i; ++k) edge += run->is_tensor[k];
  return run->needed[edge];
}

FunctionRun::FunctionRun(const std::type_info& function)
    : name(short_type_name(function) + "Backward"), context(std::make_shared<Context>()) {}

void FunctionRun::add(const Tensor& t) {
  inputs.push_back(t);
  is_tensor.push_back(true);
  context->needed_.push_back(requires_grad(t));
  recording |= requires_grad(t);
}

void FunctionRun::add(const std::optional<Tensor>& t) { add(t.value_or(Tensor())); }
void FunctionRun::add(const std::vector<Tensor>& list) {
  for (const Tensor& t : list) add(t);
}
void FunctionRun::add_value() {
  is_tensor.push_back(false);
  context->needed_.push_back(false);
}

void FunctionRun::record(std::vector<Tensor>& outputs, std::function<std::vector<Tensor>(Context*, std::vector<Tensor>)> backward) {
  Context& c = *context;
  FunctionCall call{.name = name,
                    .inputs = inputs,
                    .dirty = std::move(c.dirty_),
                    .fixed = std::move(c.fixed_),
                    .saved = std::move(c.to_save_),
                    .materialize = c.materialize_,
                    .backward = nullptr,
                    .object = nullptr};
  call.backward = [ctx = context, f = std::move(backward), name = name, is_tensor = is_tensor](std::vector<Tensor> grads, Needed needed) {
    const RunningBackward run{ctx.get(), is_tensor, needed, running_backward};
    struct Running {
      explicit Running(const RunningBackward& now) { running_backward = &now; }
      ~Running() { running_backward = running_backward->outer; }
    };
    std::vector<Tensor> found, chosen;
    {
      const Running scope(run);
      found = f(ctx.get(), std::move(grads));
    }
    while (found.size() > is_tensor.size() && !found.back().defined()) found.pop_back();
    if (found.size() != is_tensor.size())
      throw RuntimeError("function {} returned an incorrect number of gradients (expected {}, got {})", name, is_tensor.size(),
                         found.size());
    for (size_t i = 0; i < found.size(); ++i) {
      if (is_tensor[i])
        chosen.push_back(std::move(found[i]));
      else if (found[i].defined())
        throw RuntimeError(
            "function {} returned a gradient different that is defined at position {}, but the corresponding forward input was not a "
            "Variable",
            name, i + 1);
    }
    return chosen;
  };
  c.kept_ = record_function(std::move(call), outputs);
}

}  // namespace naru::autograd
