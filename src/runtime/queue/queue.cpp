#include "runtime/queue/queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <string_view>

#include "core/at_end.h"
#include "ir/inspect.h"
#include "naru/error.h"
#include "runtime/device/registry.h"
#include "runtime/memory/memory.h"
#include "runtime/profile/instruction_log.h"
#include "runtime/queue/capture.h"
#include "runtime/queue/check_operands.h"
#include "runtime/queue/fallback.h"
#include "runtime/queue/operator_scope.h"
#include "runtime/queue/sync.h"

namespace naru::runtime {
namespace {

std::atomic<bool> fusion_on{[] {
  const char* text = std::getenv("NARU_FUSE");
  return !text || std::string_view(text) != "0";
}()};

// Limit of the bytes of deferred results, after which the group runs so that it does not hold memory too long: the larger of this size and
// the device's memory / 8.
constexpr size_t kLeastDeferred = size_t{1} << 30, kShareDeferred = 8;

void flush_other(Storage& s, const Queue* self) {
  Queue* q = s.pending.load(std::memory_order_acquire);
  if (q && q != self) q->flush();
}

bool is_externally_aliased(const Storage& s) noexcept { return s.externally_aliased.load(std::memory_order_relaxed) > 0; }

// Storages that get their first values from work that is about to be submitted: marked as lost unless handed_over() is called.
class PendingResults {
 public:
  PendingResults() = default;
  PendingResults(const PendingResults&) = delete;
  ~PendingResults() {
    for (size_t i = 0; i < count_; ++i) mark_storage_failed(*storages_[i]);
  }
  void add(Storage& s) noexcept {
    if (!s.data && s.bytes > 0) storages_[count_++] = &s;
  }
  void handed_over() noexcept { count_ = 0; }

