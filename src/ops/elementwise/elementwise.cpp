// Runs the operators of the elementwise table: dtypes, shapes, the fast path for small tensors, and derivatives.
#include "ops/elementwise/elementwise.h"

#include <algorithm>
#include <complex>

#include "autograd/history/constant.h"
#include "autograd/history/history.h"
#include "naru/ops.h"
#include "ops/complex/complex.h"
#include "ops/elementwise/fast_call.h"
#include "ops/shape/strides.h"
#include "ops/sparse/sparse.h"
#include "ops/tensor/autocast.h"
#include "ops/tensor/common.h"
#include "ops/tensor/numbers.h"
#include "ops/tensor/type_names.h"
#include "runtime/memory/memory.h"

namespace naru {
namespace ops {
namespace {

struct Nothing {};
constexpr Nothing nothing;
using TensorDerivative = Tensor (*)(std::span<const Tensor>);

// Of formulas for tensors: what the formulas' names mean there.
Tensor power(const Tensor& a, const Tensor& b) { return pow(a, b); }
Tensor floor_divide(const Tensor& a, const Tensor& b) { return div(a, b, "floor"); }  // the function floor_divide has no derivative itself

template <auto F, size_t... I>
constexpr TensorDerivative derivative_impl(std::index_sequence<I...>) {
  using Result = decltype(F(std::declval<const Tensor&>(), (static_cast<void>(I), std::declval<const Tensor&>())...));
  if constexpr (std::is_same_v<Result, Nothing>)
    return nullptr;
  else
    return [](std::span<const Tensor> t) -> Tensor { return F(t[0], t[I + 1]...); };
}
template <int N, auto F>
constexpr TensorDerivative derivative() {
  return derivative_impl<F>(std::make_index_sequence<N - 1>());
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
using T = Tensor;
const TensorDerivative kDerivatives[][3] = {
#define NARU_OP1(name, rule, lo, hi, expr, da, doc) \
  {derivative<3, [](const T& a, const T& y, const T& g) { return da; }>(), nullptr, nullptr},
#define NARU_OP2(name, rule, lo, hi, expr, da, db, doc)                                \
  {derivative<4, [](const T& a, const T& b, const T& y, const T& g) { return da; }>(), \
   derivative<4, [](const T& a, const T& b, const T& y, const T& g) { return db; }>(), nullptr},
#define NARU_OP3(name, rule, lo, hi, expr, da, db, dc, doc)                                        \
  {derivative<5, [](const T& a, const T& b, const T& c, const T& y, const T& g) { return da; }>(), \
   derivative<5, [](const T& a, const T& b, const T& c, const T& y, const T& g) { return db; }>(), \
   derivative<5, [](const T& a, const T& b, const T& c, const T& y, const T& g) { return dc; }>()},
#include "naru/elementwise.inc"
#undef NARU_OP1
#undef NARU_OP2
#undef NARU_OP3
};
#pragma GCC diagnostic pop

const TableEntry kTable[] = {
#define NARU_OP1(name, rule, lo, hi, expr, da, doc) {#name, 1, Rule::rule, lo, hi, doc, {}},
#define NARU_OP2(name, rule, lo, hi, expr, da, db, doc) {#name, 2, Rule::rule, lo, hi, doc, {}},
#define NARU_OP3(name, rule, lo, hi, expr, da, db, dc, doc) {#name, 3, Rule::rule, lo, hi, doc, {}},
#include "naru/elementwise.inc"
#undef NARU_OP1
#undef NARU_OP2
#undef NARU_OP3
};

// The inputs of `g` that its node `result` is computed from: bit k for input k. compares: of comparisons, and conditions, too.
uint8_t inputs_of(const ir::Graph& g, uint32_t result, bool compares) {
  using ir::Prim;
  uint8_t found = 0;
  std::vector<bool> used(g.nodes().size());
  used[result] = true;
  for (size_t id = g.nodes().size(); id-- > 0;) {
    if (!used[id]) continue;
    const ir::Node& node = g[static_cast<uint32_t>(id)];
    if (node.prim == Prim::Input) found |= static_cast<uint8_t>(1u << node.bits);
    if (!compares && (node.prim == Prim::Lt || node.prim == Prim::Le || node.prim == Prim::Eq || node.prim == Prim::Ne)) continue;
    for (uint32_t in : {!compares && node.prim == Prim::Select ? ir::kNoNode : node.a, node.b, node.c})
      if (in != ir::kNoNode) used[in] = true;
  }
  return found;
}

// What the formula of a derivative says. Bit k is for argument k of (operands..., result y, gradient g).
struct DerivativeReads {
  uint8_t needs = 0;         // the arguments that it reads
  uint8_t compared = 0;      // those of them that it only compares, so that its own derivatives by them are 0
  bool is_gradient = false;  // it is g itself
};
const DerivativeReads& derivative_reads(ir::OpId id, int operand) {
  static const auto& rows = *[] {
    auto* const all = new std::vector<std::array<DerivativeReads, 3>>;
    for (size_t r = 0; r < std::size(kTable); ++r) {
      std::array<DerivativeReads, 3> row{};
      const int n = kTable[r].arity + 2;
      for (int i = 0; i < kTable[r].arity; ++i) {
        if (!kDerivatives[r][i]) continue;
        ir::Graph g;
        std::vector<ir::V> args;
        for (int k = 0; k < n; ++k) args.push_back(ir::input(g, k, kTable[r].rule == Rule::Where && k == 0 ? DType::Bool : DType::F32));
        const ir::V result = ir::op_table()[ir::op::derivative(static_cast<ir::OpId>(r), i)].expr(args);
        row[i].needs = inputs_of(g, result.id(), true);
        if (!record_of(static_cast<ir::OpId>(r)).second.masked)
          row[i].compared = row[i].needs & static_cast<uint8_t>(~inputs_of(g, result.id(), false));
        row[i].is_gradient = g[result.id()].prim == ir::Prim::Input;
      }
      all->push_back(row);
    }
    return all;
  }();
  return rows[id][operand];
}
uint8_t derivative_needs(ir::OpId id, int operand) { return derivative_reads(id, operand).needs; }

// Whether PyTorch refuses the derivative by the operand, whereas others without one count as constants.
bool refuses_derivative(ir::OpId id, size_t operand) { return operand == 0 && !kDerivatives[id][0] && kTable[id].rule == Rule::Float; }

class TableNode final : public autograd::Node {
 public:
  // in_place: the first operand will be overwritten, so a copy of it is saved.
  TableNode(ir::OpId id, Types types, std::span<const Operand> operands, bool in_place = false)
      : Node(backward_name(id, operands)), id_(id), types_(types) {
    uint8_t needs = 0;
    const int n = kTable[id].arity;
    for (int i = 0; i < n; ++i) {
      const bool wanted = operands[i].is_tensor() && (kDerivatives[id][i] || refuses_derivative(id, static_cast<size_t>(i))) &&
                          autograd::requires_grad(operands[i].tensor());
      next().push_back(wanted ? autograd::gradient_edge(operands[i].tensor()) : autograd::Edge{});
      if (!wanted) continue;
      needs |= derivative_needs(id, i);
      shapes_[i] = operands[i].tensor().sizes();
      dtypes_[i] = operands[i].tensor().dtype();
    }
    for (int i = 0; i < n; ++i) {
      if (!operands[i].is_tensor())
        numbers_[i] = operands[i].scalar();
      else if (needs >> i & 1)
        saved_[i] = autograd::Saved(in_place && i == 0 ? operands[0].tensor().clone() : operands[i].tensor());
      is_number_[i] = !operands[i].is_tensor();
    }
    wants_result_ = needs >> n & 1;
    in_place_ = in_place;
    refused_ = std::string_view(backward_name(id, operands)) == operators::kNotImplemented;
    refused_second = record_of(id).second.refused;
  }
  // Call after the result was computed.
  void save_result(const Tensor& y) {
    if (wants_result_) result_ = autograd::Saved(y, true);
  }
  std::vector<Tensor> apply(std::vector<Tensor> grads, autograd::Needed needed) override {
    if (refused_) autograd::throw_refused(refused_name().c_str());
    const int n = kTable[id_].arity;
    Tensor g = std::move(grads[0]);
    std::vector<Tensor> results = std::move(grads);  // reuses the vector's memory
    results.clear();
    results.resize(n);
    if (!g.defined()) return results;
    // `needed` may be another node's (CopySlices), with an edge that this one lacks.
    const auto computes = [&](int i) { return next()[i].node && needed[i]; };
    std::array<Tensor, 5> values = saved_values(n, computes);
    values[n + 1] = g;
    for (int i = 0; i < n; ++i)
      if (computes(i)) results[i] = one(i, n, values, Direction::Backward);
    return results;
  }
  // The Jacobian by each operand is diagonal: a tangent is multiplied by the derivative as a gradient is.
  std::optional<std::vector<Tensor>> jvp(std::vector<Tensor> tangents) override {
    if (refused_)
      throw NotImplementedError("Trying to use forward AD with aten::{} that does not support it. (take its detach())", refused_name());
    const int n = kTable[id_].arity;
    if (is_complex(types_.compute) && !is_complex(types_.out)) return std::nullopt;
    const Dims& shape = extras()->results.at(0)->sizes;
    const auto computes = [&](int i) { return next()[i].node && tangents[i].defined(); };
    std::array<Tensor, 5> values = saved_values(n, computes);
    Tensor sum;
    for (int i = 0; i < n; ++i) {
      if (!computes(i)) continue;
      Tensor t = tangents[i].dtype() == types_.out ? tangents[i] : tangents[i].to(types_.out);
      values[n + 1] = t.sizes() == shape ? t : t.expand(shape);
      const Tensor part = one(i, n, values, Direction::Forward);
      sum = sum.defined() ? sum + part : part;
    }
    return std::vector<Tensor>{sum};
  }
  uint64_t shown_edges() const override {
    namespace o = ir::op;
    if (id_ == o::where) return 6;
    uint64_t shown = 0;
    // PyTorch wraps the scalars of these operators in tensors, so its nodes have edges for them.
    const bool numbers = id_ == o::add || id_ == o::mul || id_ == o::div || (id_ == o::sub && !is_number_[0]);
    for (size_t i = 0; i < next().size(); ++i) shown |= uint64_t{numbers || !is_number_[i]} << i;
    return shown;
  }
  void release_saved() override {
    const SavedGuard guard(*this);
    for (auto& s : saved_) s.release();
    result_.release();
  }
  autograd::SavedValue saved_as(std::string_view name) override {
    const size_t n = static_cast<size_t>(kTable[id_].arity);
    const uint8_t needs = derivative_needs(id_, 0) | derivative_needs(id_, 1) | derivative_needs(id_, 2);
    if (name == "result") return {needs >> n & 1 ? &result_ : nullptr};
    const size_t i = operand_called(id_, name);
    if (i >= n || !(needs >> i & 1)) return {};
    return is_number_[i] ? autograd::SavedValue{nullptr, &numbers_[i]} : autograd::SavedValue{&saved_[i]};
  }
  void keep_saved() override {
    for (auto& s : saved_) s.keep_value();
  }
  void each_saved(const autograd::TensorVisitor& f) const override {
    const SavedGuard guard(*this);
    for (const auto& s : saved_) s.visit(f);
    result_.visit(f);
  }

 private:
  enum class Direction { Backward, Forward };

  std::string refused_name() const { return kTable[id_].name + std::string(in_place_ ? "_" : ""); }

  // The saved operands and the result, as far as the derivatives by the operands that `computes` says read them.
  template <class F>
  std::array<Tensor, 5> saved_values(int n, const F& computes) {
    std::array<Tensor, 5> values;
    uint8_t needs = 0;
    for (int i = 0; i < n; ++i)
      if (computes(i)) needs |= derivative_needs(id_, i);
    if (needs) {
      SavedGuard guard(*this);
      for (int i = 0; i < n; ++i)
        if ((needs >> i & 1) && !is_number_[i]) values[i] = saved_value(saved_[i], guard);
      if (needs >> n & 1) values[n] = saved_value(result_, guard);
    }
    return values;
  }

  // Releases the guard before unpack hooks run, since they may run arbitrary code.
  Tensor saved_value(const autograd::Saved& saved, SavedGuard& guard) {
    if (!saved.is_packed()) [[likely]]
      return saved.get(this);
    const autograd::Saved copy = saved;
    guard.release();
    return copy.get(this);
  }

  // For complex numbers the same formulas hold; backward, all arguments but the gradient are conjugated.
  Tensor one_complex(int i, int n, const std::array<Tensor, 5>& values, Direction direction) const {
    const Tensor& g = values[n + 1];
    const bool back = direction == Direction::Backward;
    const auto seen = [back](const Tensor& t) { return back ? ops::conjugate(t) : t; };
    std::array<Tensor, 5> args;
    for (int k = 0; k < n; ++k) {
      if (!is_number_[k]) {
        args[k] = seen(values[k]);
        continue;
      }
      const auto number = numbers_[k].to<std::complex<double>>();
      args[k] = scalar_tensor(back ? std::conj(number) : number, Options(complex_of(types_.compute), g.device()));
    }
    args[n] = seen(values[n]), args[n + 1] = g;
    for (int k = 0; k <= n; ++k)
      if (!args[k].defined()) args[k] = g;
    const std::span<const Tensor> all(args.data(), static_cast<size_t>(n + 2));
    Tensor result = derivative_reads(id_, i).is_gradient ? g : ops::complex_derivative(id_, i, all);
    if (!result.defined()) result = kDerivatives[id_][i](all);
    return back ? ops::gradient_as(sum_to(result, shapes_[i]), dtypes_[i]) : result;
  }

  // The derivative by operand i times values[n + 1], a gradient of the result or a tangent of the operand in the result's shape.
  Tensor one(int i, int n, const std::array<Tensor, 5>& values, Direction direction) const {
    if (refuses_derivative(id_, static_cast<size_t>(i))) autograd::throw_underived(kTable[id_].name);
    if (is_complex(types_.compute)) [[unlikely]]
      return one_complex(i, n, values, direction);
    const Tensor& g = values[n + 1];
    const Dims& shape = direction == Direction::Backward ? shapes_[i] : g.sizes();
    const DType dtype = direction == Direction::Backward ? dtypes_[i] : types_.out;
    const uint8_t needs = derivative_needs(id_, i);
    Tensor result;
    if (derivative_reads(id_, i).is_gradient) {
      result = g;
    } else if (grad_enabled()) {
      std::array<Tensor, 5> args = values;
      for (int k = 0; k < n; ++k)
        if (is_number_[k]) args[k] = scalar_tensor(numbers_[k], Options(types_.compute, g.device()));
      for (int k = 0; k < n + 2; ++k)
        if (!args[k].defined()) args[k] = g;
      result = kDerivatives[id_][i]({args.data(), static_cast<size_t>(n + 2)});
      for (int k = 0; k <= n; ++k)
        if (derivative_reads(id_, i).compared >> k & 1) result = autograd::depending_on(result, {&values[k]});
    } else if (shape == g.sizes() && (result = fast_derivative(i, n, values, needs, dtype)).defined()) {
      return result;
    } else {
      std::array<OpOperand, 5> args;
      for (int k = 0; k < n + 2; ++k) {
        const DType as = kTable[id_].rule == Rule::Where && k == 0 ? DType::Bool : types_.compute;
        if (k < n && is_number_[k] && (needs >> k & 1))
          args[k] = {nullptr, numbers_[k], as};
        else
          args[k] = {values[k].defined() && (needs >> k & 1) ? &values[k] : &g, {}, as};
      }
      const bool whole = shape == g.sizes();
      result = make_result(g.sizes(), ops::gradient_strides(g, {args.data(), static_cast<size_t>(n + 2)}), whole ? dtype : types_.compute,
                           g.device(), "backward", true);
      apply_into(ir::op::derivative(id_, i), {args.data(), static_cast<size_t>(n + 2)}, result);
    }
    result = sum_to(result, shape);
    return result.dtype() == dtype ? result : result.to(dtype);
  }

  // Returns an undefined tensor if the general path is needed.
  Tensor fast_derivative(int i, int n, const std::array<Tensor, 5>& values, uint8_t needs, DType dtype) const {
    if (kTable[id_].rule == Rule::Where) return {};
    FastCall call;
    for (int k = 0; k < n + 2; ++k) {
      if (!(needs >> k & 1))
        call.add_unused();
      else if (k < n && is_number_[k])
        call.add(numbers_[k]);
      else if (!call.add(values[k].impl()))
        return {};
    }
    if (!call.first() || call.first()->dtype != dtype) return {};
    return call.run(ir::op::derivative(id_, i), "backward", [&] { return Types{types_.compute, dtype}; });
  }

  ir::OpId id_;
  Types types_;
  std::array<autograd::Saved, 3> saved_;
  autograd::Saved result_;
  std::array<Scalar, 3> numbers_;
  std::array<Dims, 3> shapes_;
  std::array<DType, 3> dtypes_{};
  std::array<bool, 3> is_number_{};
  bool wants_result_ = false, in_place_ = false, refused_ = false;
};

bool wants_history(ir::OpId id, std::span<const Operand> operands) {
  if (!grad_enabled()) return false;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].is_tensor() || !autograd::requires_grad(operands[i].tensor())) continue;
    if (kDerivatives[id][i] || refuses_derivative(id, i)) return true;
  }
  return false;
}

void record_op(ir::OpId id, Types types, std::span<const Operand> operands, const Tensor& out) {
  auto node = make_ref<TableNode>(id, types, operands);
  if (id == ir::op::div && !operands[0].is_tensor()) node->keep_saved();  // PyTorch saves 1 / x for the gradient of 3 / x
  node->save_result(out);
  autograd::set_history(out, Ref<autograd::Node>(node));
}

// Bits of Special of operands that have no elements of their own.
uint8_t parts_among(std::span<const Operand> operands) noexcept {
  uint8_t special = 0;
  for (const Operand& o : operands)
    if (o.is_tensor() && o.tensor().defined()) special |= o.tensor().impl()->special;
  return special & kHasParts;
}

constexpr const char* kRoles[] = {"input", "other", "third operand"};

Device check_devices(std::span<const Operand> operands, const char* op) {
  std::array<const Tensor*, 3> tensors;
  std::array<const char*, 3> roles;
  size_t n = 0;
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i].is_tensor()) {
      require_defined(operands[i].tensor(), op, kRoles[i]);
      tensors[n] = &operands[i].tensor();
      roles[n++] = kRoles[i];
    }
  return common_device({tensors.data(), n}, {roles.data(), n}, op);
}

