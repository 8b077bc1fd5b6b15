#include "distributed/pmi.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "naru/distributed/group.h"

namespace naru::distributed {
namespace {

// The value of `name` in "cmd=get kvsname=a key=b"; "value" extends to the end of the line.
std::string word(const std::string& line, const std::string& name) {
  const std::string begin = name + "=";
  size_t at = line.starts_with(begin) ? 0 : line.find(" " + begin);
  if (at == std::string::npos) return "";
  at += begin.size() + (at ? 1 : 0);
  return line.substr(at, name == "value" ? std::string::npos : line.find(' ', at) - at);
}

}  // namespace

std::string pmi_mapping(const std::vector<std::string>& hosts) {
  struct Run {
    size_t host, hosts, ranks;
  };
  std::vector<std::string> known;
  std::vector<Run> runs;
  for (size_t r = 0; r < hosts.size(); ++r) {
    const auto at = std::ranges::find(known, hosts[r]);
    const auto number = static_cast<size_t>(at - known.begin());
    if (at == known.end()) known.push_back(hosts[r]);
    if (r && hosts[r] == hosts[r - 1])
      ++runs.back().ranks;
    else
      runs.push_back({number, 1, 1});
  }
  std::string text = "(vector";
  for (size_t i = 0; i < runs.size();) {
    Run run = runs[i++];
    for (; i < runs.size() && runs[i].ranks == run.ranks && runs[i].host == run.host + run.hosts; ++i) ++run.hosts;
    text += ",(" + std::to_string(run.host) + "," + std::to_string(run.hosts) + "," + std::to_string(run.ranks) + ")";
  }
  return text + ")";
}

Pmi::Pmi(Store& store, int rank, const std::vector<std::string>& hosts, std::string name)
    : store_(store), rank_(rank), size_(static_cast<int>(hosts.size())), mapping_(pmi_mapping(hosts)), name_(std::move(name)) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) throw DistBackendError("MPI can't be started: {}", words_for(errno));
  mine_ = Descriptor(pair[0]), librarys_ = Descriptor(pair[1]);
  make_nonblocking(mine_);
}

void Pmi::set_environment() const {
  clear_environment();
  const auto set = [](const char* name, int value) { ::setenv(name, std::to_string(value).c_str(), 1); };
  set("PMI_FD", librarys_.get()), set("PMI_RANK", rank_), set("PMI_SIZE", size_);
}

void Pmi::clear_environment() {
  for (const char* name : {"PMI_FD", "PMI_RANK", "PMI_SIZE", "PMI_PORT", "PMI_ID"}) ::unsetenv(name);
}

void Pmi::serve(int milliseconds) {
  if (in_barrier_) return pass_barrier(milliseconds);
  pollfd p{mine_.get(), POLLIN, 0};
  if (::poll(&p, 1, milliseconds) <= 0) return;
  char text[4096];
  const ssize_t n = ::recv(mine_.get(), text, sizeof text, MSG_DONTWAIT);
  if (n <= 0) return;
  heard_.append(text, static_cast<size_t>(n));
  for (size_t end = heard_.find('\n'); end != std::string::npos; end = heard_.find('\n')) {
    const std::string line = heard_.substr(0, end);
    heard_.erase(0, end + 1);
    answer(line);
  }
}

void Pmi::tell(const std::string& text) { send_all(mine_, text + "\n", after(Milliseconds(10'000))); }

void Pmi::pass_barrier(int milliseconds) {
  try {
    store_.wait({"pmi/barrier/" + std::to_string(barriers_)}, Milliseconds(milliseconds));
  } catch (const DistStoreError&) {
    return;  // not all are there yet
  }
  ++barriers_;
  in_barrier_ = false;
  tell("cmd=barrier_out rc=0 msg=success");
}

void Pmi::answer(const std::string& line) {
  const std::string command = word(line, "cmd"), key = word(line, "key");
  if (command == "init")
    tell("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0");
  else if (command == "get_maxes")
    tell("cmd=maxes kvsname_max=256 keylen_max=256 vallen_max=4096");
  else if (command == "get_appnum")
    tell("cmd=appnum appnum=0");
  else if (command == "get_universe_size")
    tell("cmd=universe_size size=" + std::to_string(size_));
  else if (command == "get_my_kvsname")
    tell("cmd=my_kvsname kvsname=" + name_);
  else if (command == "put") {
    store_.set("pmi/value/" + key, word(line, "value"));
    tell("cmd=put_result rc=0 msg=success");
  } else if (command == "get") {
    const std::string at = "pmi/value/" + key;
    if (key == "PMI_process_mapping")
      tell("cmd=get_result rc=0 msg=success value=" + mapping_);
    else if (store_.check({at}))
      tell("cmd=get_result rc=0 msg=success value=" + store_.get(at));
    else
      tell("cmd=get_result rc=-1 msg=key_not_found value=unknown");
  } else if (command == "barrier_in") {
    const std::string at = "pmi/barrier/" + std::to_string(barriers_);
    if (store_.add(at + "/count", 1) == size_) store_.set(at, "");
    in_barrier_ = true;
  } else if (command == "finalize")
    tell("cmd=finalize_ack rc=0");
  else
    tell("cmd=response rc=-1");
}

}  // namespace naru::distributed
