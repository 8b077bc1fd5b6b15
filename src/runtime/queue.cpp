#include "runtime/queue.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string_view>

#include "naru/error.h"
#include "runtime/capture.h"
#include "runtime/check_operands.h"
#include "runtime/fallback.h"
#include "runtime/memory.h"
#include "runtime/registry.h"
#include "runtime/sync.h"

namespace naru::runtime {
namespace {

std::atomic<bool> fusion_on{[] {
  const char* text = std::getenv("NARU_FUSE");
  return !text || std::string_view(text) != "0";
}()};

// Bytes of results that may be deferred before the group is run, so that memory is not kept waiting.
constexpr size_t kMaxDeferred = size_t{1} << 30;

void flush_other(Storage& s, const Queue* self) {
  Queue* q = s.pending.load(std::memory_order_acquire);
  if (q && q != self) q->flush();
}

void* address(const Storage& s, int64_t offset, DType t) { return static_cast<char*>(s.data) + offset * static_cast<int64_t>(size_of(t)); }

// Does something at the end of a scope, however it is left.
template <class F>
class AtEnd {
 public:
  explicit AtEnd(F f) : f_(std::move(f)) {}
  AtEnd(const AtEnd&) = delete;
  ~AtEnd() { f_(); }

 private:
  F f_;
};

}  // namespace

bool fusion() noexcept { return fusion_on.load(std::memory_order_relaxed); }
bool set_fusion(bool on) noexcept { return fusion_on.exchange(on); }

Dims expanded_strides(const TensorImpl& t, const Dims& shape) {
  Dims strides;
  strides.resize(shape.size());
  const size_t shift = shape.size() - t.sizes.size();
  for (size_t i = 0; i < t.sizes.size(); ++i) strides[shift + i] = t.sizes[i] == 1 ? 0 : t.strides[i];
  return strides;
}

Queue::Queue(Backend& backend, Device device, int number, int priority)
    : device_(device),
      number_(number),
      priority_(priority),
      backend_(backend),
      stream_(backend.create_stream(device, priority)),
      capabilities_(backend.capabilities(device)),
      synchronous_(backend.properties(device).synchronous),
      supports_everything_(capabilities_.supports_everything()) {}

Queue::~Queue() {
  try {
    flush();
    stream_->synchronize(stream_->submitted());
  } catch (...) {
    // Nobody is left to be told.
  }
}

void Queue::append(ir::OpId id, std::span<const Source> sources, const TensorImpl& out) {
  for (const Source& s : sources)
    if (s.tensor) flush_other(*s.tensor->storage, this);
  flush_other(*out.storage, this);
  const Dims out_strides = expanded_strides(out, out.sizes);
  std::lock_guard lock(mutex_);
  const char* const unsupported = supports_everything_ ? nullptr : unsupported_in(capabilities_, id, sources, out.dtype);
  if (unsupported) note_unsupported(device_, unsupported);
  // Written where several elements lie at one address, what an element holds is not what its node computed: nothing else shares the group.
  const bool alone = unsupported || (!out.contiguous && may_overlap(out.sizes, out.strides));
  if (group_.program.nodes_count > 0 && (alone || !(group_.shape == out.sizes))) flush_locked();
  if (!try_append(id, sources, out, out_strides)) {
    flush_locked();
    if (!try_append(id, sources, out, out_strides)) throw RuntimeError("an elementwise node reads memory it writes at other positions");
  }
  bool externally_aliased = out.storage->externally_aliased.load(std::memory_order_relaxed) > 0;
  for (const Source& s : sources)
    externally_aliased = externally_aliased || (s.tensor && s.tensor->storage->externally_aliased.load(std::memory_order_relaxed) > 0);
  size_t deferred = 0;
  for (const Piece& p : group_.outputs) deferred += p.storage->data ? 0 : p.storage->bytes;
  if (alone || !fusion() || deferred > kMaxDeferred || (externally_aliased && synchronous_)) flush_locked();
}

bool Queue::try_append(ir::OpId id, std::span<const Source> sources, const TensorImpl& out, const Dims& out_strides) {
  using From = ir::Program::From;
  if (group_.program.nodes_count == ir::kMaxNodes || group_.outputs.size() == ir::kMaxOutputs) return false;
  ir::Program::Node node{id, out.dtype, static_cast<uint8_t>(sources.size()), {}};
  struct Added {
    const Source* source;
    int slot;
  };
  int new_inputs = 0, new_params = 0;
  std::array<const Source*, ir::kMaxArgs> added{};
  for (size_t k = 0; k < sources.size(); ++k) {
    const Source& s = sources[k];
    if (!s.tensor) {
      node.args[k] = {From::Param, s.as, static_cast<uint16_t>(group_.params.size() + new_params++)};
      continue;
    }
    int found = -1;
    bool conflict = false;
    for (size_t i = group_.outputs.size(); i-- > 0 && found < 0 && !conflict;) {
      if (group_.outputs[i].storage.get() != s.tensor->storage.get()) continue;
      if (group_.outputs[i].same_place(*s.tensor, s.strides))
        found = group_.outputs[i].node;
      else
        conflict = true;
    }
    if (conflict) return false;
    if (found >= 0) {
      node.args[k] = {From::Node, s.as, static_cast<uint16_t>(found)};
      continue;
    }
    for (size_t i = 0; i < group_.inputs.size() && found < 0; ++i)
      if (group_.inputs[i].same_place(*s.tensor, s.strides)) found = static_cast<int>(i);
    for (int i = 0; i < new_inputs && found < 0; ++i)
      if (added[i]->tensor->storage.get() == s.tensor->storage.get() && added[i]->tensor->offset == s.tensor->offset &&
          added[i]->tensor->dtype == s.tensor->dtype && added[i]->strides == s.strides)
        found = static_cast<int>(group_.inputs.size()) + i;
    if (found < 0) {
      found = static_cast<int>(group_.inputs.size()) + new_inputs;
      added[new_inputs++] = &s;
    }
    node.args[k] = {From::Input, s.as, static_cast<uint16_t>(found)};
  }
  if (group_.inputs.size() + new_inputs > ir::kMaxInputs || group_.params.size() + new_params > ir::kMaxParams) return false;
  // The target must not lie under anything the group reads or writes at another place.
  const auto in_the_way = [&](const Piece& p) { return p.storage.get() == out.storage.get() && !p.same_place(out, out_strides); };
  if (std::any_of(group_.inputs.begin(), group_.inputs.end(), in_the_way) ||
      std::any_of(group_.outputs.begin(), group_.outputs.end(), in_the_way))
    return false;
  for (int i = 0; i < new_inputs; ++i)
    if (added[i]->tensor->storage.get() == out.storage.get() &&
        !(added[i]->tensor->offset == out.offset && added[i]->strides == out_strides && added[i]->tensor->dtype == out.dtype))
      return false;

  if (group_.program.nodes_count == 0) group_.shape = out.sizes;
  const bool many = out.numel > 1;
  for (int i = 0; i < new_inputs; ++i) {
    const Source& s = *added[i];
    const bool scalar = many && std::all_of(s.strides.begin(), s.strides.end(), [](int64_t d) { return d == 0; });
    group_.program.inputs[group_.program.inputs_count++] = {s.tensor->dtype, scalar};
    group_.inputs.push_back({s.tensor->storage, s.tensor->offset, s.strides, s.tensor->dtype, 0});
    s.tensor->storage->pending.store(this, std::memory_order_release);
  }
  for (const Source& s : sources)
    if (!s.tensor) {
      group_.program.params[group_.program.params_count++] = ir::vtype_of(s.as);
      group_.params.push_back(s.bits);
    }
  std::erase_if(group_.outputs, [&](const Piece& p) { return p.storage.get() == out.storage.get(); });
  group_.outputs.push_back({out.storage, out.offset, out_strides, out.dtype, group_.program.nodes_count});
  out.storage->pending.store(this, std::memory_order_release);
  group_.program.nodes[group_.program.nodes_count++] = node;
  return true;
}

bool Queue::defer(ir::Reduce& reduce, const Dims& shape, const Dims& order, std::span<const TensorImpl* const> reads,
                  const TensorImpl& out) {
  for (const TensorImpl* t : reads) flush_other(*t->storage, this);
  std::lock_guard lock(mutex_);
  Group& g = group_;
  if (deferred_ || g.program.nodes_count == 0 || !supports_everything_ || !fusion() || !(g.shape == shape) || g.program.uses_index())
    return false;
  if (g.program.nodes_count + reduce.program.nodes_count > ir::kMaxNodes || g.params.size() + reduce.params.size() > ir::kMaxParams ||
      g.inputs.size() + g.outputs.size() + reads.size() > ir::kMaxInputs)
    return false;
  const Piece* reduced = nullptr;
  std::vector<Piece> pieces;
  bool externally_aliased = false;
  for (const TensorImpl* t : reads) {
    pieces.push_back({t->storage, t->offset, expanded_strides(*t, shape), t->dtype, 0});
    externally_aliased = externally_aliased || t->storage->externally_aliased.load(std::memory_order_relaxed) > 0;
    for (const Piece& p : g.outputs) {
      if (p.storage.get() != t->storage.get()) continue;
      if (!p.same_place(*t, pieces.back().strides)) return false;
      reduced = &p;
    }
  }
  if (!reduced) return false;
  // Operands whose neighbours are others are better brought into this order by a map, in blocks, than element by element in a reduction.
  size_t narrowest = shape.size();
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] > 1 && reduced->strides[d] != 0 &&
        (narrowest == shape.size() || std::abs(reduced->strides[d]) < std::abs(reduced->strides[narrowest])))
      narrowest = d;
  if (narrowest < shape.size())
    for (const Piece& p : g.inputs)
      if (p.strides[narrowest] != 0 && p.strides[narrowest] != reduced->strides[narrowest]) return false;
  for (const Piece& p : g.inputs)
    externally_aliased = externally_aliased || p.storage->externally_aliased.load(std::memory_order_relaxed) > 0;
  for (const Piece& p : pieces) p.storage->pending.store(this, std::memory_order_release);
  out.storage->pending.store(this, std::memory_order_release);
  deferred_.reset(new DeferredReduction{std::exchange(g, {}), std::move(reduce), order, std::move(pieces), out.storage, out.offset});
  if (externally_aliased && synchronous_) flush_locked();
  return true;
}

