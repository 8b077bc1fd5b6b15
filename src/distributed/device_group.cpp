#include "distributed/device_group.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "autograd/history/history.h"
#include "core/at_end.h"
#include "core/language.h"
#include "distributed/collectives.h"
#include "distributed/device_sums.h"
#include "distributed/mesh.h"
#include "naru/autograd.h"
#include "naru/device/precision.h"
#include "naru/ops.h"
#include "ops/sparse/sparse.h"
#include "ops/tensor/common.h"
#include "runtime/device/communicators.h"
#include "runtime/device/registry.h"
#include "runtime/os/fork.h"
#include "runtime/queue/streams.h"
#include "runtime/queue/sync.h"

namespace naru::distributed {
namespace {

using What = Communicator::What;
using Op = Communicator::Op;
using Tensors = std::vector<Tensor>;

bool is_set(const char* variable, std::string_view value) {
  const char* const text = std::getenv(variable);
  return text && value == text;
}

runtime::Communicators* communicators_of(DeviceType kind) {
  return kind == DeviceType::Cpu || kind == DeviceType::Meta ? nullptr : runtime::backend_of(kind).communicators(kind);
}

// Makes a stream the thread's current one for a scope.
class OnStream {
 public:
  OnStream(Device device, int number) : device_(device), before_(runtime::current_stream(device)) {
    runtime::set_current_stream(device_, number);
  }
  OnStream(const OnStream&) = delete;
  ~OnStream() { runtime::set_current_stream(device_, before_); }

 private:
  const Device device_;
  const int before_;
};

// A tensor's elements at consecutive addresses: the tensor itself, or a copy.
class Dense {
 public:
  enum Use { kRead, kWrite, kBoth };
  Dense(const Tensor& t, Use use) : tensor_(t.detach()), dense_(tensor_), use_(use) {
    if (!t.is_contiguous()) dense_ = use == kWrite ? empty(t.sizes(), Options(t.dtype(), t.device())) : tensor_.contiguous();
    if (use != kRead && t.is_contiguous()) {
      autograd::before_write(t);
      ops::bump_version(t);
    }
  }
  const Tensor& operator*() const noexcept { return dense_; }
  void give_back() const {
    if (use_ != kRead && !tensor_.is_contiguous()) tensor_.copy_(dense_);
  }

 private:
  Tensor tensor_, dense_;
  Use use_;
};
std::vector<Dense> dense(const Tensors& list, Dense::Use use) {
  std::vector<Dense> all;
  for (const Tensor& t : list) all.emplace_back(t, use);
  return all;
}
void give_back(const std::vector<Dense>& list) {
  for (const Dense& d : list) d.give_back();
}

// True if the tensors are consecutive pieces of one storage.
bool in_one_piece(const std::vector<Dense>& list) {
  const TensorImpl& first = *(*list[0]).impl();
  for (size_t i = 1; i < list.size(); ++i) {
    const TensorImpl& each = *(*list[i]).impl();
    if (each.storage.get() != first.storage.get() || each.offset != first.offset + static_cast<int64_t>(i) * first.numel) return false;
  }
  return true;
}

// The operation that this thread is enqueueing on a stream.
struct EnqueuedCall {
  const Header& header;
  const Deadline deadline, slow;  // slow: when this rank notes that it is in it
  const runtime::InterruptWatch& interrupts;
  bool noted = false;
};
thread_local EnqueuedCall* call_being_enqueued = nullptr;

}  // namespace

// Wraps the library's communicator and keeps its errors, so that the caller gets them at once; a stream reports them only at the next wait.
class DeviceGroup::ErrorKeeper final : public Communicator {
 public:
  ErrorKeeper(Device of, std::shared_ptr<Communicator> inner) : device(of), inner_(std::move(inner)) {}
  const Device device;
  int size() const noexcept override { return inner_->size(); }
  void enqueue(std::span<const Call> calls, uint64_t stream) override {
    try {
      inner_->enqueue(calls, stream);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
      throw;
    }
  }
  std::string trouble() override { return inner_->trouble(); }
  void abort() noexcept override { inner_->abort(); }
  std::exception_ptr take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(error_, nullptr);
  }

