#include "runtime/os/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace naru::runtime {

const bool kChildren = true;

namespace {

// Close-on-exec: programs started by this process must not inherit the pipe.
bool open_pipe(int (&ends)[2]) noexcept {
#ifdef __linux__
  return ::pipe2(ends, O_CLOEXEC) == 0;
#else
  if (::pipe(ends) != 0) return false;
  for (const int end : ends) ::fcntl(end, F_SETFD, FD_CLOEXEC);
  return true;
#endif
}

[[noreturn]] void answer(const std::function<std::string()>& ask, int to) {
  // A crash of the driver is an expected result, so it must not run the parent's signal handlers or leave a core dump.
  for (int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGINT, SIGTERM, SIGPIPE}) ::signal(signal, SIG_DFL);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  int status = 0;
  try {
    const std::string text = ask();
    for (size_t done = 0; done < text.size();) {
      const ssize_t n = ::write(to, text.data() + done, text.size() - done);
      if (n < 0 && errno != EINTR) break;
      if (n > 0) done += static_cast<size_t>(n);
    }
  } catch (...) {
    status = 1;
  }
  // _exit: skip the parent's exit handlers and do not flush its buffers.
  ::_exit(status);
}

// Reads until the other end is closed; nullopt if that takes longer than the limit.
std::optional<std::string> read_all(int from, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  std::string text;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return std::nullopt;
    pollfd file{from, POLLIN, 0};
    if (::poll(&file, 1, static_cast<int>(left.count())) <= 0) continue;
    char buffer[4096];
    const ssize_t n = ::read(from, buffer, sizeof buffer);
    if (n == 0) return text;
    if (n > 0) text.append(buffer, static_cast<size_t>(n));
    if (n < 0 && errno != EINTR) return text;
  }
}

}  // namespace

ChildAnswer ask_in_child(const std::function<std::string()>& ask, std::chrono::milliseconds limit) {
  int ends[2];
  if (!open_pipe(ends)) return {std::nullopt, fmt::format("no pipe: {}", std::strerror(errno))};
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    answer(ask, ends[1]);
  }
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    return {std::nullopt, fmt::format("no child process: {}", std::strerror(errno))};
  }
  std::optional<std::string> text = read_all(ends[0], limit);
  ::close(ends[0]);
  if (!text) ::kill(child, SIGKILL);
  int status = 0;
  pid_t waited;
  do waited = ::waitpid(child, &status, 0);
  while (waited < 0 && errno == EINTR);
  if (!text) return {std::nullopt, fmt::format("no answer within {} s", static_cast<double>(limit.count()) / 1000)};
  // If the program reaps its children itself, the exit status is lost; then rely on the text.
  if (waited == child && WIFSIGNALED(status))
    return {std::nullopt, fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)))};
  if (waited == child && WEXITSTATUS(status) != 0) return {std::nullopt, "an exception"};
  return {std::move(text), ""};
}

}  // namespace naru::runtime
