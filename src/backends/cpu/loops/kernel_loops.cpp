// Loops that call kernels directly, without instructions: softmax and log_softmax of small rows, steps of ctc_loss.
#include <vector>

#include "backends/cpu/exec/kernels.h"
#include "backends/cpu/exec/layout.h"
#include "backends/cpu/loops/loops.h"
#include "ir/op_ids.h"
#include "ir/program_builder.h"

namespace naru::cpu {
namespace {

using ir::HostLoop;
using ir::ProgramBuilder;

// The kernels for one dtype. Values that are constant in a row are scalar operands.
struct SoftmaxKernels {
  const ReductionKernel *greatest, *sum, *kept_sum;
  const Kernel *quotient, *log, *difference;

  explicit SoftmaxKernels(DType t)
      : greatest(&reduction_kernel_of(ProgramBuilder::single(ir::op::copy, {t}, t, t), ir::ReduceOp::Max, 0)),
        sum(&reduction_kernel_of(ProgramBuilder::single(ir::op::sub_exp, {t, t}, t, t), ir::ReduceOp::Sum, 2)),
        kept_sum(&reduction_kernel_of(ProgramBuilder::single(ir::op::sub_exp, {t, t}, t, t), ir::ReduceOp::Sum, 2, true)),
        quotient(&kernel_of(ProgramBuilder::single(ir::op::div, {t, t}, t, t), 2)),
        log(&kernel_of(ProgramBuilder::single(ir::op::log, {t}, t, t), 0)) {
    ir::Program twice;
    ProgramBuilder b(twice);
    const auto x = b.input(t, t), most = b.input(t, t), sums = b.input(t, t);
    const uint8_t less = b.node(ir::op::sub, t, {x, most});
    b.output(b.node(ir::op::sub, t, {ProgramBuilder::result(less, t), sums}));
    difference = &kernel_of(twice, 6);
  }
};

const SoftmaxKernels& kernels_for(DType t) {
  static const SoftmaxKernels& narrow = *new SoftmaxKernels(DType::F32);
  static const SoftmaxKernels& wide = *new SoftmaxKernels(DType::F64);
  return t == DType::F64 ? wide : narrow;
}

template <class T>
void softmax_row(const SoftmaxKernels& k, T* x, int64_t n, T* y) {
  T most, sum;
  void* row[] = {x};
  k.greatest->contiguous(row, nullptr, n, 0, &most);
  void* exponents[] = {x, &most, y};
  k.kept_sum->contiguous(exponents, nullptr, n, 0, &sum);
  void* divided[] = {y, &sum, y};
  k.quotient->run(divided, nullptr, n, 0);
}

template <class T>
void log_softmax_row(const SoftmaxKernels& k, T* x, int64_t n, T* y) {
  T most, sum, log;
  void* row[] = {x};
  k.greatest->contiguous(row, nullptr, n, 0, &most);
  void* exponents[] = {x, &most};
  k.sum->contiguous(exponents, nullptr, n, 0, &sum);
  void* logarithm[] = {&sum, &log};
  k.log->run(logarithm, nullptr, 1, 0);
  void* less[] = {x, &most, &log, y};
  k.difference->run(less, nullptr, n, 0);
}

}  // namespace

void softmax_rows(const HostLoop& loop) {
  const auto &x = loop.arrays[0], &y = loop.arrays[1];
  const int64_t n = loop.numbers[0], rows = x.numel() / n;
  const SoftmaxKernels& kernels = kernels_for(x.dtype);
  with_type<float, double>(x.dtype, [&]<class T>(T) {
    const auto row = loop.numbers[1] ? log_softmax_row<T> : softmax_row<T>;
    split(rows, 1.5 * static_cast<double>(x.numel()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) row(kernels, x.as<T>() + r * n, n, y.as<T>() + r * n);
    });
  });
}

namespace {

// One time step of one sample: (states - 2, states - 1, states, skips, emitted) -> the states after it.
const Kernel& ctc_step(DType t) {
  const auto make = [](DType t) {
    ir::Program step;
    ProgramBuilder b(step);
    const auto here = b.input(t, t), one = b.input(t, t), two = b.input(t, t), skips = b.input(t, t), emitted = b.input(t, t);
    const uint8_t near = b.node(ir::op::logaddexp, t, {here, one}), far = b.node(ir::op::add, t, {two, skips});
    const uint8_t all = b.node(ir::op::logaddexp, t, {ProgramBuilder::result(near, t), ProgramBuilder::result(far, t)});
    b.output(b.node(ir::op::add, t, {ProgramBuilder::result(all, t), emitted}));
    return &kernel_of(step, 0);
  };
  static const Kernel* const kernels[] = {make(DType::F32), make(DType::F64)};
  return *kernels[t == DType::F64];
}

}  // namespace

void ctc_forward(const HostLoop& loop) {
  const auto &emitted = loop.arrays[0], &skips = loop.arrays[1], &out = loop.arrays[2];
  const int64_t steps = emitted.sizes[0], batch = emitted.sizes[1], length = emitted.sizes[2];
  const Kernel& step = ctc_step(emitted.dtype);
  with_type<float, double>(emitted.dtype, [&]<class T>(T) {
    split(batch, 3.0 * static_cast<double>(emitted.numel()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n)
        for (int64_t t = 0; t < steps; ++t) {
          T* const before = out.as<T>() + (t * batch + n) * (length + 2);
          void* operands[] = {before + 2,
                              before + 1,
                              before,
                              skips.as<T>() + n * length,
                              emitted.as<T>() + (t * batch + n) * length,
                              before + batch * (length + 2) + 2};
          step.run(operands, nullptr, length, 0);
        }
    });
  });
}

}  // namespace naru::cpu
