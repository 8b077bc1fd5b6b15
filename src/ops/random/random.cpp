// Random fills: one draw of the generator gives each element its own number, by its index in row-major order.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "autograd/history/constant.h"
#include "autograd/history/history.h"
#include "naru/ops.h"
#include "ops/complex/complex.h"
#include "ops/random/draws.h"
#include "ops/random/host_draws.h"
#include "ops/reduce/reduction.h"
#include "ops/tensor/common.h"
#include "ops/tensor/numbers.h"
#include "ops/tensor/type_names.h"
#include "runtime/os/system.h"
#include "runtime/queue/capture.h"

namespace naru {

using ops::OpOperand;
using ops::write_in_order;

std::mutex& ops::lock_of(const Generator& generator) noexcept {
  static std::mutex locks[16];
  return locks[(reinterpret_cast<uintptr_t>(&generator) >> 4) % 16];
}

Generator::Generator(const Generator& o)
    : seed_(o.seed_), offset_(o.offset_), twister_(o.twister_ ? std::make_shared<MersenneTwister>(*o.twister_) : nullptr) {}
Generator& Generator::operator=(const Generator& o) {
  seed_ = o.seed_, offset_ = o.offset_, twister_ = o.twister_ ? std::make_shared<MersenneTwister>(*o.twister_) : nullptr;
  return *this;
}
std::pair<uint64_t, uint64_t> Generator::draw(uint64_t count) {
  const std::lock_guard lock(ops::lock_of(*this));
  return {seed_, std::exchange(offset_, offset_ + count)};
}
void Generator::set_state(uint64_t seed, uint64_t offset) {
  const std::lock_guard lock(ops::lock_of(*this));
  seed_ = seed, offset_ = offset, twister_.reset();
}
MersenneTwister& Generator::twister() {
  if (!twister_) twister_ = std::make_shared<MersenneTwister>(seed_);
  return *twister_;
}
MersenneTwister Generator::twister_state() {
  const std::lock_guard lock(ops::lock_of(*this));
  return twister();
}
void Generator::set_twister(uint64_t seed, const MersenneTwister& state) {
  const std::lock_guard lock(ops::lock_of(*this));
  seed_ = seed, twister_ = std::make_shared<MersenneTwister>(state);
}

// Each process starts with its own seed from the system, or with the fixed default seed if the system provides none.
Generator& default_generator() {
  static auto& generator = *[] {
    uint64_t bits = 0;
    return runtime::system::random_bytes(&bits, sizeof bits) ? new Generator(bits >> 11) : new Generator;
  }();
  return generator;
}

uint64_t Generator::seed() {
  uint64_t bits = 0;
  if (!runtime::system::random_bytes(&bits, sizeof bits))
    throw RuntimeError("Generator.seed(): the system gives no random numbers; use manual_seed()");
  manual_seed(bits >> 1);
  return bits >> 1;
}

void manual_seed(uint64_t seed) { default_generator().manual_seed(seed); }

namespace ops {

void record_random_fill(const Tensor& t, const char* op) {
  static constexpr std::pair<std::string_view, const char*> kNames[] = {
      {"normal_", "NormalBackward0"},        {"uniform_", "UniformBackward0"},         {"bernoulli_", "BernoulliBackward2"},
      {"random_", "RandomBackward0"},        {"exponential_", "ExponentialBackward0"}, {"cauchy_", "CauchyBackward0"},
      {"log_normal_", "LogNormalBackward0"}, {"geometric_", "GeometricBackward0"},
  };
  const auto* row = std::find_if(std::begin(kNames), std::end(kNames), [&](const auto& r) { return r.first == op; });
  auto zeros_of = [](std::vector<Tensor>& g, std::vector<Tensor>&) {
    return std::vector<Tensor>{g[0].defined() ? zeros_like(g[0]) : Tensor()};
  };
  auto node = make_ref<autograd::FunctionNode<decltype(zeros_of)>>(row == std::end(kNames) ? op : row->second, zeros_of);
  // A view needs no edge: rebase_history's CopySlices zeroes the view's part of the base's gradient.
  node->next().push_back(!t.impl()->base && autograd::requires_grad(t) ? autograd::gradient_edge(t) : autograd::Edge{});
  autograd::rebase_history(t, Ref<autograd::Node>(node));
}

thread_local constinit const char* draws_refused = nullptr;

std::pair<uint64_t, uint64_t> draw(Generator* generator) {
  require_draws();
  if (runtime::Capture* c = generator && generator != &default_generator() ? runtime::Capture::current() : nullptr)
    c->refuse("a generator other than the default one is drawn from: a replay could not draw new numbers from it");
  return (generator ? *generator : default_generator()).draw();
}

}  // namespace ops

namespace {

// Appends (key, offset) of a new draw.
std::vector<OpOperand> with_draw(std::vector<OpOperand> operands, Generator* generator) {
  const auto [key, offset] = ops::draw(generator);
  operands.push_back({nullptr, static_cast<int64_t>(key), DType::I64});
  operands.push_back({nullptr, static_cast<int64_t>(offset), DType::I64});
  return operands;
}

void fill_row(const Tensor& t, ir::OpId row, std::vector<OpOperand> operands, Generator* generator, const char* op) {
  write_in_order(t, op, [&](const Tensor& out) { ops::apply_into(row, with_draw(operands, generator), out); });
}

// Draws the parts of a complex tensor. f gets a real view without history; the write is recorded here.
template <class F>
void draw_parts(const Tensor& t, const char* op, F f) {
  const bool history = autograd::recording_write(t);
  if (history) autograd::check_in_place(t, op);
  f(ops::as_real(t));
  if (history) ops::record_random_fill(t, op);
}

void require_floating(const Tensor& t, const char* op, const char* kernel) {
  ops::require_defined(t, op, "self");
  if (!is_floating(t.dtype()))
    throw NotImplementedError("\"{}\" not implemented for '{}' ({} wants a floating point type)", kernel, ops::torch_name(t.dtype()), op);
}

// The least and the greatest integer that random_ may give. For floating-point types: the range in which every integer is representable.
std::pair<int64_t, int64_t> integer_range(DType t) {
  const DTypeTraits& r = traits_of(t);
  if (is_inexact(t)) return {-(int64_t{1} << r.digits), int64_t{1} << r.digits};
  const auto last = static_cast<int64_t>((uint64_t{1} << std::min<int>(r.digits, 63)) - 1);
  return {r.is_signed ? -last - 1 : 0, last};
}

void check_limit(int64_t value, DType t, const char* what) {
  const auto [low, high] = integer_range(t);
  if (!is_inexact(t) && (value < low || value > high)) throw RuntimeError("{} is out of bounds for {}", what, ops::c_name(t));
}

Tensor made(const Dims& sizes, const Options& options, DType type) {
  Options o = options;
  o.requires_grad = false;
  o.dtype = type;
  return empty(sizes, o);
}

Tensor finished(Tensor t, const Options& options, const char* op) {
  t.impl()->storage->version.store(0, std::memory_order_relaxed);  // the fill is part of its creation, not a write
  t.impl()->origin.op = t.impl()->storage->origin.op = op;
  if (options.requires_grad) t.requires_grad_();
  return t;
}

void draw_uniform(const Tensor& out, double from, double to, Generator* generator) {
  const DType type = out.dtype();
  ops::ForceFusion fuse;
  ops::apply_into(ir::op::uniform, with_draw({{nullptr, from, type}, {nullptr, to, type}}, generator), out);
  if (size_of(type) != 2 || !(from < to)) return;
  // Rounding to 16 bits may reach the exclusive upper end: replace it by the lower end.
  const Tensor above = ops::apply(ir::op::ge, {{&out, {}, type}, {nullptr, to, type}}, DType::Bool, "uniform_");
  const OpOperand choice[] = {{&above, {}, DType::Bool}, {nullptr, from, type}, {&out, {}, type}};
  ops::apply_into(ir::op::where, choice, out);
}

}  // namespace

// Uniform in [from, to). Floating point or complex only.
void uniform_(const Tensor& t, double from, double to, Generator* generator) {
  if (is_complex(t.dtype())) return draw_parts(t, "uniform_", [&](const Tensor& parts) { uniform_(parts, from, to, generator); });
  require_floating(t, "uniform_", "check_uniform_bounds");
  if (!(from >= -traits_of(t.dtype()).greatest && from <= traits_of(t.dtype()).greatest))
    throw RuntimeError("from is out of bounds for {} (got {})", ops::c_name(t.dtype()), from);
  if (!(to >= -traits_of(t.dtype()).greatest && to <= traits_of(t.dtype()).greatest))
    throw RuntimeError("to is out of bounds for {} (got {})", ops::c_name(t.dtype()), to);
  if (to - from > traits_of(t.dtype()).greatest)
    throw RuntimeError(
        "uniform_ expects to-from <= std::numeric_limits<{}>::max(), but found to={} and from={} which result in to-from to exceed the "
        "limit",
        ops::torch_name(t.dtype()), to, from);
  if (from > to) throw RuntimeError("uniform_ expects to return a [from, to) range, but found from={} > to={}", from, to);
  write_in_order(t, "uniform_", [&](const Tensor& out) {
    if (ops::draws_as_pytorch()) return ops::host_uniform(out, from, to, generator);
    draw_uniform(out, from, to, generator);
  });
}

// Normal, by the Box-Muller formula. Floating point or complex only.
void normal_(const Tensor& t, double mean, double std, Generator* generator) {
  // The parts share the variance equally.
  if (is_complex(t.dtype()))
    return draw_parts(t, "normal_", [&](const Tensor& parts) { normal_(parts, mean, std * 0.7071067811865476, generator); });
  require_floating(t, "normal_", "normal_kernel_cpu");
  if (!(std >= 0)) throw RuntimeError("normal expects std >= 0.0, but found std {}", std);
  const DType type = t.dtype();
  if (ops::draws_as_pytorch())
    return write_in_order(t, "normal_", [&](const Tensor& out) { ops::host_normal(out, mean, std, t.is_contiguous(), generator); });
  fill_row(t, ir::op::normal, {{nullptr, mean, type}, {nullptr, std, type}}, generator, "normal_");
}

// 1 with probability p, else 0.
void bernoulli_(const Tensor& t, double p, Generator* generator) {
  ops::require_defined(t, "bernoulli_", "self");
  if (!(p >= 0 && p <= 1)) throw RuntimeError("bernoulli_ expects p to be in [0, 1], but got p={}", p);
  if (ops::draws_as_pytorch()) return write_in_order(t, "bernoulli_", [&](const Tensor& out) { ops::host_bernoulli(out, p, generator); });
  fill_row(t, ir::op::bernoulli, {{nullptr, p, t.dtype() == DType::F64 ? DType::F64 : DType::F32}}, generator, "bernoulli_");
}

// Integers in [low, high). If one limit is missing: from 0 to the dtype's greatest integer (floating point: up to which every integer is
// representable).
void random_(const Tensor& t, std::optional<int64_t> low, std::optional<int64_t> high, Generator* generator) {
  ops::require_defined(t, "random_", "self");
  const DType type = t.dtype();
  const int64_t most = integer_range(type).second;
  const int64_t from = low.value_or(0);
  // The range is [from, from + range). One draw can distinguish at most 2^63 - 1 numbers.
  const int64_t to = high.value_or(most == INT64_MAX ? most : most + 1);
  if (from >= to) throw RuntimeError("random_ expects 'from' to be less than 'to', but got from={} >= to={}", from, to);
  if (low) check_limit(from, type, "from");
  if (high) check_limit(to - 1, type, "to - 1");
  __int128 range = static_cast<__int128>(to) - from;
  if (ops::draws_as_pytorch()) {
    if (low && !high) range = static_cast<__int128>(most) + 1 - from;
    return write_in_order(t, "random_", [&](const Tensor& out) {
      low || high ? ops::host_integers(out, from, static_cast<uint64_t>(range), generator) : ops::host_any_integers(out, generator);
    });
  }
  if (range > INT64_MAX) {
    if (type != DType::I64)
      throw RuntimeError("random_: a range of more than 2^63 - 1 numbers is not supported for {} (from={}, to={})", ops::torch_name(type),
                         from, to);
    // Make 64 bits from two draws; values beyond the range, as unsigned numbers, wrap around to its start.
    const Options like(DType::I64, t.device());
    constexpr int64_t kHalf = int64_t{1} << 32;
    const Tensor bits = randint(0, kHalf, t.sizes(), like, generator) * kHalf + randint(0, kHalf, t.sizes(), like, generator);
    const auto missing = static_cast<int64_t>((static_cast<__int128>(1) << 64) - range);
    const Tensor beyond = bitwise_and(lt(bits, 0), ge(bits, -missing));
    Tensor(t).copy_(where(beyond, bits + missing, bits) + from);
    return;
  }
  fill_row(t, ir::op::random_int, {{nullptr, from, DType::I64}, {nullptr, static_cast<int64_t>(range), DType::I64}}, generator, "random_");
}

// Exponential with density rate * exp(-rate x). Floating point only.
void exponential_(const Tensor& t, double rate, Generator* generator) {
  ops::require_defined(t, "exponential_", "self");
  if (!is_floating(t.dtype()))
    throw RuntimeError(
        "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you specified {}",
        ops::torch_name(t.dtype()));
  if (!(rate > 0)) throw RuntimeError("exponential_ expects lambda > 0.0, but found lambda={}", rate);
  if (ops::draws_as_pytorch())
    return write_in_order(t, "exponential_", [&](const Tensor& out) { ops::host_exponential(out, rate, generator); });
  fill_row(t, ir::op::exponential, {{nullptr, rate, t.dtype()}}, generator, "exponential_");
}

Tensor rand(const Dims& sizes, const Options& options, Generator* generator) {
  const Tensor t = made(sizes, options, options.dtype.value_or(default_dtype()));
  uniform_(is_complex(t.dtype()) ? ops::as_real(t) : t, 0, 1, generator);
  return finished(t, options, "rand");
}

Tensor randn(const Dims& sizes, const Options& options, Generator* generator) {
  const Tensor t = made(sizes, options, options.dtype.value_or(default_dtype()));
  normal_(t, 0, 1, generator);
  return finished(t, options, "randn");
}

// int64 unless options name another dtype.
Tensor randint(int64_t low, int64_t high, const Dims& sizes, const Options& options, Generator* generator) {
  const Tensor t = made(sizes, options, options.dtype.value_or(DType::I64));
  random_(t, low, high, generator);
  return finished(t, options, "randint");
}

namespace {

// Exchanges element i with one from i on, for each i. The words tell early which, so that what a long array has outside of the cache is on its way.
template <class T>
void shuffle(T* order, int64_t n, const int64_t* words) {
  constexpr int64_t kAhead = 24, kInCache = 4096;
  const auto partner = [&](int64_t i) {
    return i + static_cast<int64_t>((static_cast<unsigned __int128>(words[i]) * static_cast<uint64_t>(n - i)) >> 62);
  };
  std::iota(order, order + n, T(0));
  int64_t i = 0;
  for (; n > kInCache && i + kAhead < n; ++i) {
    __builtin_prefetch(order + partner(i + kAhead), 1);
    std::swap(order[i], order[partner(i)]);
  }
  for (; i < n; ++i) std::swap(order[i], order[partner(i)]);
}

void shuffled(int64_t* out, int64_t n, Generator* generator) {
  const Tensor words = randint(0, int64_t{1} << 62, {n}, Options(DType::I64, Device(DeviceType::Cpu)), generator);
  const auto* word = static_cast<const int64_t*>(words.data_ptr());
  constexpr int64_t kLong = 1 << 17;  // more than these do not stay in a cache near the processor; half as wide, more of them do
  if (n <= kLong || n > std::numeric_limits<int32_t>::max()) return shuffle(out, n, word);
  const std::unique_ptr<int32_t[]> narrow(new int32_t[static_cast<size_t>(n)]);
  shuffle(narrow.get(), n, word);
  std::copy_n(narrow.get(), n, out);
}

}  // namespace

// A random permutation of 0 ... n - 1 (Fisher-Yates shuffle). The host shuffles, with numbers drawn on the cpu, so that every device gives the same
// result.
Tensor randperm(int64_t n, const Options& options, Generator* generator) {
  if (n < 0) throw RuntimeError("Trying to create tensor with negative dimension {}: [{}] (randperm)", n, n);
  const DType type = options.dtype.value_or(DType::I64);
  ops::refuse_bool(type, "randperm");
  if (n > 0 && is_integral(type)) ops::converted(n - 1, type);
  if (n > 0 && is_floating(type) && n - 1 > integer_range(type).second)
    throw RuntimeError("value cannot be converted to type {} without overflow (randperm({}))", ops::c_name(type), n);
  if (options.device.value_or(default_device()).is_meta()) return finished(made({n}, options, type), options, "randperm");
  const bool in_place = options.device.value_or(default_device()).is_cpu() && type == DType::I64;
  const Tensor order = made({n}, in_place ? options : Options(DType::I64, Device(DeviceType::Cpu)), DType::I64);
  auto* const numbers = static_cast<int64_t*>(order.data_ptr());
  ops::draws_as_pytorch() ? ops::host_permutation(numbers, n, generator) : shuffled(numbers, n, generator);
  if (in_place) return finished(order, options, "randperm");
  Options o = options;
  o.dtype = type;
  o.requires_grad = false;
  return finished(from_data(numbers, {n}, DType::I64, o), options, "randperm");
}

Tensor bernoulli(const Tensor& p, Generator* generator) {
  ops::require_defined(p, "bernoulli", "input");
  if (!is_floating(p.dtype()))
    throw NotImplementedError(
        "\"bernoulli_tensor_cpu_p_\" not implemented for '{}' (bernoulli wants probabilities of a floating point type)",
        ops::torch_name(p.dtype()));
  const DType type = p.dtype();
  if (p.device().is_cpu() && p.numel() > 0 && !ops::recording_host()) {
    ops::FusedProducer inside(ir::op::ge, DType::Bool, {ops::FusedProducer::of(p, type), ops::FusedProducer::of(0.0, type)});
    inside.then(ir::op::le, DType::Bool, {ops::FusedProducer::of(p, type), ops::FusedProducer::of(1.0, type)});
    inside.then(ir::op::logical_and, DType::Bool, {ops::FusedProducer::node(0, DType::Bool), ops::FusedProducer::node(1, DType::Bool)});
    if (!ops::reduce(ir::ReduceOp::All, inside, p.sizes(), ops::dim_set(std::nullopt, p.dim()), false, DType::Bool, "bernoulli")
             .item()
             .to_bool())
      throw RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false. (bernoulli: wanted probabilities between 0 and 1)");
  }
  Tensor out = ops::make_result(p.sizes(), type, p.device(), "bernoulli", true);
  if (out.numel() > 0) {
    if (ops::draws_as_pytorch())
      ops::host_bernoulli(out, p, generator);
    else
      ops::apply_into(ir::op::bernoulli, with_draw({{&p, {}, type}}, generator), out);
  }
  return autograd::record(std::move(out), "BernoulliBackward0", {&p}, {},
                          [](const std::vector<Tensor>& g, const std::vector<Tensor>&) { return std::vector<Tensor>{zeros_like(g[0])}; });
}

Tensor bernoulli(const Tensor& t, double p, Generator* generator) {
  if (!ops::draws_as_pytorch()) return bernoulli(full_like(t, p), generator);
  const Tensor out = empty_like(t.detach());
  bernoulli_(out, p, generator);
  return out;
}

void bernoulli_(const Tensor& t, const Tensor& p, Generator* generator) {
  Tensor(t).copy_(bernoulli(broadcast_to(p, t.sizes()).contiguous(), generator));
}

// mean and std: tensors that broadcast, or scalars; two scalars need sizes.
Tensor normal(const Operand& mean, const Operand& std, const OptionalDims& sizes, Generator* generator) {
  if (!std.is_tensor() && !(std.scalar().to_double() >= 0))
    throw RuntimeError("normal expects std >= 0.0, but found std {}", std.scalar().to_double());
  if (!mean.is_tensor() && !std.is_tensor()) {
    if (!sizes) throw TypeError("normal: with a number for both mean and std it needs the sizes");
    Tensor t = empty(*sizes);
    normal_(t, mean.scalar().to_double(), std.scalar().to_double(), generator);
    return t;
  }
  if (mean.is_tensor()) ops::require_defined(mean.tensor(), "normal", "mean");
  if (std.is_tensor()) ops::require_defined(std.tensor(), "normal", "std");
  const Tensor none;
  const Tensor& m = mean.is_tensor() ? mean.tensor() : none;
  const Tensor& s = std.is_tensor() ? std.tensor() : none;
  for (const Tensor* t : {&m, &s})
    if (t->defined()) require_floating(*t, "normal", "normal_kernel_cpu");
  const Tensor& first = m.defined() ? m : s;
  Dims shape = first.sizes();
  Device device = first.device();
  if (m.defined() && s.defined()) {
    const Tensor* tensors[] = {&m, &s};
    const char* roles[] = {"mean", "std"};
    device = ops::common_device(tensors, roles, "normal");
    shape = broadcast_shapes(m.sizes(), s.sizes());
  }
  if (s.defined() && s.numel() > 0 && s.device().is_cpu() && !ops::recording_host() && amin(s.detach()).item().to_double() < 0)
    throw RuntimeError("normal expects all elements of std >= 0.0");
  const DType type = first.dtype();
  Tensor out = ops::make_result(shape, type, device, "normal", true);
  if (ops::draws_as_pytorch()) {
    const NoGrad guard;
    ops::host_normal(out, 0, 1, true, generator);
    out = out * std + mean;
  } else if (out.numel() > 0) {
    ops::apply_into(ir::op::normal_of,
                    with_draw({{m.defined() ? &m : nullptr, mean.is_tensor() ? Scalar() : mean.scalar(), type},
                               {s.defined() ? &s : nullptr, std.is_tensor() ? Scalar() : std.scalar(), type}},
                              generator),
                    out);
  }
  return autograd::record_constant(out, "NormalBackward3", {&m, &s});
}

Tensor normal(double mean, double std, const Dims& sizes, const Options& options, Generator* generator) {
  Options plain = options;
  plain.requires_grad = false;
  Tensor t = empty(sizes, plain);
  normal_(t, mean, std, generator);
  return options.requires_grad ? t.requires_grad_() : t;
}

}  // namespace naru
