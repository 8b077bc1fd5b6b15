#include "runtime/queue.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string_view>

#include "naru/error.h"
#include "runtime/capture.h"
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

// Bytes of results that may be held back before the group is run, so that memory is not kept waiting.
constexpr size_t kMaxHeld = size_t{1} << 30;

void flush_other(Storage& s, const Queue* self) {
  Queue* q = s.pending.load(std::memory_order_acquire);
  if (q && q != self) q->flush();
}

void* address(const Storage& s, int64_t offset, DType t) {
  return static_cast<char*>(s.data) + offset * static_cast<int64_t>(size_of(t));
}

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
      synchronous_(backend.properties(device).synchronous),
      unified_(backend.properties(device).unified),
      gaps_(backend.has_gaps(device)) {}

Queue::~Queue() {
  try {
    flush();
    stream_->synchronize(stream_->submitted());
  } catch (...) {
    // Nobody is left to be told.
  }
}

void Queue::append(ir::RowId row, std::span<const Source> sources, const TensorImpl& out) {
  for (const Source& s : sources)
    if (s.tensor) flush_other(*s.tensor->storage, this);
  flush_other(*out.storage, this);
  const Dims out_strides = expanded_strides(out, out.sizes);
  std::lock_guard lock(mutex_);
  const char* const lacks = gaps_ ? lacking(backend_, device_, row, sources, out.dtype) : nullptr;
  if (lacks) note_lacking(device_, lacks);
  // Written where several elements lie at one address, what an element holds is not what its step computed: nothing else shares the group.
  const bool alone = lacks || (!out.contiguous && may_overlap(out.sizes, out.strides));
  if (program_.steps_count > 0 && (alone || !(shape_ == out.sizes))) flush_locked();
  if (!try_append(row, sources, out, out_strides)) {
    flush_locked();
    if (!try_append(row, sources, out, out_strides)) throw RuntimeError("an elementwise step reads memory it writes at other positions");
  }
  bool exposed = out.storage->exposed.load(std::memory_order_relaxed) > 0;
  for (const Source& s : sources) exposed = exposed || (s.tensor && s.tensor->storage->exposed.load(std::memory_order_relaxed) > 0);
  size_t held = 0;
  for (const Piece& p : outputs_) held += p.storage->data ? 0 : p.storage->bytes;
  if (alone || !fusion() || held > kMaxHeld || (exposed && synchronous_)) flush_locked();
}

