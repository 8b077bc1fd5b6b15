#include "distributed/engine.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "distributed/mesh.h"
#include "distributed/mpi_world.h"

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

// Ranks that are processes.
class Processes final : public Engine {
 public:
  Processes(std::string name, std::unique_ptr<Channels> channels, std::unique_ptr<Channels> lines, int rank, int size)
      : name_(std::move(name)),
        channels_(std::move(channels)),
        messages_(std::move(lines), rank, size, [c = channels_.get()] { c->wake(); }) {}
  std::string name() const override { return name_; }
  Channels* channels() noexcept override { return channels_.get(); }
  Messages* messages() noexcept override { return &messages_; }

 private:
  const std::string name_;
  const std::unique_ptr<Channels> channels_;
  Messages messages_;
};

std::unique_ptr<Engine> mpi_engine(RollCall& roll, Mesh& mesh) {
  MpiWorld& world = MpiWorld::join(roll, mesh);
  const std::vector<int> ranks = world.ranks_of(roll);
  // The numbers of two streams.
  const uint64_t number = std::stoull(roll.of_first("mpi/streams", std::to_string(random_token() & ~uint64_t{1})));
  auto channels = mpi_channels(world, number, ranks, roll.rank()), lines = mpi_channels(world, number + 1, ranks, roll.rank());
  return std::make_unique<Processes>("MPI", std::move(channels), std::move(lines), roll.rank(), roll.size());
}

// Shared memory on one host, unless `kind` is "mpi"; else MPI, unless it is "shared".
std::unique_ptr<Engine> process_engine(const std::string& kind, Store& store, int rank, int size, Milliseconds timeout) {
  RollCall roll(store, rank, size, after(timeout));
  Mesh mesh(roll);
  std::string need = "the ranks can't be joined by MPI";
  if (kind != "mpi") {
    need = mesh.one_host() ? "the ranks on this host can't map each other's memory" : "the ranks are on several hosts";
    if (auto channels = mesh.share()) {
      auto lines = socket_channels(mesh.connect(0), kMessageBuffer);
      return std::make_unique<Processes>("shared memory", std::move(channels), std::move(lines), rank, size);
    }
    if (kind == "shared") throw DistBackendError("{}, so the engine \"shared\" can't join them", need);
    need += ", so MPI has to join them";
  }
  if (const std::string obstacle = MpiWorld::obstacle(roll); !obstacle.empty()) throw DistBackendError("{}: {}", need, obstacle);
  return mpi_engine(roll, mesh);
}

}  // namespace

std::unique_ptr<Engine> engine_of(const std::string& kind, Store& store, int rank, int size, Milliseconds timeout) {
  constexpr std::array<std::string_view, 5> kKinds{"", "shared", "mpi", "threads", "fake"};
  const char* const variable = std::getenv("NARU_DISTRIBUTED_TRANSPORT");
  const std::string wanted = kind.empty() && variable ? variable : kind;
  if (std::ranges::find(kKinds, wanted) == kKinds.end())
    throw ValueError("{} must be \"shared\", \"mpi\", \"threads\" or \"fake\", got \"{}\"",
                     kind.empty() ? "NARU_DISTRIBUTED_TRANSPORT" : "ProcessGroup: the engine", wanted);
  if (size == 1 || wanted == "fake") return std::make_unique<NoOthers>(size > 1);
  if (wanted == "threads") return threads_engine(store, rank, size, timeout);
  return process_engine(wanted, store, rank, size, timeout);
}

}  // namespace naru::distributed
