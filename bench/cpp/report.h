// What the benchmarks in C++ share, those over libtorch too: no header of a library is used here.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

// Prints one JSON object: the name, and the median of fifteen times of f, each over so many calls as 20 ms hold.
template <class F>
void report(const char* work, F f) {
  using clock = std::chrono::steady_clock;
  const auto seconds = [&](int loops) {
    const auto start = clock::now();
    for (int i = 0; i < loops; ++i) f();
    return std::chrono::duration<double>(clock::now() - start).count();
  };
  const int first = seconds(3) < 1e-3 ? 1000 : 3;
  const int loops = std::max(1, static_cast<int>(0.02 / (seconds(first) / first)));
  std::vector<double> times;
  for (int i = 0; i < 15; ++i) times.push_back(seconds(loops) / loops);
  std::sort(times.begin(), times.end());
  std::printf("{\"work\": \"%s\", \"seconds\": %.4g}\n", work, times[times.size() / 2]);
}