 private:
  const std::shared_ptr<Communicator> inner_;
  std::mutex mutex_;
  std::exception_ptr error_;
};

// Done when its stream has come so far, or with an error when the watch says so.
class DeviceGroup::DeviceWork final : public Work {
 public:
  DeviceWork(Device device, StreamPoint point, int from) : device_(device), point_(point), from_(from) {}
  bool reached() const noexcept { return point_.stream->completed() >= point_.seq; }
  bool is_completed() const noexcept override { return Work::is_completed() || (!in_child() && reached()); }
  int source() const noexcept override { return from_; }
  bool wait(std::optional<Milliseconds> timeout) override {
    static const bool blocks = is_set("TORCH_NCCL_BLOCKING_WAIT", "1");
    if (!Work::is_completed()) {
      if (in_child()) refuse_in_child();
      if (!timeout && !blocks) {
        runtime::queue_of(device_).wait(point_);
      } else if (!arrives(timeout ? after(*timeout) : Deadline::max())) {
        return false;
      }
    }
    raise();
    return true;
  }
  // The current stream waits before f gives it work.
  void then(std::function<void()> f) override {
    runtime::queue_of(device_).wait(point_);
    f();
  }

 private:
  bool arrives(Deadline deadline) const {
    const runtime::InterruptWatch watch;
    for (auto nap = std::chrono::microseconds(20); !is_completed(); nap = std::min(nap * 2, std::chrono::microseconds(1000))) {
      if (Clock::now() >= deadline) return false;
      if (watch.interrupted()) throw runtime::Interrupted("waiting for an operation between processes was interrupted");
      std::this_thread::sleep_for(nap);
    }
    return true;
  }
  const Device device_;
  const StreamPoint point_;
  const int from_;
};

// Calls of the library that go on the current stream together.
class DeviceGroup::Calls {
 public:
  explicit Calls(Joined& on) : on_(on) {}
  void add(What what, const Tensor* from, const Tensor* to, size_t count, DType type, Op op, int peer) {
    if (!count) return;
    Communicator::Call call{what, nullptr, nullptr, count, type, op, peer};
    if (from) call.from = ops::view_of(*from, from->sizes()).data, accesses_.reads.push_back(from->impl()->storage.get());
    if (to) call.to = ops::view_of(*to, to->sizes()).data, accesses_.writes.push_back(to->impl()->storage.get());
    calls_.push_back(call);
  }
  // Moves the elements as bytes, of any dtype.
  void move(What what, const Tensor* from, const Tensor* to, int peer = 0) {
    const Tensor& t = what == What::AllGather || !to ? *from : *to;
    add(what, from, to, static_cast<size_t>(t.numel()) * size_of(t.dtype()), DType::U8, Op::Sum, peer);
  }
  void submit() {
    if (calls_.empty()) return;
    runtime::Queue& queue = runtime::queue_of(on_.device);
    const bool records = queue.recording();
    // A communicator's calls must run in one order, also when they are on different streams.
    if (!records) queue.wait(on_.last);
    on_.communicator->take();
    const uint64_t seq = queue.submit(ir::Exchange{on_.communicator, std::move(calls_)}, accesses_);
    if (const std::exception_ptr error = on_.communicator->take()) std::rethrow_exception(error);
    if (!records) on_.last = {&queue.stream(), seq};
  }

 private:
  Joined& on_;
  std::vector<Communicator::Call> calls_;
  runtime::Accesses accesses_;
};

// --- the group

DeviceGroup::DeviceGroup(Place place)
    : place_(std::move(place)),
      generation_(runtime::fork_generation()),
      compares_(is_set("TORCH_DISTRIBUTED_DEBUG", "DETAIL")),
      ordered_(is_set("NARU_REDUCE", "ordered")) {}

