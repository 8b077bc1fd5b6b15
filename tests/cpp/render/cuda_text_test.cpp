// The kernels in CUDA C++, compiled by NVRTC, which needs no GPU and no driver.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "ir/op_ids.h"
#include "render/c/launch.h"
#include "support/arrays.h"

namespace naru::render::c {
namespace {

using testing::program_of;
using testing::unread;

struct Nvrtc {
  int (*create)(void**, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  int (*compile)(void*, int, const char* const*) = nullptr;
  int (*log_size)(void*, size_t*) = nullptr;
  int (*log)(void*, char*) = nullptr;
  int (*destroy)(void**) = nullptr;

  Nvrtc() {
    const char* file = std::getenv("NARU_NVRTC");
    void* library = nullptr;
    for (const char* name : {file ? file : "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"})
      if (!library) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    create = reinterpret_cast<decltype(create)>(dlsym(library, "nvrtcCreateProgram"));
    compile = reinterpret_cast<decltype(compile)>(dlsym(library, "nvrtcCompileProgram"));
    log_size = reinterpret_cast<decltype(log_size)>(dlsym(library, "nvrtcGetProgramLogSize"));
    log = reinterpret_cast<decltype(log)>(dlsym(library, "nvrtcGetProgramLog"));
    destroy = reinterpret_cast<decltype(destroy)>(dlsym(library, "nvrtcDestroyProgram"));
  }

  // The compiler's errors for a text; "" if there are none.
  std::string complaint(const std::string& text) const {
    void* program = nullptr;
    if (create(&program, text.c_str(), "kernel.cu", 0, nullptr, nullptr) != 0) return "nvrtcCreateProgram failed";
    const char* const options[] = {"-arch=sm_90", "-fmad=false", "-default-device"};
    std::string complaint;
    if (compile(program, 3, options) != 0) {
      size_t size = 0;
      log_size(program, &size);
      complaint.resize(size);
      log(program, complaint.data());
      complaint += text;
    }
    destroy(&program);
    return complaint;
  }
};

// One of several texts in one program: in a namespace of its own, since all have the same names, and its macros are forgotten behind it.
std::string beside_others(std::string text, size_t number) {
  constexpr std::string_view kC = "extern \"C\" __global__", kMacro = "#define ";
  std::string forgotten;
  for (size_t at = text.find(kMacro); at != text.npos; at = text.find(kMacro, at + 1)) {
    const size_t name = at + kMacro.size();
    forgotten += "#undef " + text.substr(name, text.find_first_of(" (\n", name) - name) + "\n";
  }
  for (size_t at = text.find(kC); at != text.npos; at = text.find(kC, at)) text.replace(at, kC.size(), "__global__");
  return "namespace n" + std::to_string(number) + " {\n" + text + "\n}\n" + forgotten;
}

// Compiles what it is to start, each text once; in the end, forty at once, as NVRTC's beginning takes longer than a text.
class Compiler final : public Launcher {
 public:
  explicit Compiler(const Nvrtc& nvrtc) : nvrtc_(nvrtc) {
    target_.dialect = &cuda();
    target_.units = 132;
  }
  ~Compiler() override {
    const std::vector<std::string> list(texts.begin(), texts.end());
    for (size_t from = 0; from < list.size(); from += 40) {
      std::string all;
      const size_t to = std::min(list.size(), from + 40);
      for (size_t i = from; i < to; ++i) all += beside_others(list[i], i);
      if (nvrtc_.complaint(all).empty()) continue;
      bool told = false;
      for (size_t i = from; i < to; ++i) {
        const std::string complaint = nvrtc_.complaint(list[i]);
        EXPECT_EQ(complaint, "");
        told |= !complaint.empty();
      }
      EXPECT_TRUE(told) << nvrtc_.complaint(all);
    }
  }
  const Target& target() const override { return target_; }
  void start(const Launch& launch) override { texts.insert(launch.text()); }
  void* scratch(size_t) override { return reinterpret_cast<void*>(uintptr_t{1} << 30); }
  void* faults(int, render::c::FaultError) override { return scratch(0); }
  std::set<std::string> texts;