void Queue::flush_locked() {
  if (!deferred_ && group_.program.nodes_count == 0) return;
  const std::unique_ptr<DeferredReduction> deferred = std::move(deferred_);
  Group g = std::exchange(group_, {});
  {
    // Whoever finds a storage that is not pending may look at once: it stays so until the work is done, or handed over.
    const AtEnd settled([&] {
      const auto settle = [](const std::vector<Piece>& list) {
        for (const Piece& p : list) p.storage->pending.store(nullptr, std::memory_order_release);
      };
      settle(g.inputs), settle(g.outputs);
      if (!deferred) return;
      settle(deferred->group.inputs), settle(deferred->group.outputs), settle(deferred->reads);
      deferred->out->pending.store(nullptr, std::memory_order_release);
    });
    if (deferred) {
      try {
        run(*deferred);
      } catch (...) {
        // What comes behind would compute with what is not there.
        for (const Piece& p : g.outputs) p.storage->lost = !p.storage->data;
        throw;
      }
    }
    // A result that only this queue still knows was a temporary: it is never written to memory.
    Chosen stored;
    for (size_t i = 0; i < g.outputs.size(); ++i) stored[i] = g.outputs[i].storage->use_count() > 1;
    run(g, stored);
  }
  // The lists' memory serves the next group.
  g.inputs.clear(), g.outputs.clear();
  if (group_.inputs.empty() && group_.outputs.empty()) std::swap(group_.inputs, g.inputs), std::swap(group_.outputs, g.outputs);
}