DeviceGroup::~DeviceGroup() {
  if (generation_ != runtime::fork_generation()) {  // a forked child has neither the thread nor the devices
    if (thread_.joinable()) static_cast<void>(new std::thread(std::move(thread_)));
    for (const Joined& each : joined_) static_cast<void>(new std::shared_ptr(each.communicator));
    return;
  }
  {
    const std::lock_guard lock(state_);
    stopped_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  *self_ = nullptr;
}

std::string DeviceGroup::obstacle() {
  const runtime::Availability state = runtime::availability(DeviceType::Cuda);
  if (!state.available) return "there is no cuda device";
  runtime::Communicators* const library = communicators_of(DeviceType::Cuda);
  return library ? library->trouble() : "virtual devices have no NCCL";
}
std::string device_library_obstacle() { return DeviceGroup::obstacle(); }

std::string DeviceGroup::name() const { return communicators_of(DeviceType::Cuda)->name(); }

bool DeviceGroup::takes(const char* what, std::initializer_list<std::span<const Tensor>> lists) {
  std::optional<Device> first;
  bool library = false;
  for (const std::span<const Tensor> list : lists)
    for (const Tensor& t : list) {
      ops::require_defined(t, what, "tensor");
      const Device device = t.device();
      const bool here = communicators_of(device.type) != nullptr;
      library |= here;
      if (first && *first != device && library)
        throw ValueError("{}: all tensors must be on one device, got {} and {}", what, first->str(), device.str());
      first = first.value_or(device);
      if (here && ops::has_sparse_form(t))
        throw RuntimeError("{}: sparse tensors can't be exchanged between processes; use to_dense()", what);
    }
  return library;
}

Header DeviceGroup::header(Collective what, const Tensor& t, int root, ReduceOp op) {
  const bool counted = what < Collective::Send;
  return header_of(what, counted ? ++number_ : 0, static_cast<size_t>(t.numel()), t.dtype(), t.sizes(), root, op);
}

template <class Body>
WorkRef DeviceGroup::run(const Header& h, Device device, bool async, int source, const Body& body, uint64_t received) {
  if (generation_ != runtime::fork_generation()) refuse_in_child();
  if (compares_ && h.number && place_.messages) {
    Header compared = h;
    if (h.what == static_cast<uint8_t>(Collective::AllToAll)) compared.elements = compared.dims = 0;  // they may differ
    place_.compare(compared);
  }
  const std::lock_guard lock(order_);
  {
    const std::lock_guard state(state_);
    if (!failed_ && place_.messages) failed_ = place_.messages->reason();
    if (failed_) throw DistBackendError("the group can't be used any more: {}", *failed_);
  }
  if (h.number && place_.messages) place_.messages->count_collectives(h.number);
  const runtime::InterruptWatch interrupts;
  const Deadline deadline = after(place_.timeout());
  EnqueuedCall now{h, deadline, after(patience()), interrupts};
  call_being_enqueued = &now;
  const AtEnd done([] { call_being_enqueued = nullptr; });
  const NoGrad off;
  const bool records = runtime::queue_of(device).recording();
  const uint64_t recorded = records ? 0 : begin_record(h, received);
  try {
    Joined& on = joined(device);
    const OnStream scope(device, async && !records ? on.side : runtime::current_stream(device));
    body(on);
    runtime::Queue& queue = runtime::queue_of(device);
    const auto work = std::make_shared<DeviceWork>(device, StreamPoint{&queue.stream(), queue.point()}, source);
    const std::lock_guard state(state_);
    if (records) {
      recorded_ = true;
      work->finish();
    } else {
      under_way_.push_back({h, {&queue.stream(), queue.stream().submitted()}, deadline, work, recorded});
    }
    if (!thread_.joinable()) thread_ = std::thread([this] { watch(); });
    changed_.notify_all();
    return work;
  } catch (const runtime::Interrupted&) {
    fail("rank " + std::to_string(place_.rank) + " was interrupted in a collective");
    throw;
  } catch (const DistError& e) {
    fail(e.what());
    throw;
  } catch (const OutOfMemoryError& e) {
    fail(e.what());
    throw;
  } catch (const RuntimeError& e) {
    const std::string text = std::string(e.what()) + " while rank " + std::to_string(place_.rank) + " was in " + described(h);
    fail(text);
    throw DistBackendError("{}", text);
  }
}

// Operations in a graph are not recorded: they run when it is replayed.
uint64_t DeviceGroup::begin_record(const Header& h, uint64_t received) {
  RecordedCall call = recorded_call(h, place_.rank, place_.size, received);
  if (call.is_message) call.number = ++messages_recorded_;
  call.line = current_line(), call.created = FlightRecorder::now(), call.timeout = place_.timeout().count();
  return FlightRecorder::of_process().begin(place_.recorded_as, call);
}

// Called while something waits for other ranks before an operation is on its stream: one of this thread's, or in a graph.
void DeviceGroup::look() {
  EnqueuedCall* const now = call_being_enqueued;
  if (now && now->interrupts.interrupted()) throw runtime::Interrupted("a collective was interrupted");
  const uint64_t number = now ? now->header.number : UINT64_MAX;
  const std::string during = now ? " while rank " + std::to_string(place_.rank) + " was in " + described(now->header) : "";
  if (place_.messages && place_.messages->any_gone()) {
    if (const auto reason = place_.messages->reason()) throw DistBackendError("{}", *reason);
    for (int peer = 0; peer < place_.size; ++peer)
      if (peer != place_.rank && place_.messages->gone(peer) && place_.messages->left_after(peer).value_or(0) < number)
        throw DistBackendError("{}{}", place_.messages->farewell(peer), during);
  }
  if (!now) return;
  if (const auto time = Clock::now(); time >= now->deadline)
    throw DistBackendError("{}", absence(now->header));
  else if (time >= now->slow && !std::exchange(now->noted, true))
    note(now->header);
}

// An id from rank 0, which is empty if it can't make one. Ranks that can't be joined are found before, so that all have the same error.
std::string DeviceGroup::id_of(Device device, RollCall& roll, const std::string& keys) {
  runtime::Communicators& library = *communicators_of(device.type);
  const std::string host = this_host(), gpu = runtime::properties(device).uuid, version = library.name();
  const std::vector<std::string> all = roll.all(keys + "device", host + "\n" + gpu + "\n" + version);
  for (size_t a = 0; a < all.size(); ++a)
    for (size_t b = 0; b < a; ++b) {
      const auto version_in = [&](size_t r) { return all[r].substr(all[r].rfind('\n') + 1); };
      if (version_in(a) != version_in(b))
        throw DistBackendError("rank {} has {} and rank {} {}: install the same version for all ranks", b, version_in(b), a, version_in(a));
      if (all[a] == all[b])
        throw DistBackendError(
            "ranks {} and {} use the same GPU, {}, which NCCL refuses: choose another for each rank by torch.cuda.set_device(local_rank), "
            "or "
            "use the backend \"gloo\", which takes tensors through the host's memory",
            b, a, gpu);
    }
  std::exception_ptr error;
  std::string id;
  if (place_.rank == 0) try {
      id = library.make_id();
    } catch (const RuntimeError&) {
      error = std::current_exception();
    }
  id = roll.of_first(keys + "id", id);
  if (error) std::rethrow_exception(error);
  if (id.empty()) throw DistBackendError("rank 0 can't make an id for NCCL");
  return id;
}

DeviceGroup::Joined& DeviceGroup::joined(Device device) {
  for (Joined& each : joined_)
    if (each.device == device) return each;
  RollCall roll(place_.store, place_.rank, place_.size, call_being_enqueued->deadline + std::chrono::seconds(2));  // look() ends it before
  roll.set_look([this] { look(); });
  const std::string id = id_of(device, roll, "devices/" + std::to_string(made_++) + "/");
  auto inner = communicators_of(device.type)->join(device, id, place_.rank, place_.size, [self = self_] {
    if (DeviceGroup* const group = *self) group->look();
  });
  const auto made = std::make_shared<ErrorKeeper>(device, std::move(inner));
  {
    const std::lock_guard state(state_);
    communicators_.push_back(made);
  }
  return joined_.emplace_back(Joined{device, made, runtime::next_stream(device, 0), {}});
}

// --- the watch

void DeviceGroup::fail(const std::string& reason, bool tell) {
  std::vector<std::shared_ptr<ErrorKeeper>> communicators;
  {
    const std::lock_guard lock(state_);
    failed_ = failed_.value_or(reason);
    communicators.swap(communicators_);
    const auto error = std::make_exception_ptr(DistBackendError("{}", *failed_));
    for (const UnderWay& u : under_way_) {
      if (u.work->reached()) {
        FlightRecorder::of_process().complete(u.recorded);
        u.work->finish();
      } else {
        u.work->finish(error);
        // Reading a result that was not computed throws the error, too.
        u.point.stream->errors().keep(error);
      }
    }
    under_way_.clear();
    // A replay may be under way, which is not listed.
    for (const auto& each : communicators)
      if (recorded_) runtime::queue_of(each->device, 0).stream().errors().keep(error);
  }
  FlightRecorder::of_process().write(place_.recorded_as, reason);
  if (tell && place_.messages) place_.messages->fail(reason);
  for (const auto& each : communicators) each->abort();
}

void DeviceGroup::watch() {
  using namespace std::chrono_literals;
  std::unique_lock lock(state_);
  for (;;) {
    if (!under_way_.empty())
      changed_.wait_for(lock, 5ms);
    else if (recorded_ && !failed_)
      changed_.wait_for(lock, 100ms);
    else
      changed_.wait(lock, [&] { return stopped_ || !under_way_.empty() || (recorded_ && !failed_); });
    std::erase_if(under_way_, [&](const UnderWay& u) {
      if (!u.work->reached()) return false;
      FlightRecorder::of_process().complete(u.recorded);
      u.work->finish();
      suspected_.reset(), slow_.reset();
      return true;
    });
    if (stopped_ && under_way_.empty()) return;
    bool tell = true;
    if (failed_) continue;
    if (const auto reason = trouble(lock, tell)) {
      lock.unlock();
      fail(*reason, tell);
      lock.lock();
    }
  }
}

// Why the first operation under way will not end, if it will not. Unlocks while it asks the store.
std::optional<std::string> DeviceGroup::trouble(std::unique_lock<std::mutex>& lock, bool& tell) {
  using namespace std::chrono_literals;
  const auto now = Clock::now();
  const bool idle = under_way_.empty();
  const Header h = idle ? Header{} : under_way_.front().header;
  const std::string during = idle ? "" : " while rank " + std::to_string(place_.rank) + " was in " + described(h);
  if (Messages* const m = place_.messages; m && m->any_gone()) {
    if (const auto reason = m->reason()) {
      tell = false;
      return *reason;
    }
    for (int peer = 0; peer < place_.size; ++peer) {
      if (peer == place_.rank || !m->gone(peer)) continue;
      const auto left = m->left_after(peer);
      if (idle && left) continue;
      if (left && h.number && *left >= h.number) continue;  // it has taken part in it
      // What it did take part in may still arrive.
      suspected_ = suspected_.value_or(now);
      if (now - *suspected_ >= (!left ? 300ms : h.number ? 0ms : 2000ms)) return m->farewell(peer) + during;
    }
  }
  if (idle) return std::nullopt;
  for (const auto& each : communicators_)
    if (const std::string found = each->trouble(); !found.empty()) {
      // A rank's end is the better reason, and may take a moment to be known.
      suspected_ = suspected_.value_or(now);
      if (now - *suspected_ >= 500ms) return found + during;
      return std::nullopt;
    }
  // When an operation takes long each rank notes that it is in it, for those that will be asked who is not.
  const Deadline deadline = under_way_.front().deadline;
  if (!slow_) slow_ = after(patience());
  if (now < *slow_ && now < deadline) return std::nullopt;
  lock.unlock();
  const AtEnd locked([&] { lock.lock(); });
  if (now < deadline) {
    slow_ = Deadline::max();
    note(h);
    return std::nullopt;
  }
  return absence(h);
}

Milliseconds DeviceGroup::patience() const { return std::min(Milliseconds(1000), place_.timeout() / 2); }

namespace {
std::string key_of(const Header& h, int rank) { return "devices/in/" + std::to_string(h.number) + "/" + std::to_string(rank); }
}  // namespace

void DeviceGroup::note(const Header& h) {
  if (h.number) try {
      place_.store.set(key_of(h, place_.rank), "");
    } catch (const std::exception&) {
      // The store has ended with its rank; that is noticed otherwise.
    }
}

// What to say of an operation that has timed out: which ranks have not noted that they are in it.
std::string DeviceGroup::absence(const Header& h) {
  std::vector<int> absent;
  note(h);
  if (h.number) try {
      const Deadline until = after(patience() + Milliseconds(200));
      do {
        absent.clear();
        for (int r = 0; r < place_.size; ++r)
          if (!place_.store.check({key_of(h, r)})) absent.push_back(r);
        std::this_thread::sleep_for(Milliseconds(50));
      } while (!absent.empty() && Clock::now() < until);
    } catch (const std::exception&) {
      absent.clear();
    }
  return timed_out(h, place_.rank, place_.timeout().count(), absent);
}

bool DeviceGroup::idle() {
  const std::lock_guard lock(state_);
  return std::ranges::all_of(under_way_, [](const UnderWay& u) { return u.work->reached(); });
}

void DeviceGroup::synchronize() {
  std::vector<Device> devices;
  {
    const std::lock_guard lock(order_);
    for (const Joined& each : joined_) devices.push_back(each.device);
  }
  for (const Device device : devices) runtime::queue_of(device).synchronize();
}

// --- sums in the tree's order

bool DeviceGroup::in_order() const noexcept { return ordered_ || deterministic_algorithms(); }

Tensor DeviceGroup::folded(Joined& on, const Tensors& mine, const std::vector<Shards>& tree, const std::vector<size_t>& counts,
                           const std::vector<std::pair<int64_t, int64_t>>& parts, ReduceOp op, int shards) {
  const auto [first, count] = parts[static_cast<size_t>(place_.rank)];
  Tensors values;
  for (int r = 0; r < place_.size; ++r)
    for (size_t k = 0; k < counts[static_cast<size_t>(r)]; ++k)
      values.push_back(r == place_.rank ? mine[k].narrow(0, first, count) : empty({count}, Options(mine[0].dtype(), on.device)));
  Tensors sent;
  Calls calls(on);
  for (size_t at = 0, r = 0; r < counts.size(); at += counts[r], ++r) {
    const int peer = static_cast<int>(r);
    if (peer == place_.rank) continue;
    for (size_t k = 0; k < counts[r]; ++k) calls.move(What::Receive, nullptr, &values[at + k], peer);
    for (const Tensor& node : mine) {
      sent.push_back(node.narrow(0, parts[r].first, parts[r].second));
      calls.move(What::Send, &sent.back(), nullptr, peer);
    }
  }
  calls.submit();
  if (!count) return {};
  return tree_of(tree, std::move(values), op, shards);
}

void DeviceGroup::all_reduce_nodes(Joined& on, const Tensors& nodes, int shards, ReduceOp op) {
  Tensors mine;
  for (const Tensor& t : nodes) mine.push_back(flat(t, op));
  std::vector<Shards> tree;
  std::vector<size_t> counts;
  for (int r = 0; r < place_.size; ++r) {
    const std::vector<Shards> theirs = nodes_within(shards_of(r, place_.size, shards), shards);
    tree.insert(tree.end(), theirs.begin(), theirs.end());
    counts.push_back(theirs.size());
  }
  const auto parts = parts_of(mine[0].numel(), place_.size);
  const Tensor result = folded(on, mine, tree, counts, parts, op, shards);
  Tensors pieces;
  for (const auto& [first, count] : parts) pieces.push_back(mine[0].narrow(0, first, count));
  if (result.defined()) pieces[static_cast<size_t>(place_.rank)].copy_(result);
  Calls calls(on);
  for (int r = 0; r < place_.size; ++r) {
    const Tensor& piece = pieces[static_cast<size_t>(r)];
    calls.move(What::Broadcast, r == place_.rank ? &piece : nullptr, &piece, r);
  }
  calls.submit();
}

// --- the collectives

WorkRef DeviceGroup::all_reduce(const Tensors& tensors, ReduceOp op, bool async) {
  return run(header(Collective::AllReduce, tensors[0], -1, op), tensors[0].device(), async, -1, [&](Joined& on) {
    const std::vector<Dense> list = dense(tensors, Dense::kBoth);
    Calls calls(on);
    Tensors others;
    for (const Dense& d : list) {
      const auto n = native(op, (*d).dtype(), in_order());
      if (!n)
        others.push_back(*d);
      else
        calls.add(What::AllReduce, &*d, &*d, static_cast<size_t>((*d).numel()) * n->numbers, n->type, n->op, 0);
    }
    calls.submit();
    for (const Tensor& t : others) all_reduce_nodes(on, {t}, place_.size, op);
    give_back(list);
  });
}

WorkRef DeviceGroup::all_reduce_shards(const Tensors& nodes, int shards, ReduceOp op, bool async) {
  if (op == ReduceOp::Avg && (nodes[0].dtype() == kUInt32 || nodes[0].dtype() == kUInt64))
    throw TypeError("all_reduce_shards: averages of {} on devices are not there; use tensors on the cpu, or SUM",
                    name_of(nodes[0].dtype()));
  return run(header(Collective::AllReduceShards, nodes[0], shards, op), nodes[0].device(), async, -1, [&](Joined& on) {
    Tensors list;
    const Dense result(nodes[0], Dense::kBoth);
    for (size_t i = 0; i < nodes.size(); ++i) list.push_back(i ? *Dense(nodes[i], Dense::kRead) : *result);
    all_reduce_nodes(on, list, shards, op);
    result.give_back();
  });
}

WorkRef DeviceGroup::reduce(const Tensor& tensor, int root, ReduceOp op, bool async) {
  return run(header(Collective::Reduce, tensor, root, op), tensor.device(), async, -1, [&](Joined& on) {
    const bool own = root == place_.rank;
    const Dense d(tensor, own ? Dense::kBoth : Dense::kRead);
    if (const auto n = native(op, tensor.dtype(), in_order())) {
      Calls calls(on);
      calls.add(What::Reduce, &*d, own ? &*d : nullptr, static_cast<size_t>(tensor.numel()) * n->numbers, n->type, n->op, root);
      calls.submit();
    } else {
      const Tensor all = flat(*d, op);
      std::vector<std::pair<int64_t, int64_t>> parts(static_cast<size_t>(place_.size));
      parts[static_cast<size_t>(root)] = {0, all.numel()};
      std::vector<Shards> tree;
      for (int r = 0; r < place_.size; ++r) tree.push_back({r, 1});
      const Tensor result = folded(on, {all}, tree, std::vector<size_t>(tree.size(), 1), parts, op, place_.size);
      if (result.defined()) all.copy_(result);
    }
    d.give_back();
  });
}

WorkRef DeviceGroup::broadcast(const Tensors& tensors, int root, bool async) {
  return run(header(Collective::Broadcast, tensors[0], root), tensors[0].device(), async, -1, [&](Joined& on) {
    const bool own = root == place_.rank;
    const std::vector<Dense> list = dense(tensors, own ? Dense::kRead : Dense::kWrite);
    Calls calls(on);
    for (const Dense& d : list) calls.move(What::Broadcast, own ? &*d : nullptr, &*d, root);
    calls.submit();
    give_back(list);
  });
}

WorkRef DeviceGroup::all_gather(const Tensors& outputs, const Tensor& input, bool async) {
  return run(header(Collective::AllGather, input), input.device(), async, -1, [&](Joined& on) {
    const std::vector<Dense> out = dense(outputs, Dense::kWrite);
    const Dense in(input, Dense::kRead);
    Calls calls(on);
    if (in_one_piece(out))
      calls.move(What::AllGather, &*in, &*out[0]);
    else
      for (int r = 0; r < place_.size; ++r)
        calls.move(What::Broadcast, r == place_.rank ? &*in : nullptr, &*out[static_cast<size_t>(r)], r);
    calls.submit();
    give_back(out);
  });
}

WorkRef DeviceGroup::gather(const Tensors& outputs, const Tensor& input, int root, bool async) {
  return run(header(Collective::Gather, input, root), input.device(), async, -1, [&](Joined& on) {
    const std::vector<Dense> out = dense(outputs, Dense::kWrite);
    const Dense in(input, Dense::kRead);
    Calls calls(on);
    calls.move(What::Send, &*in, nullptr, root);
    for (size_t r = 0; r < out.size(); ++r) calls.move(What::Receive, nullptr, &*out[r], static_cast<int>(r));
    calls.submit();
    give_back(out);
  });
}

WorkRef DeviceGroup::scatter(const Tensor& output, const Tensors& inputs, int root, bool async) {
  return run(header(Collective::Scatter, output, root), output.device(), async, -1, [&](Joined& on) {
    const Dense out(output, Dense::kWrite);
    const std::vector<Dense> in = dense(inputs, Dense::kRead);
    Calls calls(on);
    calls.move(What::Receive, nullptr, &*out, root);
    for (size_t r = 0; r < in.size(); ++r) calls.move(What::Send, &*in[r], nullptr, static_cast<int>(r));
    calls.submit();
    out.give_back();
  });
}

WorkRef DeviceGroup::reduce_scatter(const Tensor& output, const Tensors& inputs, ReduceOp op, bool async) {
  return run(header(Collective::ReduceScatter, output, -1, op), output.device(), async, -1, [&](Joined& on) {
    const Dense out(output, Dense::kWrite);
    const std::vector<Dense> in = dense(inputs, Dense::kRead);
    if (const auto n = native(op, output.dtype(), in_order())) {
      const size_t count = static_cast<size_t>(output.numel()) * n->numbers;
      Calls calls(on);
      if (in_one_piece(in))
        calls.add(What::ReduceScatter, &*in[0], &*out, count, n->type, n->op, 0);
      else
        for (int r = 0; r < place_.size; ++r)
          calls.add(What::Reduce, &*in[static_cast<size_t>(r)], r == place_.rank ? &*out : nullptr, count, n->type, n->op, r);
      calls.submit();
    } else {
      Tensors flats;
      for (const Dense& d : in) flats.push_back(flat(*d, op));
      std::vector<std::pair<int64_t, int64_t>> parts;
      std::vector<Shards> tree;
      for (int r = 0; r < place_.size; ++r) parts.emplace_back(r * flats[0].numel(), flats[0].numel()), tree.push_back({r, 1});
      const Tensor result = folded(on, {cat(flats)}, tree, std::vector<size_t>(tree.size(), 1), parts, op, place_.size);
      if (result.defined()) flat(*out, op).copy_(result);
    }
    out.give_back();
  });
}

WorkRef DeviceGroup::all_to_all(const Tensors& outputs, const Tensors& inputs, bool async) {
  uint64_t received = 0;
  for (const Tensor& t : outputs) received += static_cast<uint64_t>(t.numel());
  // The header is about what this rank keeps: the only tensors that all ranks have alike are those of equal sizes.
  return run(
      header(Collective::AllToAll, inputs[static_cast<size_t>(place_.rank)]), inputs[0].device(), async, -1,
      [&](Joined& on) {
        const std::vector<Dense> out = dense(outputs, Dense::kWrite), in = dense(inputs, Dense::kRead);
        Calls calls(on);
        for (size_t r = 0; r < in.size(); ++r) {
          calls.move(What::Send, &*in[r], nullptr, static_cast<int>(r));
          calls.move(What::Receive, nullptr, &*out[r], static_cast<int>(r));
        }
        calls.submit();
        give_back(out);
      },
      received);
}

WorkRef DeviceGroup::messages(const std::vector<ProcessGroup::Message>& messages) {
  const ProcessGroup::Message& first = messages[0];
  const Collective what = messages.size() > 1 ? Collective::Messages : first.sends ? Collective::Send : Collective::Receive;
  const int peer = messages.size() > 1 ? -1 : first.peer;
  return run(header(what, first.tensor, peer), first.tensor.device(), true, first.sends ? -1 : first.peer, [&](Joined& on) {
    std::vector<Dense> list;
    for (const ProcessGroup::Message& m : messages) list.emplace_back(m.tensor, m.sends ? Dense::kRead : Dense::kWrite);
    Calls calls(on);
    for (size_t i = 0; i < list.size(); ++i) {
      const ProcessGroup::Message& m = messages[i];
      m.sends ? calls.move(What::Send, &*list[i], nullptr, m.peer) : calls.move(What::Receive, nullptr, &*list[i], m.peer);
    }
    calls.submit();
    give_back(list);
  });
}

}  // namespace naru::distributed