 private:
  std::array<Storage*, ir::kMaxOutputs> storages_{};
  size_t count_ = 0;
};

// If there is no memory to record the read, waits for it.
void add_read(Storage& s, StreamPoint m) noexcept {
  try {
    s.pending_uses.add_read(m);
  } catch (const std::bad_alloc&) {
    m.stream->reach(m.seq);
  }
}

}  // namespace

bool fusion() noexcept { return fusion_on.load(std::memory_order_relaxed); }
bool set_fusion(bool on) noexcept { return fusion_on.exchange(on); }

Queue::Queue(Backend& backend, Device device, int number, int priority)
    : device_(device),
      number_(number),
      priority_(priority),
      backend_(backend),
      stream_(backend.create_stream(device, priority)),
      capabilities_(backend.capabilities(device)),
      synchronous_(backend.properties(device).synchronous),
      supports_everything_(capabilities_.supports_everything()),
      most_deferred_(std::max(kLeastDeferred, backend.properties(device).total_memory / kShareDeferred)) {}

Queue::~Queue() {
  try {
    flush();
    stream_->synchronize(stream_->submitted());
  } catch (...) {
    // No caller is left to report the error to.
  }
}

void Queue::append(ir::OpId id, std::span<const Source> sources, const TensorImpl& out) {
  for (const Source& s : sources)
    if (s.tensor) flush_other(*s.tensor->storage, this);
  flush_other(*out.storage, this);
  const Dims out_strides = expanded_strides(out, out.sizes);
  std::lock_guard lock(mutex_);
  const char* const unsupported = supports_everything_ ? nullptr : unsupported_in(capabilities_, id);
  if (unsupported) note_unsupported(device_, unsupported);
  // If several elements of the output share an address, an element need not hold what its node computed: the node must not share a group.
  const bool alone = unsupported || (!out.contiguous && may_overlap(out.sizes, out.strides));
  if (!group_.empty() && (alone || !(group_.shape == out.sizes))) flush_locked();
  if (!group_.append(id, sources, out, out_strides)) {
    flush_locked();
    if (!group_.append(id, sources, out, out_strides)) throw RuntimeError("an elementwise node reads memory it writes at other positions");
  }
  out.storage->pending.store(this, std::memory_order_release);
  bool externally_aliased = is_externally_aliased(*out.storage);
  for (const Source& s : sources) {
    if (!s.tensor) continue;
    s.tensor->storage->pending.store(this, std::memory_order_release);
    externally_aliased |= is_externally_aliased(*s.tensor->storage);
  }
  size_t deferred = 0;
  for (const Piece& p : group_.outputs) deferred += p.storage->data ? 0 : p.storage->bytes;
  if (alone || !fusion() || deferred > most_deferred_ || (externally_aliased && !OperatorScope::postpone(*this))) flush_locked();
}

bool Queue::defer(ir::Reduce& reduce, const Dims& shape, const Dims& order, std::span<const TensorImpl* const> reads,
                  const TensorImpl& out) {
  for (const TensorImpl* t : reads) flush_other(*t->storage, this);
  std::lock_guard lock(mutex_);
  if (deferred_ || !supports_everything_ || !fusion()) return false;
  auto pieces = reducible(group_, reduce, shape, reads);
  if (!pieces) return false;
  bool at_once = false;
  for (const auto* list : {&group_.inputs, &*pieces})
    for (const Piece& p : *list) at_once |= is_externally_aliased(*p.storage);
  auto deferred = std::make_unique<DeferredReduction>(DeferredReduction{{}, {}, order, std::move(*pieces), out.storage, out.offset});
  // Nothing throws from here on.
  deferred->group = std::exchange(group_, {});
  deferred->reduce = std::move(reduce);
  for (const Piece& p : deferred->reads) p.storage->pending.store(this, std::memory_order_release);
  out.storage->pending.store(this, std::memory_order_release);
  deferred_ = std::move(deferred);
  if (at_once && !OperatorScope::postpone(*this)) flush_locked();
  return true;
}

void Queue::flush_locked() {
  if (!deferred_ && group_.empty()) return;
  const std::unique_ptr<DeferredReduction> deferred = std::move(deferred_);
  Group g = std::exchange(group_, {});
  {
    // Keep `pending` set until submission: readers treat null as ready.
    const AtEnd settled([&] {
      const auto settle = [](const std::vector<Piece>& list) {
        for (const Piece& p : list) p.storage->pending.store(nullptr, std::memory_order_release);
      };
      settle(g.inputs), settle(g.outputs);
      if (!deferred) return;
      settle(deferred->group.inputs), settle(deferred->group.outputs), settle(deferred->reads);
      deferred->out->pending.store(nullptr, std::memory_order_release);
    });
    try {
      // If the reduction fails, the group after it would compute with missing values: mark its results as lost.
      PendingResults behind;
      for (const Piece& p : g.outputs) behind.add(*p.storage);
      if (deferred) run(*deferred);
      behind.handed_over();
      // A result that only this queue still references was a temporary: it is never written to memory.
      Group::Chosen stored;
      for (size_t i = 0; i < g.outputs.size(); ++i) stored[i] = g.outputs[i].storage->use_count() > 1;
      run(g, stored);
    } catch (...) {
      if (Capture* const capture = capture_.load(std::memory_order_relaxed)) capture->spoil();
      throw;
    }
  }
  // The vectors' capacity is reused by the next group.
  g.inputs.clear(), g.outputs.clear();
  if (group_.inputs.empty() && group_.outputs.empty()) std::swap(group_.inputs, g.inputs), std::swap(group_.outputs, g.outputs);
}

// Runs the part of the group that its results `stored` need.
void Queue::run(Group& g, Group::Chosen stored) {
  if (stored.none()) {
    if (Capture* const capture = capture_.load(std::memory_order_relaxed); capture && !g.empty()) capture->drop(g.program, g.params);
    return;
  }
  PendingResults results;
  for (size_t i = 0; i < g.outputs.size(); ++i)
    if (stored[i]) results.add(*g.outputs[i].storage);
  ir::Map map;
  Accesses accesses;
  map.program = g.program;
  map.program.outputs_count = 0;
  map.shape = g.shape;
  map.params = g.params;
  map.outputs.reserve(g.outputs.size());
  for (size_t i = 0; i < g.outputs.size(); ++i) {
    if (!stored[i]) continue;
    const Piece& p = g.outputs[i];
    map.program.outputs[map.program.outputs_count++] = p.node;
    map.outputs.push_back({nullptr, p.dtype, p.strides});
    accesses.writes.push_back(p.storage.get());
  }
  for (Storage* s : accesses.writes) allocate_storage(*s, stream_.get());
  for (const Piece& p : g.inputs) allocate_storage(*p.storage, stream_.get());
  for (size_t i = 0, o = 0; i < g.outputs.size(); ++i)
    if (stored[i]) map.outputs[o++].data = g.outputs[i].address();
  map.inputs.reserve(g.inputs.size());
  for (const Piece& p : g.inputs) {
    map.inputs.push_back({p.address(), p.dtype, p.strides});
    accesses.reads.push_back(p.storage.get());
  }
  submit_locked(std::move(map), accesses);
  results.handed_over();
}

void Queue::run(DeferredReduction& d) {
  PendingResults result;
  result.add(*d.out);
  const DeferredReduction::Plan plan = d.plan();
  run(d.group, plan.stored);
  allocate_storage(*d.out, stream_.get());
  for (const auto* list : {&d.group.inputs, &d.reads})
    for (const Piece& p : *list)
      if (!d.computed_inside(p, plan)) allocate_storage(*p.storage, stream_.get());
  Accesses accesses;
  ir::Reduce merged = d.merge(plan, accesses);
  submit_locked(std::move(merged), accesses);
  result.handed_over();
}

// Makes this stream wait for other streams' pending uses of the storage.
void Queue::await(Storage& s, bool write) {
  if (s.captured.load(std::memory_order_relaxed)) refuse_captured(s);
  if (s.pending_uses.empty() || s.pending_uses.only(stream_.get())) return;
  if (synchronous_) return wait_for_host(s, write);
  if (write)
    for (const StreamPoint m : s.pending_uses.points()) wait(m);
  else
    wait(s.pending_uses.written());
}

void Queue::wait(StreamPoint m) {
  if (!m.stream || m.stream == stream_.get()) return;
  stream_->errors().follow(m.stream->errors());
  stream_->wait(*m.stream, m.seq);
}

// The operator that forces the instruction onto the cpu; null: the device runs it.
const char* Queue::unsupported(const ir::Instruction& instruction) const {
  const char* const op = unsupported_in(capabilities_, instruction);
  return op && !backend_.takes(device_, instruction) ? op : nullptr;
}

uint64_t Queue::submit_locked(ir::Instruction&& instruction, const Accesses& accesses) {
  if constexpr (kChecksOperands) check_operands(instruction, accesses);
  Capture* const capture = capture_.load(std::memory_order_relaxed);
  if (!supports_everything_ || ir::is_host_only(instruction))
    if (const char* op = unsupported(instruction)) {
      if (capture) capture->refuse(fmt::format("{} is done on the cpu, for {} does not support it", op, device_.str()));
      run_on_host(*this, std::move(instruction), accesses, op);
      return stream_->submitted();
    }
  if (capture) {
    capture->add(std::move(instruction), accesses);
    return stream_->submitted();
  }
  for (Storage* s : accesses.reads) await(*s, false);
  for (Storage* s : accesses.writes) await(*s, true);
  if (synchronous_) return give(std::move(instruction), {}, accesses);
  std::vector<Ref<Storage>> hold;
  bool shared = false;  // with other libraries, whose streams are not ordered with ours
  for (const auto* list : {&accesses.reads, &accesses.writes})
    for (Storage* s : *list) {
      if (!s->ordered) hold.push_back(Ref<Storage>::share(s));
      shared |= s->device == device_ && is_externally_aliased(*s);
    }
  if (shared) backend_.wait_for_others(device_);
  const uint64_t seq = give(std::move(instruction), std::move(hold), accesses);
  for (Storage* s : accesses.reads) add_read(*s, {stream_.get(), seq});
  for (Storage* s : accesses.writes) s->pending_uses.set_written({stream_.get(), seq});
  if (shared) stream_->synchronize(seq);
  return seq;
}

uint64_t Queue::give(ir::Instruction&& instruction, std::vector<Ref<Storage>> hold, const Accesses& accesses) {
  if (!logging_instructions.load(std::memory_order_relaxed)) [[likely]]
    return stream_->submit(std::move(instruction), std::move(hold));
  const uint32_t where = accesses.writes.empty() ? 0 : (*accesses.writes.begin())->origin.where;
  LoggedSubmit logged(*stream_, number_, name_in_log(instruction), where);
  const uint64_t seq = stream_->submit(std::move(instruction), std::move(hold));
  logged.done();
  return seq;
}

uint64_t Queue::submit(ir::Instruction&& instruction, const Accesses& accesses) {
  for (Storage* s : accesses.reads) flush_other(*s, this);
  for (Storage* s : accesses.writes) flush_other(*s, this);
  std::lock_guard lock(mutex_);
  if (!supports_everything_ || ir::is_host_only(instruction))
    if (const char* op = unsupported(instruction)) note_unsupported(device_, op);
  flush_locked();
  return submit_locked(std::move(instruction), accesses);
}

void Queue::flush() {
  std::lock_guard lock(mutex_);
  flush_locked();
}

void Queue::renew() {
  std::lock_guard lock(mutex_);
  backend_.renew(device_, *stream_);
  capabilities_ = backend_.capabilities(device_);
  supports_everything_ = capabilities_.supports_everything();
}

void Queue::flush_nodes() {
  std::lock_guard lock(mutex_);
  if (!deferred_) flush_locked();
}

void Queue::record_into(Capture* capture) {
  std::lock_guard lock(mutex_);
  if (capture && capture_) throw RuntimeError("{}", not_permitted(device_, "another thread records this stream"));
  if (!capture) {
    // Deferred work must not reach the device, even if it can't be recorded any more.
    try {
      flush_locked();
    } catch (...) {
      capture_ = nullptr;
      throw;
    }
  } else {
    flush_locked();
  }
  capture_ = capture;
}

void Queue::replay(Recording& r) {
  for (const Recording::Accessed& t : r.storages) flush_other(*t.storage, this);
  std::lock_guard lock(mutex_);
  flush_locked();
  if (Capture* const capture = capture_.load(std::memory_order_relaxed)) return capture->add(r);
  for (const Recording::Accessed& t : r.storages) await(*t.storage, t.written);
  std::vector<Ref<Storage>> hold;
  if (!synchronous_)
    for (const Recording::Accessed& t : r.storages)
      if (!t.storage->ordered) hold.push_back(t.storage);
  // Counts as a write, so that backward rejects tensors saved from an earlier replay.
  for (const Recording::Accessed& t : r.storages)
    if (t.written && t.storage->use_count() > 1) t.storage->version.fetch_add(1, std::memory_order_relaxed);
  try {
    if (logging_instructions.load(std::memory_order_relaxed)) [[unlikely]] {
      LoggedSubmit logged(*stream_, number_, "graph", 0);
      r.submit(*stream_, hold);
      logged.done();
    } else {
      r.submit(*stream_, hold);
    }
  } catch (...) {
    stream_->reach(stream_->submitted());  // no pending uses were recorded for the submitted part
    throw;
  }
  if (synchronous_) return;
  const StreamPoint point{stream_.get(), stream_->submitted()};
  for (const Recording::Accessed& t : r.storages) t.written ? t.storage->pending_uses.set_written(point) : add_read(*t.storage, point);
  r.last = point;
}

void Queue::synchronize() {
  flush();
  stream_->synchronize(stream_->submitted());
}

void Queue::wait(Queue& other) {
  if (&other != this) wait(StreamPoint{other.stream_.get(), other.point()});
}

uint64_t Queue::point(std::unique_ptr<TimeStamp>* stamp) {
  std::lock_guard lock(mutex_);
  flush_locked();
  if (Capture* const capture = stamp ? capture_.load(std::memory_order_relaxed) : nullptr)
    capture->refuse("an event would take the time of work that is not done; record it before or behind the capture");
  if (stamp) *stamp = stream_->stamp();
  return stream_->submitted();
}

void wait_for_host(Storage& s, bool write) {
  if (Queue* q = s.pending.load(std::memory_order_acquire)) q->flush();
  if (captures_under_way.load(std::memory_order_relaxed) != 0) check_host_access(s, write);
  if (s.pending_uses.empty()) return;
  const StreamPoint written = s.pending_uses.written();
  if (written.stream) {
    note_synchronization("the host reads what a device writes", written.stream->device());
    written.stream->synchronize(written.seq);
  }
  if (!write) return s.pending_uses.reached(written);
  for (const StreamPoint m : s.pending_uses.points()) {
    if (m.stream->completed() < m.seq) note_synchronization("the host writes what a device reads", m.stream->device());
    m.stream->synchronize(m.seq);
  }
  s.pending_uses.take();
}

}  // namespace naru::runtime
