// Exits with 0 if an installed naru computes, differentiates and reports errors; and, given a plugin that shares the library, has one generator with it.
#include <naru/naru.h>

#include <dlfcn.h>

#include <cstdio>

// Whether the plugin's seed is this program's. (An archive is in each of them: there it is not.)
bool plugin_seeds(const char* path) {
  void* plugin = dlopen(path, RTLD_NOW);
  const auto seed = plugin ? reinterpret_cast<void (*)(unsigned)>(dlsym(plugin, "plugin_seed")) : nullptr;
  if (!seed) std::puts(dlerror());
  if (seed) seed(12345);
  return seed && naru::default_generator().initial_seed() == 12345;
}

int main(int argc, char** argv) {
  const naru::Tensor x = naru::tensor({1.0, 2.0, 3.0}).requires_grad_();
  (x * x).sum().backward();
  if (x.grad().sum().item<double>() != 12.0) {
    std::puts("wrong gradient");
    return 1;
  }
  if (argc > 1) std::printf("one generator for a program and its plugin: %s\n", plugin_seeds(argv[1]) ? "yes" : "no");
  try {
    naru::matmul(naru::ones({2, 3}), naru::ones({2, 3}));
  } catch (const naru::Error& error) {
    std::printf("as it should: %s\n", error.what());
    return 0;
  }
  std::puts("a matmul of wrong shapes threw nothing");
  return 1;
}
