#include "kernels/host/c_compiler.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "naru/error.h"
#include "runtime/os/library.h"

extern char** environ;

namespace naru::cpu {
namespace {

namespace fs = std::filesystem;

// Exact arithmetic, as everywhere: nothing contracted, nothing reordered. Warnings about code that would only fail at run time are errors.
constexpr const char* kOptions[] = {
    "-x",
    "c",
    "-std=gnu11",
    "-O3",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-strict-aliasing",
    "-fsigned-char",
    "-fPIC",
    "-shared",
    "-Wl,-z,defs",
    "-fvisibility=hidden",
    "-fdiagnostics-color=never",
    "-Werror=implicit-function-declaration",
    "-Werror=implicit-int",
    "-Werror=int-conversion",
    "-Werror=incompatible-pointer-types",
    "-Werror=vla",
#if defined(__x86_64__)
    "-march=native",
#endif
};

struct Ended {
  int status = -1;
  std::string said;
};

// Runs a command and returns its stdout and stderr. No status: it could not be started.
Ended run_program(const std::vector<std::string>& command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  // English messages, and no LD_PRELOAD or the like that was meant for this process.
  std::vector<char*> environment;
  std::string language = "LC_ALL=C";
  for (char** e = environ; *e; ++e)
    if (std::strncmp(*e, "LC_ALL=", 7) != 0 && std::strncmp(*e, "LD_PRELOAD=", 11) != 0) environment.push_back(*e);
  environment.push_back(language.data());
  environment.push_back(nullptr);
  std::vector<char*> arguments;
  for (const std::string& a : command) arguments.push_back(const_cast<char*>(a.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  Ended ended;
  char buffer[4096];
  for (ssize_t n; !failed && ((n = read(ends[0], buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR));)
    if (n > 0) ended.said.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  if (failed) return {};
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return ended;
}

// A temporary folder, deleted with its contents.
class Folder {
 public:
  Folder() {
    std::error_code none;
    path_ = (fs::temp_directory_path(none) / "naru-XXXXXX").string();
    if (none || !mkdtemp(path_.data()))
      throw RuntimeError("naru.kernel: can't make a folder for the compiler in {}: {}. Set TMPDIR to a folder that can be written", path_,
                         std::strerror(errno));
  }
  Folder(const Folder&) = delete;
  ~Folder() {
    std::error_code none;
    fs::remove_all(path_, none);
  }
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace

CCompiler CCompiler::find() {
  const char* chosen = std::getenv("CC");
  std::vector<std::string> names = {"cc", "gcc", "clang"};
  if (chosen && *chosen) names = {chosen};
  std::vector<std::vector<std::string>> commands;
  for (const std::string& name : names) {
    std::istringstream words(name);
    commands.emplace_back(std::istream_iterator<std::string>(words), std::istream_iterator<std::string>());
  }
  if (!chosen || !*chosen)  // the wheel ziglang contains clang and the C library's headers
    for (const std::string& folder : runtime::Library::package_folders())
      if (std::error_code none; fs::exists(folder + "/ziglang/zig", none)) commands.push_back({folder + "/ziglang/zig", "cc"});
  for (const std::vector<std::string>& command : commands) {
    if (command.empty()) continue;
    CCompiler c;
    c.command_ = command;
    std::vector<std::string> ask = command;
    ask.push_back("--version");
    const Ended ended = run_program(ask);
    if (ended.status != 0) continue;
    c.name_ = ended.said.substr(0, ended.said.find('\n'));
    return c;
  }
  throw RuntimeError(
      "naru.kernel: there is no C compiler, which kernels on cpu and virtual devices need (looked for: {}). Install one (Debian, Ubuntu: "
      "apt-get install gcc libc6-dev; Fedora: dnf install gcc; conda: conda install gcc; as a Python package: pip install ziglang), or "
      "name one "
      "by the environment variable CC",
      fmt::format("{}", fmt::join(names, ", ")));
}

std::string CCompiler::options() const { return fmt::format("{} {}", fmt::join(command_, " "), fmt::join(kOptions, " ")); }

std::string CCompiler::preprocess(const std::string& text) const {
  const Folder folder;
  const std::string source = folder.file("kernel.c"), result = folder.file("kernel.i");
  std::ofstream(source, std::ios::binary) << text;
  std::vector<std::string> command = command_;
  command.insert(command.end(), {"-E", "-x", "c", "-std=gnu11", "-fdiagnostics-color=never", source, "-o", result});
  const Ended ended = run_program(command);
  if (ended.status != 0) throw Refused{ended.said};
  std::ifstream in(result, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(in)), {});
}

std::string CCompiler::compile(const std::string& text, int64_t frame) const {
  const Folder folder;
  const std::string source = folder.file("kernel.c"), library = folder.file("kernel.so");
  std::ofstream(source, std::ios::binary) << text;
  std::vector<std::string> command = command_;
  command.insert(command.end(), std::begin(kOptions), std::end(kOptions));
  if (frame > 0) command.push_back(fmt::format("-Wframe-larger-than={}", frame));
  command.insert(command.end(), {source, "-o", library, "-lm"});
  const Ended ended = run_program(command);
  // Compilers differ in how this warning becomes an error.
  const bool too_large = frame > 0 && ended.said.find("frame-larger-than") != std::string::npos;
  if (ended.status != 0 || too_large) throw Refused{ended.said};
  std::ifstream in(library, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(in)), {});
}

}  // namespace naru::cpu
