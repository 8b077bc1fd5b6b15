#include "distributed/engine.h"

#include <algorithm>
#include <cstring>

#include "distributed/mesh.h"
#include "runtime/os/fork.h"
#include "runtime/os/interrupt.h"

namespace naru::distributed {
namespace {

constexpr const char* kNames[] = {"all_reduce", "reduce",         "broadcast",  "all_gather", "gather",
                                  "scatter",    "reduce_scatter", "all_to_all", "barrier"};

// "all_reduce(SUM) of 6 elements of float32 [2, 3] (the group's collective number 4)"
std::string described(const Header& h) {
  std::string text = h.what < std::size(kNames) ? kNames[h.what] : "something unknown";
  const auto what = static_cast<Collective>(h.what);
  if (what == Collective::AllReduce || what == Collective::Reduce || what == Collective::ReduceScatter)
    text += std::string("(") + name_of(static_cast<ReduceOp>(h.op & 7)) + ")";
  if (what != Collective::Barrier) {
    text += " of " + std::to_string(h.elements) + " elements of " + std::string(h.type < kElementTypes ? kDTypeTraits[h.type].name : "?") +
            " [";
    for (int i = 0; i < h.dims; ++i) text += (i ? ", " : "") + (i < 4 ? std::to_string(h.sizes[i]) : "...");
    text += "]";
  }
  if (h.root >= 0) text += " with root " + std::to_string(h.root);
  return text + " (the group's collective number " + std::to_string(h.number) + ")";
}

WorkRef finished() {
  auto work = std::make_shared<Work>();
  work->finish();
  return work;
}

}  // namespace

ProcessGroup::Engine::Engine(std::shared_ptr<Store> store, int rank, int size, Milliseconds timeout)
    : store_(std::move(store)),
      rank_(rank),
      size_(size),
      generation_(runtime::fork_generation()),
      timeout_(timeout.count()),
      traffic_(rank, size),
      suspected_(static_cast<size_t>(size)) {
  if (size == 1) return;
  Mesh mesh(*store_, rank, size, after(timeout));
  std::vector<Descriptor> sockets = mesh.connect(0);
  channels_ = mesh.share();
  transport_ = channels_ ? "shared memory" : "TCP";
  if (!channels_) channels_ = tcp_channels(mesh.connect(1));
  messages_ = std::make_unique<Messages>(std::move(sockets), rank, [c = channels_.get()] { c->wake(); });
  set_timeout(timeout);
  // Wait until all ranks have come this far: afterwards the memory's creator may close its file, and the store's server may end.
  store_->set("ready/" + std::to_string(rank), "");
  std::vector<std::string> keys;
  for (int r = 0; r < size; ++r) keys.push_back("ready/" + std::to_string(r));
  store_->wait(keys, timeout);
}

ProcessGroup::Engine::~Engine() {
  if (generation_ != runtime::fork_generation()) {  // a forked child has none of the threads
    if (thread_.joinable()) static_cast<void>(new std::thread(std::move(thread_)));
    return;
  }
  {
    std::unique_lock lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void ProcessGroup::Engine::set_timeout(Milliseconds timeout) {
  timeout_ = timeout.count();
  if (messages_) messages_->set_timeout(timeout);
}

// --- order of collectives, and the thread that runs them

void ProcessGroup::Engine::perform(const std::function<void()>& job) {
  deadline_ = after(Milliseconds(timeout_));
  try {
    if (messages_)
      if (const auto reason = messages_->reason()) throw DistBackendError("the group can't be used any more: {}", *reason);
    job();
  } catch (const DistError& e) {
    // The ranks' byte streams are no longer in step, so the group is unusable.
    if (messages_) messages_->fail(e.what());
    throw;
  } catch (const runtime::Interrupted&) {
    if (messages_) messages_->fail("rank " + std::to_string(rank_) + " was interrupted in a collective");
    throw;
  }
}

void refuse_in_child() {
  throw RuntimeError(
      "this process was forked from a rank of a group and is none itself: it can't take part in what the group does. Call collectives in "
      "the "
      "process that called init_process_group, or make a group in this one");
}

void ProcessGroup::Engine::require_own_process() const {
  if (generation_ != runtime::fork_generation()) refuse_in_child();
}

WorkRef ProcessGroup::Engine::run(bool async, std::function<void()> job) {
  require_own_process();
  std::unique_lock lock(mutex_);
  if (!async && !busy_ && queue_.empty()) {
    busy_ = true;
    lock.unlock();
    std::exception_ptr error;
    try {
      perform(job);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    busy_ = false;
    if (!queue_.empty()) changed_.notify_all();
    lock.unlock();
    if (error) std::rethrow_exception(error);
    return finished();
  }
  auto work = std::make_shared<Work>();
  queue_.push_back({std::move(job), work});
  if (!thread_.joinable()) thread_ = std::thread([this] { this->work(); });
  changed_.notify_all();
  lock.unlock();
  if (!async) work->wait();
  return work;
}

void ProcessGroup::Engine::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !busy_ && (stopped_ || !queue_.empty()); });
    if (queue_.empty()) return;
    Job job = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    std::exception_ptr error;
    try {
      perform(job.run);
    } catch (...) {
      error = std::current_exception();
    }
    job.run = nullptr;
    job.work->finish(error);
    job.work = nullptr;
    lock.lock();
    busy_ = false;
  }
}

