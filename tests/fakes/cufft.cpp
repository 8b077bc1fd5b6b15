/* cuFFT for tests, over the driver beside this (cuda.cpp): transforms are sums by their definition, in float64, on that driver's memory when its
   stream gets there. As strict as the library is: kinds of plans, alignment, layouts, memory to work in, which it does not take itself once it was told
   not to; what becomes real numbers is overwritten. Besides what cuda.cpp reads:
     NARU_FAKE_FFT_MOST   the longest transform that there are plans for */
#include <cmath>
#include <complex>
#include <map>
#include <mutex>
#include <vector>

#include "cuda_library.h"

namespace {

enum {
  kInvalidPlan = 1,
  kAllocFailed = 2,
  kInvalidType = 3,
  kInvalidValue = 4,
  kInternalError = 5,
  kExecFailed = 6,
  kInvalidSize = 8,
  kUnaligned = 9,
  kNoWorkspace = 13
};
enum { kC2C = 0x29, kR2C = 0x2a, kC2R = 0x2c, kZ2Z = 0x69, kD2Z = 0x6a, kZ2D = 0x6c };

struct Plan {
  void* context;
  bool made = false, allocates = true;
  int type = 0;
  int64_t n = 0, batch = 0, in_step = 0, in_row = 0, out_step = 0, out_row = 0;
  size_t work = 0;
  void *stream = nullptr, *area = nullptr;

  bool wide() const { return type >= kZ2Z; }
  bool complex_in() const { return type != kR2C && type != kD2Z; }
  bool complex_out() const { return type != kC2R && type != kZ2D; }
  int64_t given() const { return complex_out() ? n : n / 2 + 1; }
  int64_t made_numbers() const { return complex_in() ? n : n / 2 + 1; }
};

std::mutex mutex;
std::map<int, Plan>& plans = *new std::map<int, Plan>;

Plan* plan_of(int handle) {
  const auto at = plans.find(handle);
  return at == plans.end() || at->second.context != context() ? nullptr : &at->second;
}

template <class T>
void transform(const Plan& p, T* in, T* out, int direction, bool mine) {
  using C = std::complex<double>;
  const int64_t in_parts = p.complex_in() ? 2 : 1, out_parts = p.complex_out() ? 2 : 1;
  for (int64_t row = 0; row < p.batch; ++row) {
    std::vector<C> x(static_cast<size_t>(p.n));
    for (int64_t j = 0; j < p.n; ++j) {
      const bool mirrored = !p.complex_out() && j > p.n / 2;
      T* const from = in + ((mirrored ? p.n - j : j) * p.in_step + row * p.in_row) * in_parts;
      x[static_cast<size_t>(j)] = p.complex_in() ? C(from[0], mirrored ? -from[1] : from[1]) : C(from[0], 0);
    }
    const double sign = !p.complex_in() ? -1 : !p.complex_out() ? 1 : direction;
    for (int64_t k = 0; k < p.made_numbers(); ++k) {
      C sum = 0;
      for (int64_t j = 0; j < p.n; ++j)
        sum += x[static_cast<size_t>(j)] * std::polar(1.0, sign * 2 * M_PI * static_cast<double>(j * k % p.n) / static_cast<double>(p.n));
      if (!mine) sum = C(NAN, NAN);
      T* const to = out + (k * p.out_step + row * p.out_row) * out_parts;
      to[0] = static_cast<T>(sum.real());
      if (p.complex_out()) to[1] = static_cast<T>(sum.imag());
    }
    if (!p.complex_out() && in != out)
      for (int64_t j = 0; j < p.given(); ++j) in[(j * p.in_step + row * p.in_row) * 2] = static_cast<T>(NAN);
  }
}

int execute(const char* name, int handle, int type, void* in, void* out, int direction) {
  if (const int code = called(name)) return code;
  const std::lock_guard<std::mutex> lock(mutex);
  Plan* const found = plan_of(handle);
  if (!found || !found->made) return kInvalidPlan;
  const Plan p = *found;
  if (p.type != type) return kInvalidType;
  if (!in || !out || (direction != 1 && direction != -1)) return kInvalidValue;
  if (!p.stream) return kExecFailed;  // naru never uses stream 0
  const size_t item = p.wide() ? 8 : 4;
  if (!aligned(in, 2 * item) || !aligned(out, p.complex_out() ? 2 * item : item)) return kUnaligned;
  if (p.work > 0 && !p.allocates && !p.area) return kNoWorkspace;
  const auto bytes = [&](int64_t numbers, int64_t step, int64_t row, bool complex) {
    return static_cast<size_t>((numbers - 1) * step + (p.batch - 1) * row + 1) * item * (complex ? 2 : 1);
  };
  const size_t in_bytes = bytes(p.given(), p.in_step, p.in_row, p.complex_in()),
               out_bytes = bytes(p.made_numbers(), p.out_step, p.out_row, p.complex_out());
  return give_with_workspace(p.stream, p.context, p.area, p.allocates ? 0 : p.work,
                             [=](bool mine) {
                               char *const from = host(p.context, in, in_bytes), *const to = host(p.context, out, out_bytes);
                               if (!from || !to) return;
                               if (p.wide())
                                 transform(p, reinterpret_cast<double*>(from), reinterpret_cast<double*>(to), direction, mine);
                               else
                                 transform(p, reinterpret_cast<float*>(from), reinterpret_cast<float*>(to), direction, mine);
                             }) == 0
             ? 0
             : kExecFailed;
}

}  // namespace

