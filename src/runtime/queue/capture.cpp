#include "runtime/queue/capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/at_end.h"
#include "core/small_vector.h"
#include "core/tensor_impl.h"
#include "ir/inspect.h"
#include "ir/op_ids.h"
#include "naru/error.h"
#include "runtime/memory/memory.h"
#include "runtime/queue/check_operands.h"

namespace naru::runtime {
namespace {

thread_local Capture* current_capture = nullptr;

std::string here() {
  const uint32_t line = current_line();
  return line ? ", at " + line_text(line) : std::string();
}

// "CUDA", "CPU" ...
std::string kind_text(Device device) {
  std::string text(name_of(device.type));
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

bool draws(ir::OpId row) { return row >= ir::op::uniform && row <= ir::op::exponential; }

void find_draws(const ir::Program& program, std::vector<uint64_t>& params, std::vector<Recording::Draw>& found) {
  for (int i = 0; i < program.nodes_count; ++i) {
    const ir::Program::Node& s = program.nodes[static_cast<size_t>(i)];
    if (draws(s.op)) found.push_back({&params[s.args[s.args_count - 2u].index], &params[s.args[s.args_count - 1u].index]});
  }
}

// A storage that uses the memory of another storage, `lender`, of `bytes` bytes.
struct Lent {
  Ref<Storage> lender;
  size_t bytes;
};
void release_lent(Storage& s) noexcept {
  auto* const lent = static_cast<Lent*>(s.owner);
  // The lender inherits the pending uses, so that the next user of the memory waits for them.
  const ReleasedUses uses = s.pending_uses.take();
  try {
    lent->lender->pending_uses.inherit(uses);
  } catch (const std::bad_alloc&) {
    uses.each([](const StreamPoint& m) { m.stream->reach(m.seq); });
  }
  delete lent;
}
size_t capacity(const Storage& s) noexcept { return s.release_memory == release_lent ? static_cast<const Lent*>(s.owner)->bytes : s.bytes; }

}  // namespace

Recording::~Recording() {
  if (last.stream) last.stream->reach(last.seq);
}

void Recording::finish(DeviceStream& stream) {
  for (size_t i = 0; i < work.size(); ++i) {
    const size_t before = draws.size();
    ir::each_program(work[i], [&](const ir::Program& program, std::vector<uint64_t>& params) { find_draws(program, params, draws); });
    const bool random = draws.size() > before;
    if (parts.empty() || random || parts.back().draws) parts.push_back({{work.data() + i, 0}, random, {}});
    parts.back().work = {parts.back().work.data(), parts.back().work.size() + 1};
  }
  for (Part& part : parts)
    if (!part.draws) part.ready = stream.record(part.work);
}

void Recording::submit(DeviceStream& stream, const std::vector<Ref<Storage>>& hold) {
  for (const Part& part : parts) {
    if (part.ready)
      stream.replay(*part.ready, hold);
    else
      for (const ir::Instruction& i : part.work) stream.submit(i, hold);
  }
}

Capture::Capture(Queue& queue) : queue_(queue), recording_(std::make_unique<Recording>()) {
  if (current_capture)
    throw RuntimeError("{}", not_permitted(queue.device(), fmt::format("this thread records {} already; captures are not nested",
                                                                       current_capture->queue_.device().str())));
  queue.record_into(this);
  recording_->device = queue.device();
  number_ = captures_begun.fetch_add(1) + 1;
  captures_under_way.fetch_add(1);
  if (queue.device().is_cpu()) host_captures.fetch_add(1);
  current_capture = this;
  open_ = true;
}

Capture::~Capture() {
  if (!open_) return;
  try {
    queue_.record_into(nullptr);
  } catch (...) {
    // Work that could not be recorded is discarded with the rest.
  }
  leave();
}

Capture* Capture::current() noexcept { return current_capture; }

void Capture::leave() noexcept {
  open_ = false;
  current_capture = nullptr;
  if (queue_.device().is_cpu()) host_captures.fetch_sub(1);
  captures_under_way.fetch_sub(1);
  for (const Recording::Accessed& t : recording_->storages) t.storage->captured.store(false, std::memory_order_relaxed);
}

std::unique_ptr<Recording> Capture::end() {
  try {
    queue_.record_into(nullptr);
  } catch (...) {
    leave();
    throw;
  }
  leave();
  if (spoiled_ && refused_.empty()) refused_ = "an instruction could not be recorded";
  if (!refused_.empty())
    throw RuntimeError("{} error: operation failed due to a previous error during capture ({}). The graph holds nothing; capture it anew",
                       kind_text(queue_.device()), refused_);
  Recording& r = *recording_;
  r.work.insert(r.work.begin(), std::make_move_iterator(first_.begin()), std::make_move_iterator(first_.end()));
  r.finish(queue_.stream());
  return std::move(recording_);
}

void Capture::refuse(const std::string& why) {
  const std::string text = why + here();
  if (refused_.empty()) refused_ = text;
  throw RuntimeError("{} error: operation not permitted when stream is capturing ({})", kind_text(queue_.device()), text);
}

void Capture::touch(Storage& s, bool write) {
  if (s.captured.load(std::memory_order_relaxed) && !places_.contains(&s)) refuse_captured(s);  // by another capture
  make_room(recording_->storages, 1);
  const auto [at, fresh] = places_.try_emplace(&s, recording_->storages.size());
  if (fresh) recording_->storages.push_back({Ref<Storage>::share(&s), false});
  // The host wrote into lent memory: record an instruction that writes those contents back.
  if (fresh && s.host_wrote && s.release_memory == release_lent) recording_->work.push_back(restored(s)), s.host_wrote = false;
  bool& written = recording_->storages[at->second].written;
  if (!write || written) return;
  written = true;
  s.captured.store(true, std::memory_order_relaxed);
  // Contents that the host wrote during the capture must be restored at the start of each replay.
  if (made(s) && fresh && !s.host_wrote && s.externally_aliased.load(std::memory_order_relaxed) == 0) made_.push_back(&s);
  if (!queue_.device().is_cpu() || !made(s) || !(s.host_wrote || s.externally_aliased.load(std::memory_order_relaxed) > 0)) return;
  first_.push_back(restored(s));
}

ir::Instruction Capture::restored(const Storage& s) {
  lends_ = false;
  const AtEnd again([this] { lends_ = true; });
  const Ref<Storage> kept = make_storage(s.device, s.bytes);
  std::memcpy(kept->data, s.data, s.bytes);
  recording_->storages.push_back({kept, false});
  const ir::CopyBytes copy{s.data, kept->data, s.bytes, s.device, s.device};
  if constexpr (kChecksOperands) check_operands(copy, {{kept.get()}, {const_cast<Storage*>(&s)}});
  return copy;
}

bool Capture::lend(Storage& s) {
  if (!lends_) return false;
  Storage* best = nullptr;
  for (Storage* m : made_) {
    const size_t bytes = capacity(*m);
    if (m->use_count() == 1 && m->ordered && bytes >= s.bytes && bytes / 4 <= s.bytes && (!best || bytes < capacity(*best))) best = m;
  }
  if (!best) return false;
  s.owner = new Lent{Ref<Storage>::share(best), capacity(*best)};
  s.data = best->data;
  s.ordered = true;
  s.release_memory = release_lent;
  return true;
}

void Capture::add(ir::Instruction&& instruction, const Accesses& accesses) {
  bool whole = false;
  const AtEnd check([&] { spoiled_ |= !whole; });
  for (Storage* s : accesses.reads) touch(*s, false);
  for (Storage* s : accesses.writes) touch(*s, true);
  recording_->work.push_back(std::move(instruction));
  whole = true;
}

void Capture::add(const Recording& other) {
  bool whole = false;
  const AtEnd check([&] { spoiled_ |= !whole; });
  for (const Recording::Accessed& t : other.storages) touch(*t.storage, t.written);
  recording_->work.insert(recording_->work.end(), other.work.begin(), other.work.end());
  whole = true;
}

void Capture::drop(const ir::Program& program, std::vector<uint64_t>& params) {
  std::vector<Recording::Draw> draws;
  find_draws(program, params, draws);
  for (const Recording::Draw& d : draws) recording_->dropped.emplace_back(*d.key, *d.offset);
}

std::string not_permitted(Device device, const std::string& why) {
  return fmt::format("{} error: operation not permitted when stream is capturing ({}{})", kind_text(device), why, here());
}

void check_wait(const char* what, Device device) {
  if (Capture* c = Capture::current(); c && c->queue().device() == device)
    c->refuse(
        fmt::format("{}: the host would wait for {}, whose work is recorded and not done. Move it behind the capture", what, device.str()));
}

void check_host_access(Storage& s, bool write) {
  Capture* const c = Capture::current();
  const bool own = c && c->queue().device().is_cpu() && s.device.is_cpu();
  if (!s.captured.load(std::memory_order_relaxed) && !(own && (!c->made(s) || (write && c->touched(s))))) {
    s.host_wrote |= own && write;
    return;
  }
  if (c) c->refuse("the host would look at a value that is only made, or known, when the graph is replayed. Move it behind the capture");
  refuse_captured(s);
}

void refuse_captured(const Storage& s) {
  const std::string why =
      fmt::format("a tensor on {} is used outside the capture that writes it; wait for the capture's end", s.device.str());
  if (Capture* c = Capture::current()) c->refuse(why);
  throw RuntimeError("{}", not_permitted(s.device, why));
}

}  // namespace naru::runtime