// --- one exchange

Header ProcessGroup::Engine::header(Collective what, const Block& b, int root, ReduceOp op) {
  Header h;
  h.number = ++number_;
  h.elements = b.elements, h.what = static_cast<uint8_t>(what), h.op = static_cast<uint8_t>(op), h.type = static_cast<uint8_t>(b.type);
  h.dims = static_cast<uint8_t>(std::min<size_t>(b.sizes.size(), 255)), h.root = root;
  for (size_t i = 0; i < std::min<size_t>(b.sizes.size(), 4); ++i) h.sizes[i] = b.sizes[i];
  mine_ = h;
  traffic_.begin(h);
  return h;
}

void ProcessGroup::Engine::exchange() {
  if (size_ == 1) return;
  std::ranges::fill(suspected_, uint8_t{0});
  const runtime::InterruptWatch watch;
  watch_ = &watch;
  traffic_.run(
      *channels_, [this](std::span<const uint8_t> wanted) { look(wanted); },
      [this](int peer, const Header& theirs, const Header& expected) { complain(peer, theirs, expected); });
}

void ProcessGroup::Engine::look(std::span<const uint8_t> wanted) {
  if (watch_ && watch_->interrupted()) throw runtime::Interrupted("a collective was interrupted");
  if (messages_->any_gone()) {
    if (const auto reason = messages_->reason()) throw DistBackendError("{}", *reason);
  }
  for (int peer = 0; peer < size_; ++peer) {
    const auto i = static_cast<size_t>(peer);
    if (!wanted[i]) continue;
    // Data that a peer wrote before it left may still arrive, so check once more.
    const bool gone = messages_->gone(peer);
    if (!gone && !channels_->closed(peer)) continue;
    if (++suspected_[i] > (gone ? 1 : 50))
      throw DistBackendError("{} while rank {} was in {}", messages_->farewell(peer), rank_, described(mine_));
  }
  if (Clock::now() < deadline_) return;
  std::string absent;
  for (const int peer : traffic_.absent()) absent += (absent.empty() ? "" : ", ") + std::to_string(peer);
  throw DistBackendError("{} on rank {} timed out after {} ms: {}{}", described(mine_), rank_, int64_t{timeout_},
                         absent.empty() ? "all ranks have come, and one has stopped in it" : "nothing has come from rank ", absent);
}

void ProcessGroup::Engine::complain(int peer, const Header& theirs, const Header& expected) const {
  throw DistBackendError(
      "ranks do not call the same: rank {} is in {}, and rank {} in {}{}. All ranks must call the same collectives in the same order, with "
      "tensors of one type and size",
      peer, described(theirs), rank_, described(mine_),
      expected.elements != mine_.elements ? ", which expects " + std::to_string(expected.elements) + " elements of that rank" : "");
}