 private:
  const Nvrtc& nvrtc_;
  Target target_;
};

TEST(CudaText, every_kind_of_kernel_compiles) {
  const Nvrtc nvrtc;
  if (!nvrtc.create || !nvrtc.compile)
    GTEST_SKIP() << "NVRTC was not found: NARU_NVRTC can name its file (libnvrtc.so.12; PyPI: nvidia-cuda-nvrtc-cu12)";
  ASSERT_NE(nvrtc.complaint("this is no kernel"), "");
  Compiler compiler(nvrtc);
  constexpr DType kTypes[] = {DType::Bool, DType::U8,  DType::I8,   DType::I16, DType::I32,
                              DType::I64,  DType::F16, DType::BF16, DType::F32, DType::F64};
  for (const DType from : kTypes)
    for (const DType to : kTypes) {
      if ((static_cast<int>(from) + static_cast<int>(to)) % 3 != 0) continue;  // covers each type several times; all pairs take too long
      ir::Map m;
      m.program = program_of(ir::op::copy, {from}, to, to);
      m.shape = {40, 64}, m.inputs = {unread(from, {64, 1})}, m.outputs = {unread(to, {64, 1})};
      run(m, compiler);
    }
  for (const ir::OpId row : {ir::op::exp, ir::op::log, ir::op::sin, ir::op::tanh, ir::op::erf, ir::op::lgamma, ir::op::fmod,
                             ir::op::floor_divide, ir::op::pow, ir::op::atan2, ir::op::round, ir::op::sqrt, ir::op::where, ir::op::isnan})
    for (const DType t : {DType::F32, DType::F64})
      for (const Dims& strides : {Dims{64, 1}, Dims{65, 2}}) {
        ir::Map m;
        const int arity = ir::op_table()[row].arity;
        m.program = program_of(row, std::vector<DType>(static_cast<size_t>(arity), t), t, t);
        m.shape = {40, 64}, m.outputs = {unread(t, {64, 1})};
        for (int i = 0; i < arity; ++i) m.inputs.push_back(unread(t, strides));
        run(m, compiler);
      }
  for (const DType t : kTypes) {
    const DType sum = t == DType::F16 || t == DType::BF16 ? DType::F32 : t;
    for (const bool contiguous : {true, false})
      for (const int64_t length : {100, 40000}) {
        ir::Reduce r;
        r.program = program_of(ir::op::copy, {t}, sum, sum);
        r.op = t == DType::Bool ? ir::ReduceOp::Any : ir::ReduceOp::Max;
        r.shape = {6, length}, r.reduced = 1, r.contiguous = contiguous, r.inputs = {unread(t, contiguous ? Dims{length, 1} : Dims{1, 6})},
        r.out = unread(t, {1});
        run(r, compiler);
      }
    run(ir::ArgReduce{true, {6, 90}, unread(t, {90, 1}), unread(t, {1}), unread(DType::I64, {1})}, compiler);
    run(ir::ArgReduce{false, {6000, 90}, unread(t, {90, 1}), {}, unread(DType::I64, {1})}, compiler);
    if (t != DType::Bool) run(ir::Scan{ir::ReduceOp::Sum, {6, 90}, unread(t, {90, 1}), unread(t, {90, 1})}, compiler);
    run(ir::Sort{{6, 3000}, 3000, true, unread(t, {3000, 1}), unread(t, {3000, 1}), unread(DType::I64, {3000, 1})}, compiler);
    ir::View elsewhere = unread(t, {3, 1}), indices = unread(DType::I64, {3, 1});
    elsewhere.data = indices.data = reinterpret_cast<void*>(uintptr_t{1} << 40);
    for (const int64_t step : {1, 2})
      run(ir::Sort{{6, 30000}, 3, step == 1, unread(t, {step * 30000, step}), elsewhere, indices}, compiler);
    run(ir::Sort{{6, 30}, 3, true, unread(t, {30, 1}), unread(t, {3, 1}), unread(DType::I64, {3, 1})}, compiler);
    ir::Gather g;
    g.shape = {8, 6}, g.out = unread(t, {6, 1}), g.source = unread(t, {0, 1}), g.indices = {{unread(DType::I64, {1, 0}), 11, 6}};
    run(g, compiler);
    for (const bool add : {true, false}) {
      ir::Scatter s;
      s.shape = {8, 6}, s.value = unread(t, {6, 1}), s.target = unread(t, {0, 1}), s.indices = {{unread(DType::I64, {6, 1}), 11, 6}},
      s.add = add;
      run(s, compiler);
    }
    ir::RowFused w;
    w.rows = 6;
    ir::Reduce reduction;
    reduction.program = program_of(ir::op::copy, {t}, sum, sum);
    reduction.op = t == DType::Bool ? ir::ReduceOp::Any : ir::ReduceOp::Max;
    reduction.shape = {6, 90}, reduction.reduced = 1, reduction.inputs = {unread(t, {90, 1})}, reduction.out = unread(t, {1});
    ir::Map map;
    map.program = program_of(ir::op::add, {sum, t}, t, sum);
    map.shape = {6, 90}, map.inputs = {unread(sum, {90, 1}), unread(t, {1, 0})}, map.outputs = {unread(t, {90, 1})};
    for (void* const kept : {unread(t, {}).data, static_cast<void*>(nullptr)})
      for (void* const only : {unread(DType::Bool, {}).data, static_cast<void*>(nullptr)}) {
        w.parts = {{reduction, kept}, {map, nullptr}}, w.only = only;
        run(w, compiler);
      }
    if (t == DType::Bool) continue;
    ir::MatMul q;
    q.dtype = t, q.m = 30, q.n = 40, q.k = 50;
    q.a = {unread(t, {}).data, 0, 50, 1}, q.b = {unread(t, {}).data, 0, 1, 50}, q.c = {unread(t, {}).data, 0, 40, 1}, q.bias = q.a.data;
    run(q, compiler);
  }
  for (const bool finds : {false, true})
    run(ir::Nonzero{{30, 5000}, finds, 9, unread(DType::Bool, {5000, 1}), unread(DType::I64, {1}), unread(DType::I64, {2, 1})}, compiler);
  EXPECT_GT(compiler.texts.size(), 150u);
}

TEST(CudaText, one_program_over_many_lists_compiles) {
  const Nvrtc nvrtc;
  if (!nvrtc.create || !nvrtc.compile) GTEST_SKIP() << "NVRTC was not found";
  Compiler compiler(nvrtc);
  for (const DType t : {DType::Bool, DType::U8, DType::I16, DType::I64, DType::BF16, DType::F32, DType::F64})
    for (const int64_t count : {int64_t{90}, int64_t{1} << 31})
      for (const bool scalar : {false, true}) {
        ir::MapEach each;
        each.program = program_of(ir::op::add, {DType::F32, t}, t, DType::F32);
        each.program.inputs[1].scalar = scalar;
        for (int lists = 1; lists < 4; ++lists) {
          each.counts.push_back(count);
          each.addresses.insert(each.addresses.end(), 3, unread(t, {}).data);
        }
        run(each, compiler);
      }
  EXPECT_EQ(compiler.texts.size(), 28u);
}

TEST(CudaText, kernels_that_count_in_64_bits_compile) {
  const Nvrtc nvrtc;
  if (!nvrtc.create || !nvrtc.compile) GTEST_SKIP() << "NVRTC was not found";
  Compiler compiler(nvrtc);
  constexpr int64_t kHuge = int64_t{1} << 31;
  const DType t = DType::F32;
  ir::Map m;
  m.program = program_of(ir::op::add, {t, t}, t, t);
  m.shape = {kHuge / 64, 5, 64}, m.inputs = {unread(t, {320, 64, 1}), unread(t, {0, 1, 0})}, m.outputs = {unread(t, {320, 64, 1})};
  run(m, compiler);
  run(ir::ArgReduce{true, {2, kHuge}, unread(t, {kHuge, 1}), unread(t, {1}), unread(DType::I64, {1})}, compiler);
  run(ir::ArgReduce{true, {2, kHuge}, unread(t, {1, 2}), unread(t, {1}), unread(DType::I64, {1})}, compiler);
  run(ir::Scan{ir::ReduceOp::Sum, {2, kHuge}, unread(t, {kHuge, 1}), unread(t, {kHuge, 1})}, compiler);
  run(ir::Scan{ir::ReduceOp::Max, {2, kHuge}, unread(t, {1, 2}), unread(t, {1, 2})}, compiler);
  run(ir::Sort{{kHuge / 2}, 9, true, unread(t, {1}), unread(t, {1}), unread(DType::I64, {1})}, compiler);
  for (const bool finds : {false, true})
    run(ir::Nonzero{{3, kHuge}, finds, 9, unread(DType::Bool, {kHuge, 1}), unread(DType::I64, {1}), unread(DType::I64, {2, 1})}, compiler);
  const int64_t wide = std::count_if(compiler.texts.begin(), compiler.texts.end(),
                                     [](const std::string& text) { return text.find("typedef i64 I;") != std::string::npos; });
  EXPECT_EQ(wide, static_cast<int64_t>(compiler.texts.size()));
  EXPECT_GT(wide, 12);
}

constexpr const char* kUserSource = R"(
#define TILE 16
float total(const float* row, int n) {
  float sum = 0;
  for (int i = 0; i < n; i++) sum += row[i];
  return sum;
}
constant float weights[3] = {1, 2, 1};
float head(constant float* w) { return w[0]; }
float place(void) { return global_id(0) + local_size(1); }
kernel void vec_add(const float* a, const float* b, float* out) { int i = global_id(0); out[i] = a[i] + b[i]; }
kernel void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
  shared float left[TILE][TILE];
  shared float right[TILE][TILE];
  int row = global_id(1), col = global_id(0), y = local_id(1), x = local_id(0);
  float sum = 0;
  for (int t = 0; t < k; t += TILE) {
    left[y][x] = row < m && t + x < k ? a[row * k + t + x] : 0;
    right[y][x] = t + y < k && col < n ? b[(t + y) * n + col] : 0;
    barrier();
    for (int i = 0; i < TILE; i++) sum += left[y][i] * right[i][x];
    barrier();
  }
  if (row < m && col < n) c[row * n + col] = sum;
}
kernel void words(const half* h, const bfloat16* b, const bool* mask, char* c, long* l, double* d, float f, unsigned u, unsigned long ul, bool flag, double x) {
  shared float values[4];
  shared float* first = values;
  private float own[2];
  first[local_id(0) % 4] = half_to_float(h[0]) + bfloat16_to_float(b[0]);
  barrier();
  own[0] = min(3, 4) + max(u, 2u) + abs(-3) + (flag ? INFINITY : NAN);
  own[1] = sqrtf(f) + expf(f) + rsqrtf(f) + powf(f, 2.0f) + fminf(f, FLT_MAX) + place() + total(&f, 1) + head(weights);
  uint8_t byte = (uint8_t)ul;
  int64_t wide = INT_MAX;
  c[global_id(2)] = mask[group_id(1)] + byte;
  l[global_size(0)] = wide + num_groups(2);
  d[0] = exp(x) + values[0] + own[0] + own[1];
  atomic_add((int*)c, 1);
}
kernel void wrong(float* out) {
  out[0] = 1;
  out[1] = nothing;
}
)";

ir::UserKernel user_kernel(const char* source, const char* name, std::array<int64_t, 3> items, std::array<int64_t, 3> threads) {
  ir::UserKernel k;
  k.source = &ir::KernelSource::of(source);
  k.entry = k.source->find(name);
  for (const ir::KernelParam& p : k.source->kernels()[static_cast<size_t>(k.entry)].params)
    if (p.pointer)
      k.memory.push_back(reinterpret_cast<void*>(uintptr_t{1} << 20));
    else
      k.numbers.push_back(1);
  k.items = items, k.threads = threads;
  return k;
}

TEST(CudaText, convolutions_and_windows_compile) {
  const Nvrtc nvrtc;
  if (!nvrtc.create || !nvrtc.compile)
    GTEST_SKIP() << "NVRTC was not found: NARU_NVRTC can name its file (libnvrtc.so.12; PyPI: nvidia-cuda-nvrtc-cu12)";
  Compiler compiler(nvrtc);
  for (const DType t : {DType::I64, DType::F16, DType::F32}) {
    void* const data = unread(t, {}).data;
    for (const bool tiles : {false, true})
      for (const auto use : {ir::Convolution::Use::Forward, ir::Convolution::Use::Input, ir::Convolution::Use::Weight}) {
        ir::Convolution q;
        q.use = use, q.dtype = t;
        q.in = tiles ? 30 : 3, q.out = tiles ? 40 : 4, q.batch = 2, q.size = {1, 8, 9}, q.result = {1, 6, 7}, q.kernel = {1, 3, 3};
        q.x.data = q.w.data = q.y.data = data;
        if (use != ir::Convolution::Use::Weight) q.bias = data;
        run(q, compiler);
      }
    for (const auto op : {ir::Windows::Op::Sum, ir::Windows::Op::Max, ir::Windows::Op::Pick})
      for (const bool last : {false, true}) {  // channels
        ir::Windows w;
        w.op = op, w.dtype = w.out = t;
        w.size = {1, 8, 9}, w.result = {1, 4, 3};
        for (size_t d : {1, 2}) w.tables[d] = {2, data, op == ir::Windows::Op::Sum && d == 2 ? data : nullptr};
        w.x.data = w.y.data = w.indices.data = data;
        if (last) {
          w.channels = 16, w.index = DType::I32;
          w.x.strides = {16 * 72, 1, 16 * 72, 16 * 9, 16}, w.y.strides = {16 * 12, 1, 16 * 12, 16 * 3, 16};
          w.indices.strides = op == ir::Windows::Op::Max ? w.y.strides : w.x.strides;
          w.tables[1].step = 2, w.tables[1].first = 0;
        }
        run(w, compiler);
      }
  }
  EXPECT_EQ(compiler.texts.size(), 36u);
}

TEST(CudaText, kernels_of_the_users_own_compile) {
  const Nvrtc nvrtc;
  if (!nvrtc.create || !nvrtc.compile)
    GTEST_SKIP() << "NVRTC was not found: NARU_NVRTC can name its file (libnvrtc.so.12; PyPI: nvidia-cuda-nvrtc-cu12)";
  Compiler compiler(nvrtc);
  for (const char* name : {"vec_add", "matmul", "words"}) {
    run(user_kernel(kUserSource, name, {1000, 1, 1}, {256, 1, 1}), compiler);
    run(user_kernel(kUserSource, name, {100, 30, 7}, {16, 16, 2}), compiler);
    run(user_kernel(kUserSource, name, {int64_t{1} << 32, 1, 1}, {256, 1, 1}), compiler);
  }
  // vec_add has one text per launch shape; kernels with barriers have another for the smaller groups at the edges, whatever their size.
  EXPECT_EQ(compiler.texts.size(), 3u + 5u + 5u);
}

// Throws NVRTC's errors for a text, as a backend does.
class Refusing final : public Launcher {
 public:
  explicit Refusing(const Nvrtc& nvrtc) : nvrtc_(nvrtc) { target_.dialect = &cuda(); }
  const Target& target() const override { return target_; }
  void start(const Launch&) override { FAIL(); }
  void prepare(const Launch& launch) override {
    if (const std::string log = nvrtc_.complaint(launch.text()); !log.empty()) throw CompilerError("refused", "NVRTC", log);
  }
  void* scratch(size_t) override { return nullptr; }
  void* faults(int, render::c::FaultError) override { return nullptr; }

