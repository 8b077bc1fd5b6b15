// layer_norm and rms_norm of small rows by kernels directly, without instructions.
#include <array>
#include <atomic>
#include <bit>
#include <limits>
#include <memory>

#include "backends/cpu/exec/kernels.h"
#include "backends/cpu/loops/loops.h"
#include "ir/op_ids.h"
#include "ir/program_builder.h"

namespace naru::cpu {
namespace {

using ir::HostLoop;
using ir::ProgramBuilder;

// The programs of ops/nn/layer_norm.cpp. Values that are constant in a row are scalar operands.
struct NormKernels {
  const ReductionKernel *sum = nullptr, *squares = nullptr;
  const Kernel *root = nullptr, *result = nullptr;

  NormKernels(DType x, DType acc, bool centred, const HostLoop::Array& weight, const HostLoop::Array& bias) {
    if (centred) {
      sum = &reduction_kernel_of(ProgramBuilder::single(ir::op::copy, {x}, acc, acc), ir::ReduceOp::Sum, 0);
      ir::Program difference;
      ProgramBuilder b(difference);
      const auto value = b.input(x, acc), mean = b.input(acc, acc);
      b.output(b.node(ir::op::square_diff, acc, {value, mean}));
      squares = &reduction_kernel_of(difference, ir::ReduceOp::Sum, 2);
    } else {
      squares = &reduction_kernel_of(ProgramBuilder::single(ir::op::square, {x}, acc, acc), ir::ReduceOp::Sum, 0);
    }
    root = &kernel_of(ProgramBuilder::single(ir::op::rsqrt, {acc}, acc, acc), 0);
    ir::Program whole;
    ProgramBuilder b(whole);
    ProgramBuilder::Arg h = b.input(x, acc);
    uint32_t scalars = 0, inputs = 1;
    uint8_t last = 0;
    const auto then = [&](ir::OpId op, DType type, bool scalar) {
      const auto operand = b.input(type, acc);
      if (scalar) scalars |= 1u << inputs;
      ++inputs;
      last = b.node(op, acc, {h, operand});
      h = ProgramBuilder::result(last, acc);
    };
    if (centred) then(ir::op::sub, acc, true);
    then(ir::op::mul, acc, true);
    if (weight.data) then(ir::op::mul, weight.dtype, false);
    if (bias.data) then(ir::op::add, bias.dtype, false);
    whole.nodes[last].out = x;
    b.output(last);
    result = &kernel_of(whole, scalars);
  }
};

// Made once for each form: types of the elements (4), with a mean, without or with a weight, a bias of the elements' type or float32.
const NormKernels& kernels_for(DType x, DType acc, bool centred, const HostLoop::Array& weight, const HostLoop::Array& bias) {
  static std::atomic<const NormKernels*> made[4 * 2 * 3 * 3];
  const auto type = x == DType::F32 ? 0 : x == DType::F64 ? 1 : x == DType::F16 ? 2 : 3;
  const auto form = [&](const HostLoop::Array& a) { return !a.data ? 0 : a.dtype == x ? 1 : 2; };
  auto& place = made[((type * 2 + (centred ? 1 : 0)) * 3 + form(weight)) * 3 + form(bias)];
  const NormKernels* found = place.load(std::memory_order_acquire);
  if (found) return *found;
  auto fresh = std::make_unique<NormKernels>(x, acc, centred, weight, bias);
  if (place.compare_exchange_strong(found, fresh.get(), std::memory_order_acq_rel)) return *fresh.release();
  return *found;
}

template <class T>
void rows_of(const HostLoop& loop) {
  const auto &x = loop.arrays[0], &weight = loop.arrays[1], &bias = loop.arrays[2], &y = loop.arrays[3];
  T *const means = loop.arrays[4].as<T>(), *const roots = loop.arrays[5].as<T>();
  bool& hard = *loop.arrays[6].as<bool>();
  const int64_t n = loop.numbers[0];
  const T count = static_cast<T>(n), eps = static_cast<T>(std::bit_cast<double>(loop.numbers[1])),
          least = static_cast<T>(std::bit_cast<double>(loop.numbers[2])), share = static_cast<T>(std::bit_cast<double>(loop.numbers[3]));
  const bool centred = means != nullptr;
  const NormKernels& k = kernels_for(x.dtype, naru::dtype_of<T>(), centred, weight, bias);
  const auto item = static_cast<int64_t>(size_of(x.dtype));
  for (int64_t r = 0; r < x.numel() / n; ++r) {
    char *const row = x.as<char>() + r * n * item, *const out = y.as<char>() + r * n * item;
    T sum, squares;
    void* operands[6] = {row, means + r};
    if (centred) {
      k.sum->contiguous(operands, nullptr, n, 0, &sum);
      means[r] = sum / count;
    }
    k.squares->contiguous(operands, nullptr, n, 0, &squares);
    const T variance = squares / count;
    T shifted = variance + eps;
    void* root[] = {&shifted, roots + r};
    k.root->run(root, nullptr, 1, 0);
    if (share != T(0)) {  // the condition of ops/nn/layer_norm.cpp
      const T part = means ? means[r] * share : T(0);
      hard |= !(variance <= std::numeric_limits<T>::max() && variance >= least && (!centred || variance >= part * part));
    }
    size_t at = centred ? 2 : 1;
    operands[at++] = roots + r;
    for (const HostLoop::Array* a : {&weight, &bias})
      if (a->data) operands[at++] = a->data;
    operands[at] = out;
    k.result->run(operands, nullptr, n, 0);
  }
}

}  // namespace

void norm_rows(const HostLoop& loop) { loop.arrays[5].dtype == DType::F64 ? rows_of<double>(loop) : rows_of<float>(loop); }

}  // namespace naru::cpu