// --- the collectives

void ProcessGroup::Engine::all_reduce(const Block& b, ReduceOp op) {
  const Reduction reduction = reduction_of(op, b.type);
  header(Collective::AllReduce, b, -1, op);
  if (size_ == 1) return;
  // Small: a message to and from each rank. Large, where this would send the elements too often: each rank reduces one part for all.
  constexpr size_t kSmall = 4096;
  if (b.bytes() <= kSmall || b.elements < static_cast<size_t>(size_))
    all_reduce_small(b, reduction);
  else
    all_reduce_large(b, reduction);
}

void ProcessGroup::Engine::all_reduce(const std::vector<Block>& list, ReduceOp op) {
  constexpr size_t kPacked = size_t{32} << 10;
  std::vector<Block> small;
  for (const Block& b : list) {
    if (list.size() > 1 && b.bytes() <= kPacked)
      small.push_back(b);
    else
      all_reduce(b, op);
  }
  while (!small.empty()) {
    const DType type = small[0].type;
    const auto others = std::stable_partition(small.begin(), small.end(), [&](const Block& b) { return b.type == type; });
    size_t elements = 0;
    for (auto b = small.begin(); b != others; ++b) elements += b->elements;
    packed_.resize(elements * size_of(type));
    const auto each = [&](const auto& f) {
      char* at = packed_.data();
      for (auto b = small.begin(); b != others; at += b->bytes(), ++b)
        if (b->elements) f(*b, at);
    };
    each([](const Block& b, char* at) { std::memcpy(at, b.data, b.bytes()); });
    all_reduce({packed_.data(), elements, type, {static_cast<int64_t>(elements)}}, op);
    each([](const Block& b, char* at) { std::memcpy(b.data, at, b.bytes()); });
    small.erase(small.begin(), others);
  }
}

// Every rank folds in rank order.
void ProcessGroup::Engine::all_reduce_small(const Block& b, const Reduction& reduction) {
  const size_t bytes = b.bytes(), stride = (bytes + 15) / 16 * 16;
  scratch_.resize(stride * static_cast<size_t>(size_));
  const auto part = [&](int r) { return scratch_.data() + stride * static_cast<size_t>(r); };
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    traffic_.meet(peer);
    traffic_.send(peer, b.data, bytes);
    traffic_.receive(peer, part(peer), bytes);
  }
  exchange();
  if (!bytes) return;
  if (rank_ == 0) {
    for (int peer = 1; peer < size_; ++peer) reduction.fold(b.data, part(peer), b.elements);
  } else {
    for (int peer = 1; peer < size_; ++peer) reduction.fold(part(0), peer == rank_ ? b.data : part(peer), b.elements);
    std::memcpy(b.data, part(0), bytes);
  }
  if (reduction.divide) reduction.divide(b.data, b.elements, size_);
}

// Each rank reduces one part, and sends it to all others as it progresses. A part of this rank's elements is overwritten only after the
// reduced part has come from its owner, which needed those elements.
void ProcessGroup::Engine::all_reduce_large(const Block& b, const Reduction& reduction) {
  const size_t element = size_of(b.type), n = static_cast<size_t>(size_);
  const auto begin = [&](int r) { return static_cast<size_t>(r) * (b.elements / n) + std::min(static_cast<size_t>(r), b.elements % n); };
  const auto bytes = [&](int r) { return (begin(r + 1) - begin(r)) * element; };
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    traffic_.meet(peer);
    traffic_.send(peer, b.data + begin(peer) * element, bytes(peer));
  }
  traffic_.fold(b.data + begin(rank_) * element, bytes(rank_), element, reduction);
  traffic_.send_folded();
  for (int peer = 0; peer < size_; ++peer)
    if (peer != rank_) traffic_.receive(peer, b.data + begin(peer) * element, bytes(peer));
  exchange();
}