// Throws if a cpu operator divides integers by zero, as PyTorch does; on other devices the result is 0.
void check_divisor(ir::OpId id, Types types, std::span<const Operand> operands) {
  namespace r = ir::op;
  if (is_inexact(types.compute) || recording_host() || (id != r::floor_divide && id != r::remainder && id != r::fmod && id != r::div_trunc))
    return;
  const Operand& divisor = operands[1];
  const bool zero = divisor.is_tensor() ? divisor.tensor().device().is_cpu() && divisor.tensor().numel() > 0 &&
                                              !all(divisor.tensor().detach()).item().to_bool()
                                        : param_bits(divisor.scalar(), types.compute) == 0;  // converted to the dtype; may wrap to 0
  if (zero) throw RuntimeError("ZeroDivisionError: {} of integers by 0", kTable[id].name);
}

void fill_operands(ir::OpId id, std::span<const Operand> operands, Types types, Rule rule, std::array<OpOperand, 3>& steps) {
  for (size_t i = 0; i < operands.size(); ++i) {
    const DType as = rule == Rule::Where && i == 0 ? DType::Bool : types.compute;
    if (!operands[i].is_tensor())
      steps[i] = {nullptr, operands[i].scalar(), as};
    else if (i == 1 && is_exact_number(id, operands[i], types.compute)) [[unlikely]]
      steps[i] = {nullptr, operands[i].tensor().detach().item(), as};
    else
      steps[i] = {&operands[i].tensor(), {}, as};
  }
  fit_numbers(id, types, {steps.data(), operands.size()});
}

