#include "distributed/collectives.h"

#include <algorithm>
#include <cstring>

#include "core/language.h"
#include "distributed/roll_call.h"
#include "runtime/os/fork.h"
#include "runtime/os/interrupt.h"

namespace naru::distributed {
namespace {

constexpr const char* kNotWanted = "it does not want it";
constexpr const char* kNames[] = {"all_reduce", "reduce",         "broadcast",        "all_gather", "gather",
                                  "scatter",    "reduce_scatter", "all_to_all",       "barrier",    "all_reduce of shards",
                                  "send",       "recv",           "batch_isend_irecv"};

// Names of PyTorch's flight recorder.
constexpr const char* kRecordedNames[] = {"all_reduce", "reduce",  "broadcast",  "all_gather", "gather", "scatter",  "reduce_scatter",
                                          "all_to_all", "barrier", "all_reduce", "send",       "recv",   "coalesced"};

TensorsOfCall tensors_of(uint8_t type, uint64_t elements, uint8_t dims, const int64_t* sizes) {
  TensorsOfCall t;
  t.type = type, t.elements = elements, t.dims = dims;
  for (size_t i = 0; i < std::min<size_t>(dims, std::size(t.sizes)); ++i) t.sizes[i] = sizes[i];
  return t;
}

// So many elements, of no particular shape.
TensorsOfCall flat(uint8_t type, uint64_t elements) {
  const auto n = static_cast<int64_t>(elements);
  return tensors_of(type, elements, 1, &n);
}

WorkRef finished() {
  auto work = std::make_shared<Work>();
  work->finish();
  return work;
}

}  // namespace

Header header_of(Collective what, uint64_t number, size_t elements, DType type, const Dims& sizes, int root, ReduceOp op) {
  Header h;
  h.number = number;
  h.elements = elements, h.what = static_cast<uint8_t>(what), h.op = static_cast<uint8_t>(op), h.type = static_cast<uint8_t>(type);
  h.dims = static_cast<uint8_t>(std::min<size_t>(sizes.size(), 255)), h.root = root;
  for (size_t i = 0; i < std::min<size_t>(sizes.size(), 4); ++i) h.sizes[i] = sizes[i];
  return h;
}

RecordedCall recorded_call(const Header& h, int rank, int size, uint64_t received) {
  RecordedCall c;
  c.what = kRecordedNames[h.what], c.number = h.number;
  const auto what = static_cast<Collective>(h.what);
  const TensorsOfCall own = tensors_of(h.type, h.elements, h.dims, h.sizes), all = flat(h.type, h.elements * static_cast<size_t>(size));
  const bool root = h.root == rank;
  switch (what) {
    case Collective::AllGather:
    case Collective::Gather:
      c.in = own;
      if (what == Collective::AllGather || root) c.out = all;
      break;
    case Collective::ReduceScatter:
    case Collective::Scatter:
      c.out = own;
      if (what == Collective::ReduceScatter || root) c.in = all;
      break;
    case Collective::AllToAll:
      c.in = own, c.out = flat(h.type, received);
      break;
    case Collective::Barrier:
      break;
    case Collective::Send:
    case Collective::Receive:
    case Collective::Messages:
      c.is_message = true;
      c.from = what == Collective::Receive ? h.root : rank, c.to = what == Collective::Receive ? rank : h.root;
      c.in = c.out = own;
      break;
    default:
      c.in = c.out = own;
  }
  return c;
}

std::string described(const Header& h) {
  std::string text = h.what < std::size(kNames) ? kNames[h.what] : "something unknown";
  const auto what = static_cast<Collective>(h.what);
  if (what == Collective::AllReduce || what == Collective::Reduce || what == Collective::ReduceScatter ||
      what == Collective::AllReduceShards)
    text += std::string("(") + name_of(static_cast<ReduceOp>(h.op & 7)) + ")";
  if (what != Collective::Barrier) {
    text += " of " + std::to_string(h.elements) + " elements of " + std::string(h.type < kElementTypes ? kDTypeTraits[h.type].name : "?") +
            " [";
    for (int i = 0; i < h.dims; ++i) text += (i ? ", " : "") + (i < 4 ? std::to_string(h.sizes[i]) : "...");
    text += "]";
  }
  if (what >= Collective::Send) return text + (h.root >= 0 ? " with rank " + std::to_string(h.root) : "");
  if (what == Collective::AllReduceShards)
    text += " over " + std::to_string(h.root) + " shards";
  else if (h.root >= 0)
    text += " with root " + std::to_string(h.root);
  return text + " (the group's collective number " + std::to_string(h.number) + ")";
}

std::string timed_out(const Header& h, int rank, int64_t milliseconds, const std::vector<int>& absent) {
  std::string text = described(h) + " on rank " + std::to_string(rank) + " timed out after " + std::to_string(milliseconds) + " ms: ";
  if (absent.empty()) return text + "all ranks have come, and one has stopped in it";
  for (size_t i = 0; i < absent.size(); ++i) text += (i ? ", " : "nothing has come from rank ") + std::to_string(absent[i]);
  return text;
}

ProcessGroup::Collectives::Collectives(std::shared_ptr<Store> store, int rank, int size, Milliseconds timeout, const std::string& kind,
                                       OnDevices on_devices)
    : store_(std::move(store)),
      rank_(rank),
      size_(size),
      generation_(runtime::fork_generation()),
      timeout_(timeout.count()),
      traffic_(rank, size),
      suspected_(static_cast<size_t>(size)) {
  for (int r = 0; r < size; ++r) ranks_.push_back({r, 1});
  engine_ = engine_of(kind, *store_, rank, size, timeout);
  recorded_as_ = FlightRecorder::of_process().add_group(rank, size, engine_->name() == "MPI" ? "mpi" : "gloo");
  const auto use_devices = [&] {
    devices_recorded_as_ = FlightRecorder::of_process().add_group(rank, size, "nccl");
    devices_ = std::make_unique<DeviceGroup>(DeviceGroup::Place{*store_, rank_, size_, messages(), [this] { return this->timeout(); },
                                                                [this](const Header& h) { run(false, [this, h] { compare(h); }); },
                                                                *devices_recorded_as_});
  };
  if (on_devices == OnDevices::Library) device_obstacle_ = DeviceGroup::obstacle();
  if (!engine_->channels()) {
    if (on_devices == OnDevices::Library && !engine_->pretends() && device_obstacle_.empty()) use_devices();
    return;
  }
  set_timeout(timeout);
  messages()->on_failure([as = recorded_as_](const std::string& reason) { FlightRecorder::of_process().write(as, reason); });
  // Wait until all ranks have come this far: afterwards the memory's creator may close its file, and the store's server may end.
  RollCall roll(*store_, rank, size, after(timeout));
  roll.set_look([this] {
    for (int peer = 0; peer < size_ && messages()->any_gone(); ++peer)
      if (messages()->gone(peer)) throw DistBackendError("{}", messages()->farewell(peer));
  });
  // All use the devices' library, or none does.
  const std::vector<std::string> said = roll.all("ready", on_devices == OnDevices::Library ? device_obstacle_ : kNotWanted);
  for (int r = 0; r < size; ++r)
    if (const std::string& why = said[static_cast<size_t>(r)]; !why.empty() && device_obstacle_.empty())
      device_obstacle_ = "rank " + std::to_string(r) + ": " + why;
  if (on_devices == OnDevices::Library && device_obstacle_.empty()) use_devices();
}

ProcessGroup::Collectives::~Collectives() {
  devices_.reset();
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

// Tensors on the host and on devices are numbered each by themselves, so they are two groups there, as PyTorch has a group for each library.
void ProcessGroup::Collectives::name_recorded(const std::string& name, const std::string& description, const std::vector<int>& ranks) {
  FlightRecorder& recorder = FlightRecorder::of_process();
  recorder.name_group(recorded_as_, devices_recorded_as_ ? name + " (host)" : name, description, ranks);
  if (devices_recorded_as_) recorder.name_group(*devices_recorded_as_, name, description, ranks);
}

void ProcessGroup::Collectives::set_timeout(Milliseconds timeout) {
  timeout_ = timeout.count();
  if (messages()) messages()->set_timeout(timeout);
}

// --- order of collectives, and the thread that runs them

void ProcessGroup::Collectives::perform(const std::function<void()>& job, const Origin& origin) {
  deadline_ = after(Milliseconds(timeout_));
  origin_ = origin;
  try {
    if (messages())
      if (const auto reason = messages()->reason()) throw DistBackendError("the group can't be used any more: {}", *reason);
    job();
    FlightRecorder::of_process().complete(std::exchange(call_, 0));
  } catch (const DistError& e) {
    // The ranks' byte streams are no longer in step, so the group is unusable.
    call_ = 0;
    if (messages()) messages()->fail(e.what());
    if (!dynamic_cast<const DistBackendError*>(&e)) throw;
    const std::string file = FlightRecorder::of_process().write(recorded_as_, e.what());
    if (file.empty()) throw;
    throw DistBackendError("{} (what this rank has called is in {})", e.what(), file);
  } catch (const runtime::Interrupted&) {
    call_ = 0;
    if (messages()) messages()->fail("rank " + std::to_string(rank_) + " was interrupted in a collective");
    throw;
  }
}

void refuse_in_child() {
  throw RuntimeError(
      "this process was forked from a rank of a group and is none itself: it can't take part in what the group does. Call collectives in "
      "the process that called init_process_group, or make a group in this one");
}

void ProcessGroup::Collectives::require_own_process() const {
  if (generation_ != runtime::fork_generation()) refuse_in_child();
}

bool ProcessGroup::Collectives::idle() {
  const std::lock_guard lock(mutex_);
  return !busy_ && queue_.empty();
}

WorkRef ProcessGroup::Collectives::run(bool async, std::function<void()> job) {
  require_own_process();
  const Origin origin{current_line(), FlightRecorder::now()};
  std::unique_lock lock(mutex_);
  if (!async && !busy_ && queue_.empty()) {
    busy_ = true;
    lock.unlock();
    std::exception_ptr error;
    try {
      perform(job, origin);
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
  queue_.push_back({std::move(job), work, origin});
  if (!thread_.joinable()) thread_ = std::thread([this] { this->work(); });
  changed_.notify_all();
  lock.unlock();
  if (!async) work->wait();
  return work;
}

void ProcessGroup::Collectives::work() {
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
      perform(job.run, job.origin);
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

Header ProcessGroup::Collectives::header(Collective what, const Block& b, int root, ReduceOp op) {
  mine_ = header_of(what, ++number_, b.elements, b.type, b.sizes, root, op);
  traffic_.begin(mine_);
  if (what != Collective::AllToAll) record(mine_);
  return mine_;
}

void ProcessGroup::Collectives::record(const Header& h, size_t received) {
  FlightRecorder& recorder = FlightRecorder::of_process();
  recorder.complete(call_);
  RecordedCall c = recorded_call(h, rank_, size_, received);
  c.line = origin_.line, c.created = origin_.created, c.timeout = timeout_;
  call_ = recorder.begin(recorded_as_, c);
}

void ProcessGroup::Collectives::record(bool sends, int peer, const Block& b, const WorkRef& work) {
  FlightRecorder& recorder = FlightRecorder::of_process();
  const Header h = header_of(sends ? Collective::Send : Collective::Receive, ++messages_recorded_, b.elements, b.type, b.sizes, peer);
  RecordedCall c = recorded_call(h, rank_, size_);
  c.line = current_line(), c.created = FlightRecorder::now(), c.timeout = timeout_;
  const uint64_t id = recorder.begin(recorded_as_, c);
  if (!id) return;
  work->then([id, as = recorded_as_, w = std::weak_ptr<Work>(work)] {
    const WorkRef done = w.lock();
    if (!done || done->is_success()) return FlightRecorder::of_process().complete(id);
    try {
      std::rethrow_exception(done->error());
    } catch (const std::exception& e) {
      FlightRecorder::of_process().write(as, e.what());
    } catch (...) {
    }
  });
}

void ProcessGroup::Collectives::exchange() {
  if (!engine_->channels()) return;
  std::ranges::fill(suspected_, uint8_t{0});
  const runtime::InterruptWatch watch;
  watch_ = &watch;
  traffic_.run(
      *engine_->channels(), [this](std::span<const uint8_t> wanted) { look(wanted); },
      [this](int peer, const Header& theirs, const Header& expected) { complain(peer, theirs, expected); });
}

void ProcessGroup::Collectives::look(std::span<const uint8_t> wanted) {
  if (watch_ && watch_->interrupted()) throw runtime::Interrupted("a collective was interrupted");
  if (messages()->any_gone()) {
    if (const auto reason = messages()->reason()) throw DistBackendError("{}", *reason);
  }
  for (int peer = 0; peer < size_; ++peer) {
    const auto i = static_cast<size_t>(peer);
    if (!wanted[i]) continue;
    // Data that a peer wrote before it left may still arrive, so check once more.
    const bool gone = messages()->gone(peer);
    if (!gone && !engine_->channels()->closed(peer)) continue;
    if (++suspected_[i] > (gone ? 1 : 50))
      throw DistBackendError("{} while rank {} was in {}", messages()->farewell(peer), rank_, described(mine_));
  }
  if (Clock::now() < deadline_) return;
  throw DistBackendError("{}", timed_out(mine_, rank_, timeout_, traffic_.absent()));
}

void ProcessGroup::Collectives::complain(int peer, const Header& theirs, const Header& expected) const {
  throw DistBackendError(
      "ranks do not call the same: rank {} is in {}, and rank {} in {}{}. All ranks must call the same collectives in the same order, with "
      "tensors of one type and size",
      peer, described(theirs), rank_, described(mine_),
      expected.elements != mine_.elements ? ", which expects " + std::to_string(expected.elements) + " elements of that rank" : "");
}

// --- the collectives

void ProcessGroup::Collectives::all_reduce(const Block& b, ReduceOp op) {
  const Reduction reduction = reduction_of(op, b.type);
  header(Collective::AllReduce, b, -1, op);
  if (!engine_->channels()) return;
  is_small(b) ? all_reduce_small(b, reduction, size_) : all_reduce_large(b, reduction, size_);
}

// Small: a message to and from each rank. Large, where this would send the elements too often: each rank reduces one part for all.
bool ProcessGroup::Collectives::is_small(const Block& b) const noexcept {
  constexpr size_t kSmall = 4096;
  return b.bytes() <= kSmall || b.elements < static_cast<size_t>(size_);
}

size_t ProcessGroup::Collectives::part_begin(const Block& b, int rank) const noexcept {
  const auto n = static_cast<size_t>(size_), r = static_cast<size_t>(rank);
  return r * (b.elements / n) + std::min(r, b.elements % n);
}

char* ProcessGroup::Collectives::scratch(size_t bytes) {
  if (scratch_.size() < bytes) scratch_.resize(bytes);
  return scratch_.data();
}

void ProcessGroup::Collectives::all_reduce(const std::vector<Block>& list, ReduceOp op) {
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

// Every rank folds everything.
void ProcessGroup::Collectives::all_reduce_small(const Block& b, const Reduction& reduction, int shards) {
  const size_t bytes = b.bytes(), stride = (bytes + 15) / 16 * 16;
  char* const room = scratch(stride * static_cast<size_t>(size_));
  parts_.resize(static_cast<size_t>(size_));
  for (int peer = 0; peer < size_; ++peer) {
    char* const part = room + stride * static_cast<size_t>(peer);
    parts_[static_cast<size_t>(peer)] = peer == rank_ ? b.data : part;
    if (peer == rank_) continue;
    traffic_.meet(peer);
    traffic_.send(peer, b.data, bytes);
    traffic_.receive(peer, part, bytes);
  }
  exchange();
  if (!bytes) return;
  tree_(b.data, ranks_, parts_, b.elements, size_of(b.type), reduction);
  if (reduction.divide) reduction.divide(b.data, b.elements, shards);
}

// Each rank reduces one part, and sends it to all others as it progresses. A part of this rank's elements is overwritten only after the
// reduced part has come from its owner, which needed those elements.
void ProcessGroup::Collectives::all_reduce_large(const Block& b, const Reduction& reduction, int shards) {
  const size_t element = size_of(b.type);
  const auto begin = [&](int r) { return b.data + part_begin(b, r) * element; };
  const auto bytes = [&](int r) { return (part_begin(b, r + 1) - part_begin(b, r)) * element; };
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    traffic_.meet(peer);
    traffic_.send(peer, begin(peer), bytes(peer));
  }
  traffic_.fold(begin(rank_), bytes(rank_), element, reduction, shards);
  traffic_.send_folded();
  for (int peer = 0; peer < size_; ++peer)
    if (peer != rank_) traffic_.receive(peer, begin(peer), bytes(peer));
  exchange();
}

void ProcessGroup::Collectives::all_reduce_shards(const std::vector<Block>& nodes, int shards, ReduceOp op) {
  const Block& b = nodes[0];
  const Reduction reduction = reduction_of(op, b.type);
  header(Collective::AllReduceShards, b, shards, op);
  if (!engine_->channels()) {
    if (reduction.divide && size_ == 1) reduction.divide(b.data, b.elements, shards);
    return;
  }
  // If each rank has one node, and all have as many shards, a power of two, then above these nodes the tree is that over the ranks.
  if (shards % size_ == 0 && std::has_single_bit(static_cast<unsigned>(shards / size_)))
    is_small(b) ? all_reduce_small(b, reduction, shards) : all_reduce_large(b, reduction, shards);
  else
    all_reduce_nodes(nodes, shards, reduction);
}

// Each rank gets its part of all nodes and reduces it; then all get all parts.
void ProcessGroup::Collectives::all_reduce_nodes(const std::vector<Block>& nodes, int shards, const Reduction& reduction) {
  const Block& b = nodes[0];
  const Header mine = mine_;
  const size_t element = size_of(b.type), first = part_begin(b, rank_), count = part_begin(b, rank_ + 1) - first, bytes = count * element;
  std::vector<Shards> tree;
  std::vector<size_t> ends;  // of each rank's nodes in it
  for (int peer = 0; peer < size_; ++peer) {
    const std::vector<Shards> theirs = nodes_within(shards_of(peer, size_, shards), shards);
    tree.insert(tree.end(), theirs.begin(), theirs.end());
    ends.push_back(tree.size());
  }
  char* const room = scratch(bytes * tree.size());
  parts_.clear();
  for (int peer = 0; peer < size_; ++peer) {
    const size_t node = parts_.size(), end = ends[static_cast<size_t>(peer)];
    for (size_t i = node; i < end; ++i) parts_.push_back(peer == rank_ ? nodes[i - node].data + first * element : room + bytes * i);
    if (peer == rank_) continue;
    traffic_.meet(peer);
    const size_t to = part_begin(b, peer), elements = part_begin(b, peer + 1) - to;
    for (const Block& node_of_mine : nodes) traffic_.send(peer, node_of_mine.data + to * element, elements * element);
    for (size_t i = node; i < end; ++i) traffic_.receive(peer, room + bytes * i, bytes);
  }
  exchange();
  char* const out = b.data + first * element;
  if (count) tree_(out, tree, parts_, count, element, reduction);
  if (count && reduction.divide) reduction.divide(out, count, shards);
  traffic_.begin(mine);
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    const size_t from = part_begin(b, peer), elements = part_begin(b, peer + 1) - from;
    traffic_.meet(peer);
    traffic_.send(peer, out, bytes);
    traffic_.receive(peer, b.data + from * element, elements * element);
  }
  exchange();
}

void ProcessGroup::Collectives::reduce(const Block& b, int root, ReduceOp op) {
  const Reduction reduction = reduction_of(op, b.type);
  header(Collective::Reduce, b, root, op);
  if (rank_ == root) {
    for (int peer = 0; peer < size_; ++peer)
      if (peer != rank_) traffic_.meet(peer);
    traffic_.fold(b.data, b.bytes(), size_of(b.type), reduction, size_);
  } else {
    traffic_.meet(root);
    traffic_.send(root, b.data, b.bytes());
  }
  exchange();
}

void ProcessGroup::Collectives::broadcast(const Block& b, int root) {
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

void ProcessGroup::Collectives::copy_gathered(const std::vector<Block>& out, const Block& in) {
  for (int r = 0; r < size_; ++r)
    if (r == rank_ || engine_->pretends()) copy(out[static_cast<size_t>(r)], in);
}

void ProcessGroup::Collectives::all_gather(const std::vector<Block>& out, const Block& in) {
  header(Collective::AllGather, in);
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    traffic_.meet(peer);
    traffic_.send(peer, in.data, in.bytes());
    traffic_.receive(peer, out[static_cast<size_t>(peer)].data, in.bytes());
  }
  exchange();
  copy_gathered(out, in);
}

void ProcessGroup::Collectives::gather(const std::vector<Block>& out, const Block& in, int root) {
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
  if (rank_ == root) copy_gathered(out, in);
}

void ProcessGroup::Collectives::scatter(const Block& out, const std::vector<Block>& in, int root) {
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

void ProcessGroup::Collectives::reduce_scatter(const Block& out, const std::vector<Block>& in, ReduceOp op) {
  const Reduction reduction = reduction_of(op, out.type);
  header(Collective::ReduceScatter, out, -1, op);
  copy(out, in[static_cast<size_t>(rank_)]);
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    traffic_.meet(peer);
    traffic_.send(peer, in[static_cast<size_t>(peer)].data, out.bytes());
  }
  if (!engine_->channels()) return;
  traffic_.fold(out.data, out.bytes(), size_of(out.type), reduction, size_);
  exchange();
}

void ProcessGroup::Collectives::all_to_all(const std::vector<Block>& out, const std::vector<Block>& in) {
  Header sent = header(Collective::AllToAll, in[static_cast<size_t>(rank_)]), expected = sent, whole = sent;
  size_t received = 0;
  whole.elements = 0;
  for (const Block& b : in) whole.elements += b.elements;
  for (const Block& b : out) received += b.elements;
  whole.dims = 1, whole.sizes[0] = static_cast<int64_t>(whole.elements);
  record(whole, received);
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    const Block &to = in[static_cast<size_t>(peer)], &from = out[static_cast<size_t>(peer)];
    sent.elements = to.elements, expected.elements = from.elements;
    traffic_.meet(peer, &sent, &expected);
    traffic_.send(peer, to.data, to.bytes());
    traffic_.receive(peer, from.data, from.bytes());
  }
  exchange();
  for (size_t r = 0; r < out.size(); ++r)
    if (static_cast<int>(r) == rank_ || (engine_->pretends() && out[r].elements == in[r].elements)) copy(out[r], in[r]);
}

void ProcessGroup::Collectives::barrier() {
  header(Collective::Barrier, {});
  for (int peer = 0; peer < size_; ++peer)
    if (peer != rank_) traffic_.meet(peer);
  exchange();
}

void ProcessGroup::Collectives::compare(const Header& h) {
  mine_ = h;
  traffic_.begin(h);
  for (int peer = 0; peer < size_; ++peer)
    if (peer != rank_) traffic_.meet(peer);
  exchange();
}

}  // namespace naru::distributed