// The group, as far as its results `stored` need it.
void Queue::run(Group& g, Chosen stored) {
  if (stored.none()) {
    if (Capture* const capture = capture_.load(std::memory_order_relaxed); capture && g.program.nodes_count > 0)
      capture->drop(g.program, g.params);
    return;
  }
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
  try {
    for (Storage* s : accesses.writes) allocate_storage(*s, stream_.get());
    for (const Piece& p : g.inputs) allocate_storage(*p.storage, stream_.get());
  } catch (...) {
    for (Storage* s : accesses.writes) s->lost = !s->data;
    throw;
  }
  for (size_t i = 0, o = 0; i < g.outputs.size(); ++i)
    if (stored[i]) map.outputs[o++].data = address(*g.outputs[i].storage, g.outputs[i].offset, g.outputs[i].dtype);
  map.inputs.reserve(g.inputs.size());
  for (const Piece& p : g.inputs) {
    map.inputs.push_back({address(*p.storage, p.offset, p.dtype), p.dtype, p.strides});
    accesses.reads.push_back(p.storage.get());
  }
  submit_locked(std::move(map), accesses);
}

namespace {

// Which of a program's nodes `wanted` ones need, themselves included; it stops at those whose values lie in memory.
using Nodes = std::bitset<ir::kMaxNodes>;
Nodes needed(const ir::Program& program, Nodes wanted, const Nodes& in_memory) {
  wanted &= ~in_memory;
  for (size_t s = program.nodes_count; s-- > 0;) {
    if (!wanted[s]) continue;
    const ir::Program::Node& node = program.nodes[s];
    for (int k = 0; k < node.args_count; ++k)
      if (node.args[k].from == ir::Program::From::Node && !in_memory[node.args[k].index]) wanted.set(node.args[k].index);
  }
  return wanted;
}

}  // namespace