// Returns an undefined tensor if the operands need the general path.
Tensor run_fast(ir::OpId id, std::span<const Operand> operands, Types& types) {
  FastCall call;
  for (const Operand& o : operands)
    if (!(o.is_tensor() ? call.add(o.tensor().impl()) : call.add(o.scalar()))) return {};
  const TensorImpl* first = call.first();
  if (!first || kTable[id].rule == Rule::Where) return {};
  if (!is_inexact(first->dtype) && (kTable[id].rule == Rule::Float || call.has_numbers() || id == ir::op::floor_divide ||
                                    id == ir::op::remainder || id == ir::op::fmod || id == ir::op::div_trunc))
    return {};
  Tensor out = call.run(id, kTable[id].name, [&] { return apply_rule(kTable[id].rule, operands, kTable[id].name); });
  types = call.types();
  return out;
}

// The shape that the tensors among the operands broadcast to.
Dims shape_of_result(std::span<const Operand> operands) {
  Dims shape;
  for (const Operand& o : operands)
    if (o.is_tensor()) shape = shape.empty() ? o.tensor().sizes() : broadcast_shapes(shape, o.tensor().sizes());
  return shape;
}

}  // namespace

std::span<const TableEntry> table() {
  static const auto& rows = *[] {
    auto* const made = new std::vector<TableEntry>(std::begin(kTable), std::end(kTable));
    std::vector<TableEntry>& v = *made;
    for (size_t r = 0; r < v.size(); ++r)
      for (int i = 0; i < 3; ++i) v[r].differentiable[i] = kDerivatives[r][i] != nullptr;
    return made;
  }();
  return rows;
}

