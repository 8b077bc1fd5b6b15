#include <atomic>
#include <cstdio>

#include "naru/error.h"

namespace naru {
namespace {
void print(const std::string& text) { std::fprintf(stderr, "naru: warning: %s\n", text.c_str()); }
std::atomic<void (*)(const std::string&)> current{print};
}  // namespace

void warn(const std::string& text) { current.load()(text); }
void set_warner(void (*warner)(const std::string& text)) { current = warner ? warner : print; }

}  // namespace naru
