#include "backends/cuda/transforms.h"

#include <fmt/format.h>

#include <optional>

#include "backends/cuda/device.h"
#include "naru/error.h"

namespace naru::backends::cuda {
namespace {

using ir::Fft;
using Kind = Fft::Kind;

// If the positions of `shape` have one common stride: that stride.
std::optional<int64_t> one_step(const Dims& shape, const Dims& strides) {
  int64_t step = 0, next = 0;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == 1) continue;
    if (step == 0)
      step = strides[d];
    else if (strides[d] != next)
      return std::nullopt;
    next = strides[d] * shape[d];
  }
  return step;
}

struct SidePlace {
  bool direct = false;
  int64_t step = 1, row = 0;  // in values of this side: a complex pair counts as one
};

SidePlace place(const Fft& op, const Fft::Side& side, bool complex, int64_t length) {
  const int64_t parts = complex ? 2 : 1, dense = length;
  // Complex values, and reals that are read in pairs, must be aligned to the size of a pair.
  const bool aligned = reinterpret_cast<uintptr_t>(side.data) % (2 * size_of(op.dtype)) == 0;
  const std::optional<int64_t> row = one_step(op.shape, side.strides);
  if (aligned && row && side.step > 0 && side.step % parts == 0 && *row >= 0 && *row % parts == 0) {
    const int64_t rows = product(op.shape);
    if (rows == 1) return {true, side.step / parts, dense * (side.step / parts)};
    if (*row > 0) return {true, side.step / parts, *row / parts};
  }
  return {false, 1, dense};
}

[[noreturn]] void fail(cufftResult status, const FftRows& rows, Device device) {
  throw RuntimeError("cuFFT error: {} ({} transforms of {} numbers on {})", gpu::status_name<Cufft>(status), rows.rows, rows.n,
                     device.str());
}

cufftResult execute(const Cufft& f, cufftHandle plan, int type, bool inverse, void* in, void* out) {
  const int direction = inverse ? CUFFT_INVERSE : CUFFT_FORWARD;
  switch (type) {
    case CUFFT_C2C:
      return f.cufftExecC2C(plan, in, out, direction);
    case CUFFT_R2C:
      return f.cufftExecR2C(plan, in, out);
    case CUFFT_C2R:
      return f.cufftExecC2R(plan, in, out);
    case CUFFT_Z2Z:
      return f.cufftExecZ2Z(plan, in, out, direction);
    case CUFFT_D2Z:
      return f.cufftExecD2Z(plan, in, out);
    default:
      return f.cufftExecZ2D(plan, in, out);
  }
}

}  // namespace

FftPlacing placing_of(const Fft& op) {
  const bool wide = op.dtype == DType::F64;
  const int types[][2] = {{CUFFT_C2C, CUFFT_Z2Z}, {CUFFT_R2C, CUFFT_D2Z}, {CUFFT_C2R, CUFFT_Z2D}};
  FftPlacing p;
  const SidePlace in = place(op, op.in, op.complex_in(), op.given()), out = place(op, op.out, op.complex_out(), op.made());
  // Transforms to reals overwrite their input, and need zeros in some imaginary parts: copy it.
  p.copies_in = !in.direct || op.kind == Kind::HalfToReal;
  p.copies_out = !out.direct;
  p.rows = {types[static_cast<size_t>(op.kind)][wide], op.n, product(op.shape), in.step, in.row, out.step, out.row};
  if (p.copies_in) p.rows.in_step = 1, p.rows.in_row = op.given();
  return p;
}

struct Transforms::Plan {
  const CudaDevice& device;
  const Cufft& functions;
  cufftHandle handle = 0;
  bool made = false;
  size_t workspace = 0;

  Plan(const CudaDevice& d, const Cufft& f) : device(d), functions(f) {}
  Plan(const Plan&) = delete;
  ~Plan() {
    if (!made || device.forked() || device.lost()) return;
    if (const CudaDevice::Current scope(device, std::nothrow); scope) functions.cufftDestroy(handle);
  }
};

Transforms::~Transforms() = default;

std::shared_ptr<Transforms::Plan> Transforms::plan_of(const FftRows& r, cufftResult& status) {
  status = CUFFT_SUCCESS;
  const Cufft* const f = library_.get();
  if (!f) return nullptr;
  if (const auto known = plans_.find(r); known != plans_.end()) return known->second;
  auto plan = std::make_shared<Plan>(device_, *f);
  status = f->cufftCreate(&plan->handle);
  if (status != CUFFT_SUCCESS) {
    library_.refused(status);
    return nullptr;
  }
  plan->made = true;
  // These must be given for the strides to be used, although the values do not matter in one dimension.
  long long n = r.n, in_embed = r.n, out_embed = r.n;
  status = f->cufftSetAutoAllocation(plan->handle, 0);
  if (status == CUFFT_SUCCESS)
    status = f->cufftMakePlanMany64(plan->handle, 1, &n, &in_embed, r.in_step, r.in_row, &out_embed, r.out_step, r.out_row, r.type, r.rows,
                                    &plan->workspace);
  if (status != CUFFT_SUCCESS) return nullptr;
  if (plans_.size() >= kMostPlans) plans_.clear();
  plans_.emplace(r, plan);
  return plan;
}

std::shared_ptr<Transforms::Plan> Transforms::must_have(const FftRows& rows) {
  cufftResult status = CUFFT_SUCCESS;
  if (auto plan = plan_of(rows, status)) return plan;
  fail(status, rows, device_.device());
}

bool Transforms::takes(const Fft& op) {
  if (product(op.shape) == 0) return false;
  const std::lock_guard lock(mutex_);
  cufftResult status = CUFFT_SUCCESS;
  return plan_of(placing_of(op).rows, status) != nullptr;
}

size_t Transforms::workspace(const FftRows& rows) {
  const std::lock_guard lock(mutex_);
  return must_have(rows)->workspace;
}

void Transforms::start(const FftRows& rows, bool inverse, void* in, void* out, void* workspace, CUstream stream) {
  const std::lock_guard lock(mutex_);
  const auto plan = must_have(rows);
  const Cufft& f = plan->functions;
  cufftResult status = f.cufftSetStream(plan->handle, stream);
  if (status == CUFFT_SUCCESS && plan->workspace > 0) status = f.cufftSetWorkArea(plan->handle, workspace);
  if (status == CUFFT_SUCCESS) status = execute(f, plan->handle, rows.type, inverse, in, out);
  if (status != CUFFT_SUCCESS) fail(status, rows, device_.device());
}

}  // namespace naru::backends::cuda
