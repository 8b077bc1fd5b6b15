// The machine's limits, measured in the same minute as the work: memory set, copied and added, and fp32 arithmetic, with 1 and 2 threads.
#include <immintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
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

double median(int threads, const std::function<void(int, int)>& body) {
  std::vector<double> times;
  for (int r = 0; r < 9; ++r) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> pool;
    for (int t = 1; t < threads; ++t) pool.emplace_back(body, t, threads);
    body(0, threads);
    for (auto& t : pool) t.join();
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
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
    const auto line = [&](const char* name, double seconds) { std::printf("{\"limit\": \"%s\", \"threads\": %d, \"seconds\": %.4g}\n", name, threads, seconds); };
    line("memset 64 MiB", median(threads, [&](int t, int) { std::memset(c + part(t), 0, n * 4); }));
    line("copy 16 M", median(threads, [&](int t, int) { copy(a + part(t), c + part(t), n); }));
    line("triad 16 M", median(threads, [&](int t, int) { triad(a + part(t), b + part(t), c + part(t), n); }));
    const bool wide = __builtin_cpu_supports("avx512f");
    const double flops = static_cast<double>(kRounds) * (wide ? 16 * 16 : 12 * 8) * 2 * threads;
    const double seconds = median(threads, [&](int, int) {
      float out = 0;
      wide ? fma512(&out) : fma256(&out);
      asm volatile("" ::"x"(out));
    });
    line("one fp32 operation", seconds / flops);
  }
}