bool Queue::try_append(ir::RowId row, std::span<const Source> sources, const TensorImpl& out, const Dims& out_strides) {
  using From = ir::Program::From;
  if (program_.steps_count == ir::kMaxSteps || outputs_.size() == ir::kMaxOutputs) return false;
  ir::Program::Step step{row, out.dtype, static_cast<uint8_t>(sources.size()), {}};
  struct Added {
    const Source* source;
    int slot;
  };
  int new_inputs = 0, new_params = 0;
  std::array<const Source*, ir::kMaxArgs> added{};
  for (size_t k = 0; k < sources.size(); ++k) {
    const Source& s = sources[k];
    if (!s.tensor) {
      step.args[k] = {From::Param, s.as, static_cast<uint16_t>(params_.size() + new_params++)};
      continue;
    }
    int found = -1;
    bool conflict = false;
    for (size_t i = outputs_.size(); i-- > 0 && found < 0 && !conflict;) {
      if (outputs_[i].storage.get() != s.tensor->storage.get()) continue;
      if (outputs_[i].same_place(*s.tensor, s.strides)) found = outputs_[i].step;
      else conflict = true;
    }
    if (conflict) return false;
    if (found >= 0) {
      step.args[k] = {From::Step, s.as, static_cast<uint16_t>(found)};
      continue;
    }
    for (size_t i = 0; i < inputs_.size() && found < 0; ++i)
      if (inputs_[i].same_place(*s.tensor, s.strides)) found = static_cast<int>(i);
    for (int i = 0; i < new_inputs && found < 0; ++i)
      if (added[i]->tensor->storage.get() == s.tensor->storage.get() && added[i]->tensor->offset == s.tensor->offset &&
          added[i]->tensor->dtype == s.tensor->dtype && added[i]->strides == s.strides)
        found = static_cast<int>(inputs_.size()) + i;
    if (found < 0) {
      found = static_cast<int>(inputs_.size()) + new_inputs;
      added[new_inputs++] = &s;
    }
    step.args[k] = {From::Input, s.as, static_cast<uint16_t>(found)};
  }
  if (inputs_.size() + new_inputs > ir::kMaxInputs || params_.size() + new_params > ir::kMaxParams) return false;
  // The target must not lie under anything the group reads or writes at another place.
  const auto in_the_way = [&](const Piece& p) { return p.storage.get() == out.storage.get() && !p.same_place(out, out_strides); };
  if (std::any_of(inputs_.begin(), inputs_.end(), in_the_way) || std::any_of(outputs_.begin(), outputs_.end(), in_the_way)) return false;
  for (int i = 0; i < new_inputs; ++i)
    if (added[i]->tensor->storage.get() == out.storage.get() &&
        !(added[i]->tensor->offset == out.offset && added[i]->strides == out_strides && added[i]->tensor->dtype == out.dtype))
      return false;

  if (program_.steps_count == 0) shape_ = out.sizes;
  const bool many = out.numel > 1;
  for (int i = 0; i < new_inputs; ++i) {
    const Source& s = *added[i];
    const bool scalar = many && std::all_of(s.strides.begin(), s.strides.end(), [](int64_t d) { return d == 0; });
    program_.inputs[program_.inputs_count++] = {s.tensor->dtype, scalar};
    inputs_.push_back({s.tensor->storage, s.tensor->offset, s.strides, s.tensor->dtype, 0});
    s.tensor->storage->pending.store(this, std::memory_order_release);
  }
  for (const Source& s : sources)
    if (!s.tensor) {
      program_.params[program_.params_count++] = ir::vtype_of(s.as);
      params_.push_back(s.bits);
    }
  std::erase_if(outputs_, [&](const Piece& p) { return p.storage.get() == out.storage.get(); });
  outputs_.push_back({out.storage, out.offset, out_strides, out.dtype, program_.steps_count});
  out.storage->pending.store(this, std::memory_order_release);
  program_.steps[program_.steps_count++] = step;
  return true;
}

void Queue::flush_locked() {
  if (program_.steps_count == 0) return;
  ir::Map map;
  Touches touches;
  // A result that only this queue still knows was a temporary: it is never written to memory.
  std::vector<Piece> inputs = std::move(inputs_), outputs = std::move(outputs_);
  inputs_.clear(), outputs_.clear();
  for (Piece& p : inputs) p.storage->pending.store(nullptr, std::memory_order_release);
  program_.outputs_count = 0;
  for (Piece& p : outputs) {
    p.storage->pending.store(nullptr, std::memory_order_release);
    if (p.storage->use_count() == 1) continue;
    map.outputs.reserve(outputs.size());
    program_.outputs[program_.outputs_count++] = p.step;
    map.outputs.push_back({nullptr, p.dtype, p.strides});
    touches.writes.push_back(p.storage.get());
  }
  map.program = program_;
  map.shape = shape_;
  map.params = std::move(params_);
  params_.clear();
  program_.steps_count = program_.inputs_count = program_.params_count = program_.outputs_count = 0;
  if (map.outputs.empty()) {
    if (Capture* const capture = capture_.load(std::memory_order_relaxed)) capture->drop(map.program, map.params);
    return;
  }
  try {
    for (Storage* s : touches.writes) materialise(*s, stream_.get());
    for (Piece& p : inputs) materialise(*p.storage, stream_.get());
  } catch (...) {
    for (Storage* s : touches.writes) s->lost = !s->data;
    throw;
  }
  map.inputs.reserve(inputs.size());
  size_t o = 0;
  for (Piece& p : outputs)
    if (o < touches.writes.size() && touches.writes[o] == p.storage.get()) map.outputs[o++].data = address(*p.storage, p.offset, p.dtype);
  for (Piece& p : inputs) {
    map.inputs.push_back({address(*p.storage, p.offset, p.dtype), p.dtype, p.strides});
    touches.reads.push_back(p.storage.get());
  }
  submit_locked(std::move(map), touches);
  // The lists' memory serves the next group.
  inputs.clear(), outputs.clear();
  if (inputs_.empty() && outputs_.empty()) std::swap(inputs_, inputs), std::swap(outputs_, outputs);
}