const operators::Record& record_of(ir::OpId id) {
  static const auto& all = *[] {
    auto* const made = new std::vector<const operators::Record*>;
    for (const ir::ElementwiseOp& op : ir::op_table()) made->push_back(&operators::record_of(op.name));
    return made;
  }();
  return *all[id];
}

ir::OpId id_of(std::string_view op) {
  const auto found = std::find_if(std::begin(kTable), std::end(kTable), [op](const TableEntry& e) { return op == e.name; });
  return found == std::end(kTable) ? static_cast<ir::OpId>(ir::op::kCount) : static_cast<ir::OpId>(found - std::begin(kTable));
}

Tensor sum_to(const Tensor& g, const Dims& shape) {
  if (g.sizes() == shape) return g;
  Dims reduced;
  const size_t shift = g.sizes().size() - shape.size();
  for (size_t i = 0; i < g.sizes().size(); ++i)
    if (i < shift || (shape[i - shift] == 1 && g.sizes()[i] != 1)) reduced.push_back(static_cast<int64_t>(i));
  return sum(g, reduced, true).view(shape);
}

Tensor run_op(ir::OpId id, std::span<const Operand> operands) {
  if (const autocast::Casts c(kTable[id].name, operands); c) return run_op(id, c.operands());
  const bool history = wants_history(id, operands);
  Types types;
  if (Tensor done = run_fast(id, operands, types); done.defined()) {
    if (history) record_op(id, types, operands, done);
    return done;
  }
  const TableEntry& r = kTable[id];
  if (const uint8_t parts = parts_among(operands)) [[unlikely]]
    return parts & kBatched ? run_batched(id, operands) : run_sparse(id, operands);
  if (std::none_of(operands.begin(), operands.end(), [](const Operand& o) { return o.is_tensor(); })) {
    // All operands are scalars: the first counts as a 0-d tensor.
    const Tensor number = scalar_tensor(operands[0].scalar());
    std::array<Operand, 3> all{Operand(number), Operand(0), Operand(0)};
    std::copy(operands.begin() + 1, operands.end(), all.begin() + 1);
    return run_op(id, {all.data(), operands.size()});
  }
  const Device device = check_devices(operands, r.name);
  types = apply_rule(r.rule, operands, r.name);
  const Dims shape = shape_of_result(operands);
  check_divisor(id, types, operands);
  std::array<OpOperand, 3> steps;
  fill_operands(id, operands, types, r.rule, steps);
  bool row_major = true;
  for (const Operand& o : operands) row_major = row_major && (!o.is_tensor() || o.tensor().is_contiguous());
  Tensor out = row_major ? make_result(shape, types.out, device, r.name, true)
                         : make_result(shape, elementwise_strides(shape, operands), types.out, device, r.name, true);
  apply_into(id, {steps.data(), operands.size()}, out);
  if (history) record_op(id, types, operands, out);
  return out;
}

