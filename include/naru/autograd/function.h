// User-defined differentiable operations.
//
//   struct Cube : autograd::Function<Cube> {
//     static Tensor forward(autograd::Context* ctx, const Tensor& x) {
//       ctx->save_for_backward({x});
//       return x * x * x;
//     }
//     static std::vector<Tensor> backward(autograd::Context* ctx, const std::vector<Tensor>& grads) {
//       const Tensor x = ctx->saved_tensors()[0];
//       return {grads[0] * 3 * x * x};
//     }
//   };
//   Tensor y = Cube::apply(x);
#pragma once

#include <any>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "naru/autograd.h"
#include "naru/standard.h"

namespace naru::autograd {

class SavedTensors;  // autograd/history/function.h

// A value that forward stores for backward, other than saved tensors. Reads back as the type that was stored; numbers convert to other
// number types.
class Value {
 public:
  Value() = default;
  template <class T>
  requires(!std::is_same_v<std::remove_cvref_t<T>, Value>) Value(T&& v) {
    using V = std::remove_cvref_t<T>;
    if constexpr (std::is_same_v<V, bool>)
      held_ = v;
    else if constexpr (std::is_integral_v<V>)
      held_ = static_cast<int64_t>(v);
    else if constexpr (std::is_floating_point_v<V>)
      held_ = static_cast<double>(v);
    else if constexpr (std::is_convertible_v<V, std::string>)
      held_ = std::string(std::forward<T>(v));
    else
      held_ = std::forward<T>(v);
  }
  bool has_value() const noexcept { return held_.has_value(); }
  // Throws TypeError if the stored value has another type.
  template <class T>
  T to() const {
    if constexpr (std::is_same_v<T, bool>)
      return to_bool();
    else if constexpr (std::is_integral_v<T>)
      return static_cast<T>(to_int());
    else if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(to_double());
    else if (const T* v = std::any_cast<T>(&held_))
      return *v;
    throw_wrong_type(typeid(T));
  }
  double to_double() const;
  int64_t to_int() const;
  bool to_bool() const;
  // libtorch's names.
  double toDouble() const { return to_double(); }
  int64_t toInt() const { return to_int(); }
  bool toBool() const { return to_bool(); }
  std::string toStringRef() const;
  Tensor toTensor() const;

 private:
  [[noreturn]] void throw_wrong_type(const std::type_info& wanted) const;
  std::any held_;
};

// What forward stores for backward. Lives as long as the operation's node.
class Context {
 public:
  // Saves tensors (possibly undefined ones) for backward; backward throws if one is changed in place meanwhile. Save forward's arguments
  // and results here and not in saved_data: a result there would keep its own history alive.
  void save_for_backward(std::vector<Tensor> tensors);
  // The tensors given to save_for_backward. Throws RuntimeError if one was changed in place since, or after backward has freed them.
  std::vector<Tensor> saved_tensors() const;
  std::vector<Tensor> get_saved_variables() const;  // libtorch's name
  // Marks arguments that forward changed in place. forward must return them (RuntimeError otherwise).
  void mark_dirty(std::vector<Tensor> inputs);
  // Marks results through which no gradient flows.
  void mark_non_differentiable(std::vector<Tensor> outputs);
  // false: missing gradients are undefined tensors instead of zeros.
  void set_materialize_grads(bool on) { materialize_ = on; }
  // True if argument i of forward is a tensor whose gradient is needed; within backward, by the pass that runs it (grad() and
  // backward(inputs) need those that lead to the given inputs).
  bool needs_input_grad(size_t i) const;

  std::map<std::string, Value> saved_data;

 private:
  friend struct FunctionRun;
  std::vector<Tensor> to_save_, dirty_, fixed_;
  bool materialize_ = true;
  std::vector<bool> needed_;
  std::shared_ptr<SavedTensors> kept_;  // set once the node exists
};

// One call of a function; used by Function below.
struct FunctionRun {
  explicit FunctionRun(const std::type_info& function);
  std::string name;
  std::shared_ptr<Context> context;
  std::vector<Tensor> inputs;   // the tensor arguments
  std::vector<bool> is_tensor;  // per argument
  bool recording = false;

  void add(const Tensor& t);
  void add(const std::optional<Tensor>& t);
  void add(const std::vector<Tensor>& list);
  template <class T>
  requires(!std::is_convertible_v<const T&, Tensor> && !std::is_convertible_v<const T&, std::vector<Tensor>>) void add(const T&) {
    add_value();
  }
  void add_value();
  // Attaches history to the outputs.
  void record(std::vector<Tensor>& outputs, std::function<std::vector<Tensor>(Context*, std::vector<Tensor>)> backward);
};

// Base class of a user-defined operation. `D` defines forward(Context*, arguments...), which runs without recording history and returns a
// Tensor, a vector or a tuple of tensors, and backward(Context*, gradients of the results), which returns one gradient (or an undefined
// tensor) for each argument of forward; each tensor of a vector counts as one argument. backward itself is recorded if gradients of
// gradients are needed. Throws RuntimeError if backward returns the wrong number of gradients, or a gradient for an argument that is not a
// tensor.
template <class D>
class Function {
 public:
  template <class... A>
  static auto apply(A&&... args) {
    FunctionRun run(typeid(D));
    (run.add(args), ...);
    run.recording = run.recording && grad_enabled();
    auto result = [&] {
      const NoGrad off;
      return D::forward(run.context.get(), std::forward<A>(args)...);
    }();
    if (!run.recording) return result;
    std::vector<Tensor> outputs = list_of(result);
    run.record(outputs, [](Context* ctx, std::vector<Tensor> grads) { return as_list(D::backward(ctx, std::move(grads))); });
    put_back(result, outputs);
    return result;
  }

 private:
  static std::vector<Tensor> as_list(std::vector<Tensor> list) { return list; }
  static std::vector<Tensor> as_list(Tensor one) { return {std::move(one)}; }
  template <class R>
  static std::vector<Tensor> list_of(const R& result) {
    if constexpr (std::is_same_v<R, Tensor>)
      return {result};
    else if constexpr (std::is_same_v<R, std::vector<Tensor>>)
      return result;
    else
      return std::apply([](const auto&... t) { return std::vector<Tensor>{t...}; }, result);
  }
  template <class R>
  static void put_back(R& result, const std::vector<Tensor>& outputs) {
    if constexpr (std::is_same_v<R, Tensor>) {
      result = outputs[0];
    } else if constexpr (std::is_same_v<R, std::vector<Tensor>>) {
      result = outputs;
    } else {
      size_t i = 0;
      std::apply([&](auto&... t) { ((t = outputs[i++]), ...); }, result);
    }
  }
};

}  // namespace naru::autograd