// First the results that somebody wants are written, then the rest is computed from them, or from what they were computed from, within the
// reduction.
void Queue::run(DeferredReduction& h) {
  using From = ir::Program::From;
  Group& g = h.group;
  Chosen stored, read;
  Nodes in_memory, wanted;
  for (size_t i = 0; i < g.outputs.size(); ++i) {
    const auto reads =
        std::count_if(h.reads.begin(), h.reads.end(), [&](const Piece& p) { return p.storage.get() == g.outputs[i].storage.get(); });
    stored[i] = g.outputs[i].storage->use_count() > static_cast<size_t>(1 + reads);
    read[i] = reads > 0;
    if (stored[i]) in_memory.set(g.outputs[i].node);
    if (read[i]) wanted.set(g.outputs[i].node);
  }
  Nodes inside = needed(g.program, wanted, in_memory);
  // What the group overwrites can't be read once more.
  bool overwritten = false;
  for (size_t s = 0; s < g.program.nodes_count; ++s)
    for (int k = 0; inside[s] && k < g.program.nodes[s].args_count; ++k)
      if (const auto& arg = g.program.nodes[s].args[k]; arg.from == From::Input)
        for (size_t i = 0; i < g.outputs.size(); ++i)
          overwritten |= stored[i] && g.outputs[i].storage.get() == g.inputs[arg.index].storage.get();
  if (overwritten) {
    stored |= read;
    inside.reset();
  }
  const auto made_inside = [&](const Piece& p) {
    for (size_t i = 0; i < g.outputs.size(); ++i)
      if (g.outputs[i].storage.get() == p.storage.get()) return !stored[i];
    return false;
  };
  try {
    run(g, stored);
    allocate_storage(*h.out, stream_.get());
    for (const auto* list : {&g.inputs, &h.reads})
      for (const Piece& p : *list)
        if (!made_inside(p)) allocate_storage(*p.storage, stream_.get());
  } catch (...) {
    h.out->lost = !h.out->data;
    throw;
  }

  ir::Reduce r = std::move(h.reduce);
  const ir::Program own = r.program;
  r.program.nodes_count = r.program.inputs_count = r.program.params_count = 0;
  const std::vector<uint64_t> own_params = std::exchange(r.params, {});
  r.inputs.clear();
  Accesses accesses;
  const bool many = product(g.shape) > 1;
  const auto input = [&](const Piece& p) {
    Dims strides;
    for (const int64_t d : h.order) strides.push_back(p.strides[static_cast<size_t>(d)]);
    void* const data = address(*p.storage, p.offset, p.dtype);
    for (size_t i = 0; i < r.inputs.size(); ++i)
      if (r.inputs[i].data == data && r.inputs[i].dtype == p.dtype && r.inputs[i].strides == strides) return static_cast<uint16_t>(i);
    const bool one = std::all_of(strides.begin(), strides.end(), [](int64_t d) { return d == 0; });
    r.program.inputs[r.program.inputs_count++] = {p.dtype, many && one};
    r.inputs.push_back({data, p.dtype, std::move(strides)});
    accesses.reads.push_back(p.storage.get());
    return static_cast<uint16_t>(r.inputs.size() - 1);
  };
  const auto param = [&](ir::VType type, uint64_t bits) {
    r.program.params[r.program.params_count] = type;
    r.params.push_back(bits);
    return static_cast<uint16_t>(r.program.params_count++);
  };
  std::array<uint16_t, ir::kMaxNodes> number{};  // of a group's node in the reduction
  // A value of the group: computed inside, or read.
  const auto value = [&](uint16_t node, DType as) -> ir::Program::Arg {
    if (inside[node]) return {From::Node, as, number[node]};
    for (const Piece& p : g.outputs)
      if (p.node == node) return {From::Input, as, input(p)};
    throw RuntimeError("a reduction reads a node that is neither computed nor stored");
  };
  for (uint16_t s = 0; s < g.program.nodes_count; ++s) {
    if (!inside[s]) continue;
    ir::Program::Node node = g.program.nodes[s];
    for (int k = 0; k < node.args_count; ++k) {
      ir::Program::Arg& a = node.args[k];
      if (a.from == From::Node)
        a = value(a.index, a.as);
      else if (a.from == From::Input)
        a.index = input(g.inputs[a.index]);
      else
        a.index = param(g.program.params[a.index], g.params[a.index]);
    }
    number[s] = r.program.nodes_count;
    r.program.nodes[r.program.nodes_count++] = node;
  }
  const uint16_t first = r.program.nodes_count;
  for (uint16_t s = 0; s < own.nodes_count; ++s) {
    ir::Program::Node node = own.nodes[s];
    for (int k = 0; k < node.args_count; ++k) {
      ir::Program::Arg& a = node.args[k];
      if (a.from == From::Node)
        a.index = static_cast<uint16_t>(first + a.index);
      else if (a.from == From::Param)
        a.index = param(own.params[a.index], own_params[a.index]);
      else {
        const Piece& p = h.reads[a.index];
        const auto made =
            std::find_if(g.outputs.begin(), g.outputs.end(), [&](const Piece& o) { return o.storage.get() == p.storage.get(); });
        if (made == g.outputs.end())
          a.index = input(p);
        else
          a = value(made->node, a.as);
      }
    }
    r.program.nodes[r.program.nodes_count++] = node;
  }
  r.program.outputs[0] = static_cast<uint8_t>(r.program.nodes_count - 1);
  r.out.data = address(*h.out, h.out_offset, r.out.dtype);
  accesses.writes.push_back(h.out.get());
  submit_locked(std::move(r), accesses);
}