 private:
  const Nvrtc& nvrtc_;
  Target target_;
};

TEST(CudaText, what_nvrtc_refuses_is_told_in_the_users_lines) {
  const Nvrtc nvrtc;
  if (!nvrtc.create || !nvrtc.compile)
    GTEST_SKIP() << "NVRTC was not found: NARU_NVRTC can name its file (libnvrtc.so.12; PyPI: nvidia-cuda-nvrtc-cu12)";
  Refusing launcher(nvrtc);
  prepare(user_kernel(kUserSource, "vec_add", {100, 1, 1}, {256, 1, 1}), launcher);
  try {
    prepare(user_kernel(kUserSource, "wrong", {100, 1, 1}, {256, 1, 1}), launcher);
    FAIL();
  } catch (const RuntimeError& e) {
    const std::string text = e.what();
    EXPECT_NE(
        text.find("naru.kernel 'wrong': NVRTC refused the source:\n  line 43: identifier \"nothing\" is undefined\n    out[1] = nothing;"),
        std::string::npos)
        << text;
  }
}

TEST(CudaText, cuda_of_the_users_own_is_taken_as_it_is) {
  const Nvrtc nvrtc;
  if (!nvrtc.create || !nvrtc.compile)
    GTEST_SKIP() << "NVRTC was not found: NARU_NVRTC can name its file (libnvrtc.so.12; PyPI: nvidia-cuda-nvrtc-cu12)";
  constexpr const char* kSource = R"(
template <class T> __device__ T twice(T x) { return x + x; } int main() { VecAdd<<<1, 64>>>(host_memory, 0, 0, 1, 2.0); }
extern "C" __global__ void __launch_bounds__(256)
VecAdd(float *A, const float* __restrict__ B, float *C, int n, double scale)
{
    __shared__ float part[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = A[i];
    __syncthreads();
    C[i] = part[threadIdx.x] + twice(B[i]) * n * scale;
}
__global__ void wrong(float* out) { out[0] = nothing; }
)";
  Refusing launcher(nvrtc);
  const ir::UserKernel add = user_kernel(kSource, "VecAdd", {100, 5, 1}, {64, 2, 1});
  EXPECT_EQ(add.source->kernels()[0].params.size(), 5u);
  try {
    prepare(add, launcher);
    FAIL();
  } catch (const RuntimeError& e) {
    EXPECT_NE(std::string(e.what()).find("'VecAdd': NVRTC refused the source:\n  line 12: identifier \"nothing\""), std::string::npos)
        << e.what();
  }
  std::string without = kSource;
  without.erase(without.find("__global__ void wrong"));
  prepare(user_kernel(without.c_str(), "VecAdd", {100, 5, 1}, {64, 2, 1}), launcher);
}

}  // namespace
}  // namespace naru::render::c
