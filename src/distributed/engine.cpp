#include "distributed/engine.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "distributed/mesh.h"

namespace naru::distributed {
namespace {

// A group of one, or a rank that pretends to have others.
class NoOthers final : public Engine {
 public:
  explicit NoOthers(bool pretends) : pretends_(pretends) {}
  std::string name() const override { return pretends_ ? "fake" : ""; }
  Channels* channels() noexcept override { return nullptr; }
  Messages* messages() noexcept override { return nullptr; }
  bool pretends() const noexcept override { return pretends_; }

 private:
  const bool pretends_;
};

// Ranks that are processes: shared memory on one host, else TCP.
class Processes final : public Engine {
 public:
  Processes(const std::string& kind, Store& store, int rank, int size, Milliseconds timeout) {
    Mesh mesh(store, rank, size, after(timeout));
    std::vector<Descriptor> sockets = mesh.connect(0);
    if (kind != "tcp") channels_ = mesh.share();
    shares_ = channels_ != nullptr;
    if (!channels_) channels_ = tcp_channels(mesh.connect(1));
    messages_ = std::make_unique<Messages>(std::move(sockets), rank, [c = channels_.get()] { c->wake(); });
  }
  std::string name() const override { return shares_ ? "shared memory" : "TCP"; }
  Channels* channels() noexcept override { return channels_.get(); }
  Messages* messages() noexcept override { return messages_.get(); }

 private:
  bool shares_ = false;
  std::unique_ptr<Channels> channels_;
  std::unique_ptr<Messages> messages_;
};

}  // namespace

std::unique_ptr<Engine> process_engine(const std::string& kind, Store& store, int rank, int size, Milliseconds timeout) {
  return std::make_unique<Processes>(kind, store, rank, size, timeout);
}

std::unique_ptr<Engine> engine_of(const std::string& kind, Store& store, int rank, int size, Milliseconds timeout) {
  constexpr std::array<std::string_view, 5> kKinds{"", "shared", "tcp", "threads", "fake"};
  const char* const variable = std::getenv("NARU_DISTRIBUTED_TRANSPORT");
  const std::string wanted = kind.empty() && variable ? variable : kind;
  if (std::ranges::find(kKinds, wanted) == kKinds.end())
    throw ValueError("{} must be \"shared\", \"tcp\", \"threads\" or \"fake\", got \"{}\"",
                     kind.empty() ? "NARU_DISTRIBUTED_TRANSPORT" : "ProcessGroup: the engine", wanted);
  if (size == 1 || wanted == "fake") return std::make_unique<NoOthers>(size > 1);
  if (wanted == "threads") return threads_engine(store, rank, size, timeout);
  return process_engine(wanted, store, rank, size, timeout);
}

}  // namespace naru::distributed
