// Engine: what joins the ranks of a group. It moves bytes between them and tells which of them has ended or failed. It knows nothing of
// tensors and sums: collectives, and the order of sums, are the same over every engine.
#pragma once

#include <memory>
#include <string>

#include "distributed/channels.h"
#include "distributed/messages.h"

namespace naru::distributed {

class Engine {
 public:
  Engine() = default;
  Engine(const Engine&) = delete;
  virtual ~Engine() = default;
  // "shared memory", "MPI", "threads", "fake", or "" for a group of one.
  virtual std::string name() const = 0;
  // The byte streams of collectives. Null if there are no other ranks: in a group of one, and where they are only pretended.
  virtual Channels* channels() noexcept = 0;
  // Messages outside collectives, and who has ended. Null if there are no other ranks.
  virtual Messages* messages() noexcept = 0;
  // True if this process pretends to be one of several ranks: whatever it sends is lost, and what it would receive is what it has itself.
  virtual bool pretends() const noexcept { return false; }
};

// The engine that `kind` names. "": NARU_DISTRIBUTED_TRANSPORT names it; if that is not set, ranks on one host use shared memory, others MPI.
// "shared" and "mpi" are these two; "threads" is for ranks that are threads of one process; "fake" has one rank only, which plays
// `rank` of `size`. Returns when all ranks have joined.
std::unique_ptr<Engine> engine_of(const std::string& kind, Store& store, int rank, int size, Milliseconds timeout);

std::unique_ptr<Engine> threads_engine(Store& store, int rank, int size, Milliseconds timeout);

}  // namespace naru::distributed