EXPORT int cufftGetVersion(int* version) {
  *version = 11303;
  return 0;
}
EXPORT int cufftCreate(int* handle) {
  if (const int code = called("cufftCreate")) return code;
  if (!context()) return kInternalError;
  const std::lock_guard<std::mutex> lock(mutex);
  static int next = 0;
  *handle = next++;
  plans[*handle] = {context()};
  return 0;
}
EXPORT int cufftDestroy(int handle) {
  if (const int code = called("cufftDestroy")) return code;
  const std::lock_guard<std::mutex> lock(mutex);
  if (!plan_of(handle)) return kInvalidPlan;
  plans.erase(handle);
  return 0;
}
EXPORT int cufftSetAutoAllocation(int handle, int on) {
  if (const int code = called("cufftSetAutoAllocation")) return code;
  const std::lock_guard<std::mutex> lock(mutex);
  Plan* const p = plan_of(handle);
  if (!p || p->made) return kInvalidPlan;  // only before the plan is made
  p->allocates = on != 0;
  return 0;
}
EXPORT int cufftMakePlanMany64(int handle, int rank, long long* n, long long* in_embed, long long in_step, long long in_row,
                               long long* out_embed, long long out_step, long long out_row, int type, long long batch, size_t* work) {
  if (const int code = called("cufftMakePlanMany64")) return code;
  const std::lock_guard<std::mutex> lock(mutex);
  Plan* const p = plan_of(handle);
  if (!p || p->made) return kInvalidPlan;
  if (capturing(p->context)) return kInternalError;  // it allocates memory
  if (rank != 1 || !n || !work || !in_embed != !out_embed || batch < 1) return kInvalidValue;
  if (type != kC2C && type != kR2C && type != kC2R && type != kZ2Z && type != kD2Z && type != kZ2D) return kInvalidType;
  const char* most = getenv("NARU_FAKE_FFT_MOST");
  if (*n < 1 || (most && *n > atoll(most))) return kInvalidSize;
  p->type = type, p->n = *n, p->batch = batch;
  if (in_embed) {
    if (in_step < 1 || out_step < 1 || in_row < 1 || out_row < 1) return kInvalidValue;
    p->in_step = in_step, p->in_row = in_row, p->out_step = out_step, p->out_row = out_row;
  } else {
    p->in_step = p->out_step = 1, p->in_row = p->given(), p->out_row = p->made_numbers();
  }
  *work = p->work = static_cast<size_t>(p->n) * 16;
  p->made = true;
  return 0;
}
EXPORT int cufftSetStream(int handle, void* stream) {
  if (const int code = called("cufftSetStream")) return code;
  const std::lock_guard<std::mutex> lock(mutex);
  Plan* const p = plan_of(handle);
  if (!p || !p->made) return kInvalidPlan;
  p->stream = stream;
  return 0;
}
EXPORT int cufftSetWorkArea(int handle, void* area) {
  if (const int code = called("cufftSetWorkArea")) return code;
  const std::lock_guard<std::mutex> lock(mutex);
  Plan* const p = plan_of(handle);
  if (!p || !p->made || p->allocates) return kInvalidPlan;
  p->area = area;
  return 0;
}
EXPORT int cufftExecC2C(int p, void* in, void* out, int direction) { return execute("cufftExecC2C", p, kC2C, in, out, direction); }
EXPORT int cufftExecR2C(int p, void* in, void* out) { return execute("cufftExecR2C", p, kR2C, in, out, -1); }
EXPORT int cufftExecC2R(int p, void* in, void* out) { return execute("cufftExecC2R", p, kC2R, in, out, 1); }
EXPORT int cufftExecZ2Z(int p, void* in, void* out, int direction) { return execute("cufftExecZ2Z", p, kZ2Z, in, out, direction); }
EXPORT int cufftExecD2Z(int p, void* in, void* out) { return execute("cufftExecD2Z", p, kD2Z, in, out, -1); }
EXPORT int cufftExecZ2D(int p, void* in, void* out) { return execute("cufftExecZ2D", p, kZ2D, in, out, 1); }