void ProcessGroup::Engine::reduce(const Block& b, int root, ReduceOp op) {
  const Reduction reduction = reduction_of(op, b.type);
  header(Collective::Reduce, b, root, op);
  if (rank_ == root) {
    for (int peer = 0; peer < size_; ++peer)
      if (peer != rank_) traffic_.meet(peer);
    traffic_.fold(b.data, b.bytes(), size_of(b.type), reduction);
  } else {
    traffic_.meet(root);
    traffic_.send(root, b.data, b.bytes());
  }
  exchange();
}

void ProcessGroup::Engine::broadcast(const Block& b, int root) {
  header(Collective::Broadcast, b, root);
  if (rank_ == root) {
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      traffic_.tell(peer);
      traffic_.send(peer, b.data, b.bytes());
    }
  } else {
    traffic_.hear(root);
    traffic_.receive(root, b.data, b.bytes());
  }
  exchange();
}

namespace {
void copy(const Block& to, const Block& from) {
  if (to.data != from.data && from.bytes()) std::memcpy(to.data, from.data, from.bytes());
}
}  // namespace

void ProcessGroup::Engine::all_gather(const std::vector<Block>& out, const Block& in) {
  header(Collective::AllGather, in);
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    traffic_.meet(peer);
    traffic_.send(peer, in.data, in.bytes());
    traffic_.receive(peer, out[static_cast<size_t>(peer)].data, in.bytes());
  }
  exchange();
  copy(out[static_cast<size_t>(rank_)], in);
}

void ProcessGroup::Engine::gather(const std::vector<Block>& out, const Block& in, int root) {
  header(Collective::Gather, in, root);
  if (rank_ == root) {
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      traffic_.meet(peer);
      traffic_.receive(peer, out[static_cast<size_t>(peer)].data, in.bytes());
    }
  } else {
    traffic_.meet(root);
    traffic_.send(root, in.data, in.bytes());
  }
  exchange();
  if (rank_ == root) copy(out[static_cast<size_t>(rank_)], in);
}

void ProcessGroup::Engine::scatter(const Block& out, const std::vector<Block>& in, int root) {
  header(Collective::Scatter, out, root);
  if (rank_ == root) {
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      traffic_.meet(peer);
      traffic_.send(peer, in[static_cast<size_t>(peer)].data, out.bytes());
    }
  } else {
    traffic_.meet(root);
    traffic_.receive(root, out.data, out.bytes());
  }
  exchange();
  if (rank_ == root) copy(out, in[static_cast<size_t>(rank_)]);
}

void ProcessGroup::Engine::reduce_scatter(const Block& out, const std::vector<Block>& in, ReduceOp op) {
  const Reduction reduction = reduction_of(op, out.type);
  header(Collective::ReduceScatter, out, -1, op);
  copy(out, in[static_cast<size_t>(rank_)]);
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    traffic_.meet(peer);
    traffic_.send(peer, in[static_cast<size_t>(peer)].data, out.bytes());
  }
  if (size_ == 1) return;
  traffic_.fold(out.data, out.bytes(), size_of(out.type), reduction);
  exchange();
}

void ProcessGroup::Engine::all_to_all(const std::vector<Block>& out, const std::vector<Block>& in) {
  Header sent = header(Collective::AllToAll, in[static_cast<size_t>(rank_)]), expected = sent;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    const Block &to = in[static_cast<size_t>(peer)], &from = out[static_cast<size_t>(peer)];
    sent.elements = to.elements, expected.elements = from.elements;
    traffic_.meet(peer, &sent, &expected);
    traffic_.send(peer, to.data, to.bytes());
    traffic_.receive(peer, from.data, from.bytes());
  }
  exchange();
  copy(out[static_cast<size_t>(rank_)], in[static_cast<size_t>(rank_)]);
}

void ProcessGroup::Engine::barrier() {
  header(Collective::Barrier, {});
  for (int peer = 0; peer < size_; ++peer)
    if (peer != rank_) traffic_.meet(peer);
  exchange();
}

}  // namespace naru::distributed
