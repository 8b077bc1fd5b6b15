// The machine's limits, measured in the same minute as the work, with 1 and 2 threads: memory set, read, copied and added
// (16 M floats; 4 M again and again, which a large cache holds), fp32 arithmetic, and the products of OpenBLAS as it is
// (NARU_OPENBLAS names the library).
#include <dlfcn.h>
#include <immintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

namespace {

constexpr size_t kFloats = size_t{1} << 24;

float* memory() {
  void* p = mmap(nullptr, kFloats * 4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  madvise(p, kFloats * 4, MADV_HUGEPAGE);
  std::memset(p, 0, kFloats * 4);
  return static_cast<float*>(p);
}

// Seconds of one run of the body, of which each thread does `repeats`, one after another.
double median(int threads, const std::function<void(int, int)>& once, int repeats = 1) {
  const auto body = [&](int t, int of) {
    for (int r = 0; r < repeats; ++r) once(t, of);
  };
  std::vector<double> times;
  for (int r = 0; r < 9; ++r) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> pool;
    for (int t = 1; t < threads; ++t) pool.emplace_back(body, t, threads);
    body(0, threads);
    for (auto& t : pool) t.join();
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / repeats);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

__attribute__((target("avx"))) void triad(const float* a, const float* b, float* c, size_t n) {
  for (size_t i = 0; i < n; i += 8) _mm256_stream_ps(c + i, _mm256_add_ps(_mm256_load_ps(a + i), _mm256_load_ps(b + i)));
  _mm_sfence();
}
__attribute__((target("avx"))) void copy(const float* a, float* c, size_t n) {
  for (size_t i = 0; i < n; i += 8) _mm256_stream_ps(c + i, _mm256_load_ps(a + i));
  _mm_sfence();
}

__attribute__((target("avx"))) void copy_cached(const float* a, float* c, size_t n) {
  for (size_t i = 0; i < n; i += 8) _mm256_store_ps(c + i, _mm256_load_ps(a + i));
}
__attribute__((target("avx2"))) float read(const float* a, size_t n) {
  __m256 sums[8] = {};
  for (size_t i = 0; i < n; i += 64)
#pragma GCC unroll 8
    for (size_t k = 0; k < 8; ++k) sums[k] = _mm256_add_ps(sums[k], _mm256_load_ps(a + i + 8 * k));
  for (const auto& s : sums) sums[0] = _mm256_add_ps(sums[0], s);
  return sums[0][0];
}

// Microseconds are what a product of small matrices takes: the median over loops of many.
void products() {
  const char* path = std::getenv("NARU_OPENBLAS");
  void* library = path ? dlopen(path, RTLD_NOW) : nullptr;
  if (!library) return;
  using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
  auto sgemm = reinterpret_cast<Sgemm>(dlsym(library, "scipy_cblas_sgemm"));
  if (!sgemm) sgemm = reinterpret_cast<Sgemm>(dlsym(library, "cblas_sgemm"));
  if (!sgemm) return;
  for (int n : {8, 64}) {
    std::vector<float> a(static_cast<size_t>(n * n), 1), c = a;
    const int loops = n == 8 ? 100000 : 1000;
    const double seconds = median(
        1, [&](int, int) { sgemm(101, 111, 111, n, n, n, 1, a.data(), n, a.data(), n, 0, c.data(), n); }, loops);
    std::printf("{\"limit\": \"OpenBLAS %d\", \"threads\": 1, \"seconds\": %.4g}\n", n, seconds);
  }
}

constexpr long kRounds = 4000000;
__attribute__((target("avx2,fma"))) void fma256(float* out) {
  __m256 r[12];
  for (int i = 0; i < 12; ++i) r[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 k = _mm256_set1_ps(0.999f);
  for (long n = 0; n < kRounds; ++n)
#pragma GCC unroll 16
    for (auto& x : r) x = _mm256_fmadd_ps(x, k, k);
  for (auto& x : r) out[0] += x[0];
}
__attribute__((target("avx512f"))) void fma512(float* out) {
  __m512 r[16];
  for (int i = 0; i < 16; ++i) r[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512 k = _mm512_set1_ps(0.999f);
  for (long n = 0; n < kRounds; ++n)
#pragma GCC unroll 16
    for (auto& x : r) x = _mm512_fmadd_ps(x, k, k);
  for (auto& x : r) out[0] += x[0];
}

}  // namespace

int main() {
  float *a = memory(), *b = memory(), *c = memory();
  for (int threads : {1, 2}) {
    const auto part = [&](int t) { return kFloats / static_cast<size_t>(threads) * static_cast<size_t>(t); };
    const size_t n = kFloats / static_cast<size_t>(threads);
    const auto line = [&](const char* name, double seconds) {
      std::printf("{\"limit\": \"%s\", \"threads\": %d, \"seconds\": %.4g}\n", name, threads, seconds);
    };
    line("memset 64 MiB", median(threads, [&](int t, int) { std::memset(c + part(t), 0, n * 4); }));
    line("copy 16 M", median(threads, [&](int t, int) { copy(a + part(t), c + part(t), n); }));
    line("triad 16 M", median(threads, [&](int t, int) { triad(a + part(t), b + part(t), c + part(t), n); }));
    volatile float sum = 0;
    line("read 16 M", median(threads, [&](int t, int) { sum = read(a + part(t), n); }));
    line("read 4 M", median(
                         threads, [&](int t, int) { sum = read(a + part(t) / 4, n / 4); }, 50));
    line("copy 4 M", median(
                         threads, [&](int t, int) { copy_cached(a + part(t) / 4, c + part(t) / 4, n / 4); }, 50));
    const bool wide = __builtin_cpu_supports("avx512f");
    const double flops = static_cast<double>(kRounds) * (wide ? 16 * 16 : 12 * 8) * 2 * threads;
    const double seconds = median(threads, [&](int, int) {
      float out = 0;
      wide ? fma512(&out) : fma256(&out);
      asm volatile("" ::"x"(out));
    });
    line("one fp32 operation", seconds / flops);
  }
  products();
}
