// Ranks as threads of one process.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "naru/distributed/group.h"

namespace naru::distributed {

// Calls f(group) on `size` threads, each with its own group. Returns the error text of each rank; "" for none.
inline std::vector<std::string> as_ranks(int size, const std::function<void(ProcessGroup&)>& f,
                                         Milliseconds timeout = Milliseconds(30'000)) {
  auto store = std::make_shared<HashStore>(timeout);
  std::vector<std::string> thrown(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r)
    threads.emplace_back([&, r] {
      try {
        ProcessGroup group(store, r, size, timeout);
        f(group);
      } catch (const std::exception& e) {
        thrown[static_cast<size_t>(r)] = e.what();
      }
    });
  for (std::thread& t : threads) t.join();
  return thrown;
}

}  // namespace naru::distributed