bool run_op_into(ir::OpId id, std::span<const Operand> operands, const Tensor& out) {
  const TableEntry& r = kTable[id];
  if (parts_among(operands) || have_parts(out) || autograd::tangents_carried || wants_history(id, operands) ||
      autograd::recording_write(out) || std::none_of(operands.begin(), operands.end(), [](const Operand& o) { return o.is_tensor(); }))
    return false;
  const Device device = check_devices(operands, r.name);
  const Types types = apply_rule(r.rule, operands, r.name);
  if (types.out != out.dtype() || !(device == out.device())) return false;
  const Dims shape = shape_of_result(operands);
  if (!(shape == out.sizes()) || may_overlap(out.sizes(), out.strides())) return false;
  check_divisor(id, types, operands);
  std::array<OpOperand, 3> steps;
  fill_operands(id, operands, types, r.rule, steps);
  autograd::before_write(out);
  apply_into(id, {steps.data(), operands.size()}, out);
  bump_version(out);
  return true;
}

void run_op_in_place(ir::OpId id, const Tensor& target, std::span<const Operand> others) {
  const TableEntry& r = kTable[id];
  std::array<Operand, 3> all{Operand(target), Operand(0), Operand(0)};
  for (size_t i = 0; i < others.size(); ++i) all[i + 1] = others[i];
  const std::span<const Operand> operands(all.data(), others.size() + 1);
  require_defined(target, r.name, "input");
  if (const uint8_t parts = parts_among(operands)) [[unlikely]]
    return parts & kBatched ? run_batched_in_place(id, target, others) : run_sparse_in_place(id, target, others);
  check_devices(operands, r.name);
  const Types types = apply_rule(r.rule, operands, r.name);
  if (category_of(types.out) > category_of(target.dtype()))
    throw RuntimeError(
        "result type {} can't be cast to the desired output type {} ({}_ writes into its operand; use {}() for a new tensor)",
        torch_name(types.out), torch_name(target.dtype()), r.name, r.name);
  if (id == ir::op::abs && is_complex(target.dtype())) throw RuntimeError("In-place abs is not supported for complex tensors.");
  const Dims shape = shape_of_result(operands);
  if (!(shape == target.sizes()))
    throw RuntimeError("output with shape {} doesn't match the broadcast shape {} ({}_)", target.sizes().str(), shape.str(), r.name);
  require_distinct_elements(target, r.name, "_");
  check_divisor(id, types, operands);
  const bool history = wants_history(id, operands) || autograd::recording_write(target);
  Ref<TableNode> node;
  if (history) autograd::check_in_place(target, r.name), node = make_ref<TableNode>(id, types, operands, true);
  std::array<OpOperand, 3> steps;
  fill_operands(id, operands, types, r.rule, steps);
  autograd::before_write(target);
  apply_into(id, {steps.data(), operands.size()}, target);
  bump_version(target);
  target.impl()->origin.op = r.name;
  if (history) {
    autograd::rebase_history(target, Ref<autograd::Node>(node));
    node->save_result(target);
  }
}

}  // namespace ops
}  // namespace naru