// Makes this stream wait for what others have still to do there.
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

uint64_t Queue::submit_locked(ir::Instruction&& instruction, const Accesses& accesses) {
  if constexpr (kChecksOperands) check_operands(instruction, accesses);
  Capture* const capture = capture_.load(std::memory_order_relaxed);
  if (!supports_everything_)
    if (const char* op = unsupported_in(capabilities_, instruction)) {
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
  if (synchronous_) return stream_->submit(std::move(instruction), {});
  std::vector<Ref<Storage>> hold;
  for (const auto* list : {&accesses.reads, &accesses.writes})
    for (Storage* s : *list)
      if (!s->ordered) hold.push_back(Ref<Storage>::share(s));
  const uint64_t seq = stream_->submit(std::move(instruction), std::move(hold));
  for (Storage* s : accesses.reads) s->pending_uses.add_read({stream_.get(), seq});
  for (Storage* s : accesses.writes) s->pending_uses.set_written({stream_.get(), seq});
  return seq;
}

uint64_t Queue::submit(ir::Instruction&& instruction, const Accesses& accesses) {
  for (Storage* s : accesses.reads) flush_other(*s, this);
  for (Storage* s : accesses.writes) flush_other(*s, this);
  std::lock_guard lock(mutex_);
  if (!supports_everything_)
    if (const char* op = unsupported_in(capabilities_, instruction)) note_unsupported(device_, op);
  flush_locked();
  return submit_locked(std::move(instruction), accesses);
}

void Queue::flush() {
  std::lock_guard lock(mutex_);
  flush_locked();
}

void Queue::flush_nodes() {
  std::lock_guard lock(mutex_);
  if (!deferred_) flush_locked();
}

void Queue::record_into(Capture* capture) {
  std::lock_guard lock(mutex_);
  if (capture && capture_) throw RuntimeError("{}", not_permitted(device_, "another thread records this stream"));
  if (!capture) {
    // Even what can't be recorded any more must not reach the device.
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
  // It counts as a write, so that backward refuses what it had saved of an earlier replay.
  for (const Recording::Accessed& t : r.storages)
    if (t.written && t.storage->use_count() > 1) t.storage->version.fetch_add(1, std::memory_order_relaxed);
  r.submit(*stream_, hold);
  if (synchronous_) return;
  const StreamPoint point{stream_.get(), stream_->submitted()};
  for (const Recording::Accessed& t : r.storages)
    t.written ? t.storage->pending_uses.set_written(point) : t.storage->pending_uses.add_read(point);
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