// Makes this stream wait for what others have still to do there.
void Queue::await(Storage& s, bool write) {
  if (s.captured.load(std::memory_order_relaxed)) refuse_captured(s);
  if (s.history.empty() || s.history.only(stream_.get())) return;
  if (synchronous_) return wait_for_host(s, write);
  if (write)
    for (const Mark m : s.history.marks()) wait(m);
  else
    wait(s.history.written());
}

void Queue::wait(Mark m) {
  if (!m.stream || m.stream == stream_.get()) return;
  stream_->errors().follow(m.stream->errors());
  stream_->wait(*m.stream, m.seq);
}

uint64_t Queue::submit_locked(ir::Instruction&& instruction, const Touches& touches) {
  Capture* const capture = capture_.load(std::memory_order_relaxed);
  if (gaps_)
    if (const char* op = lacking(backend_, device_, instruction)) {
      if (capture) capture->refuse(fmt::format("{} is done on the cpu, for {} lacks it", op, device_.str()));
      run_on_host(*this, std::move(instruction), touches, op);
      return stream_->submitted();
    }
  if (capture) {
    capture->add(std::move(instruction), touches);
    return stream_->submitted();
  }
  for (Storage* s : touches.reads) await(*s, false);
  for (Storage* s : touches.writes) await(*s, true);
  if (synchronous_) return stream_->submit(std::move(instruction), {});
  std::vector<Ref<Storage>> hold;
  for (const auto* list : {&touches.reads, &touches.writes})
    for (Storage* s : *list)
      if (!s->ordered) hold.push_back(Ref<Storage>::share(s));
  const uint64_t seq = stream_->submit(std::move(instruction), std::move(hold));
  for (Storage* s : touches.reads) s->history.add_read({stream_.get(), seq});
  for (Storage* s : touches.writes) s->history.set_written({stream_.get(), seq});
  return seq;
}

uint64_t Queue::submit(ir::Instruction&& instruction, const Touches& touches) {
  for (Storage* s : touches.reads) flush_other(*s, this);
  for (Storage* s : touches.writes) flush_other(*s, this);
  std::lock_guard lock(mutex_);
  if (gaps_)
    if (const char* op = lacking(backend_, device_, instruction)) note_lacking(device_, op);
  flush_locked();
  return submit_locked(std::move(instruction), touches);
}

void Queue::flush() {
  std::lock_guard lock(mutex_);
  flush_locked();
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
  for (const Recording::Touched& t : r.storages) flush_other(*t.storage, this);
  std::lock_guard lock(mutex_);
  flush_locked();
  if (Capture* const capture = capture_.load(std::memory_order_relaxed)) return capture->add(r);
  for (const Recording::Touched& t : r.storages) await(*t.storage, t.written);
  std::vector<Ref<Storage>> hold;
  if (!synchronous_)
    for (const Recording::Touched& t : r.storages)
      if (!t.storage->ordered) hold.push_back(t.storage);
  // It counts as a write, so that backward refuses what it had saved of an earlier replay.
  for (const Recording::Touched& t : r.storages)
    if (t.written && t.storage->use_count() > 1) t.storage->version.fetch_add(1, std::memory_order_relaxed);
  r.submit(*stream_, hold);
  if (synchronous_) return;
  const Mark mark{stream_.get(), stream_->submitted()};
  for (const Recording::Touched& t : r.storages) t.written ? t.storage->history.set_written(mark) : t.storage->history.add_read(mark);
  r.last = mark;
}

void Queue::synchronize() {
  flush();
  stream_->synchronize(stream_->submitted());
}

void Queue::wait(Queue& other) {
  if (&other != this) wait(Mark{other.stream_.get(), other.mark()});
}

uint64_t Queue::mark(std::unique_ptr<TimeStamp>* stamp) {
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
  if (s.history.empty()) return;
  const Mark written = s.history.written();
  if (written.stream) {
    note_synchronization("the host reads what a device writes", written.stream->device());
    written.stream->synchronize(written.seq);
  }
  if (!write) return s.history.reached(written);
  for (const Mark m : s.history.marks()) {
    if (m.stream->completed() < m.seq) note_synchronization("the host writes what a device reads", m.stream->device());
    m.stream->synchronize(m.seq);
  }
  s.history.take();
}

}  // namespace naru::runtime
