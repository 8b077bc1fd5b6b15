// Graph, as declared in the public header: captures of a queue, and the random numbers that replays draw.
#include "naru/device/graph.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "ir/inspect.h"
#include "naru/device/devices.h"
#include "naru/error.h"
#include "naru/random.h"
#include "runtime/device/registry.h"
#include "runtime/queue/capture.h"

namespace naru {

struct Graph::State {
  std::mutex mutex;
  std::unique_ptr<runtime::Capture> capture;
  std::unique_ptr<runtime::Recording> recording;
  std::optional<Device> device;
  // The default generator's seed and offset when the capture began, and the number of draws in one replay.
  uint64_t seed = 0, first = 0, draws = 0;
  // The recorded offsets are relative to this offset at present.
  uint64_t base = 0;

  void keep_draws(uint64_t end);
  void draw_anew();
};

// A capture executes nothing, so its draws do not advance the generator: the first replay makes them.
void Graph::State::keep_draws(uint64_t end) {
  std::set<uint64_t> offsets;
  const auto note = [&](uint64_t key, uint64_t offset) {
    if (key != seed || offset < first)
      throw RuntimeError("Graph: the random generator was given another seed or state in the capture; do that before");
    offsets.insert(offset);
  };
  for (const runtime::Recording::Draw& d : recording->draws) note(*d.key, *d.offset);
  for (const auto& [key, offset] : recording->dropped) note(key, offset);
  if (offsets.empty()) return;
  base = first;
  draws = std::max(end, *offsets.rbegin() + 1) - first;
  if (offsets.size() == end - first) default_generator().set_state(seed, first);
}

void Graph::State::draw_anew() {
  if (draws == 0) return;
  const auto [key, offset] = default_generator().draw(draws);
  for (const runtime::Recording::Draw& d : recording->draws) {
    *d.key = key;
    *d.offset += offset - base;
  }
  base = offset;
}

Graph::Graph() noexcept = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

void Graph::begin(std::optional<Device> device) {
  if (captured())
    throw RuntimeError("This Graph holds captured work already. To capture other work make a new one, or call reset() first. (begin)");
  const Device asked = device.value_or(best_device());
  const Device d = asked.is_cpu() ? Device(DeviceType::Cpu, 0) : runtime::resolve(asked);
  if (!state_) state_ = std::make_shared<State>();
  const Generator& g = default_generator();
  state_->capture = std::make_unique<runtime::Capture>(runtime::queue_of(d));
  state_->device = d;
  state_->seed = g.initial_seed(), state_->first = g.offset(), state_->draws = 0;
}

void Graph::end() {
  if (!state_ || !state_->capture) throw RuntimeError("Graph: no capture is under way; call begin() first (end)");
  const std::unique_ptr<runtime::Capture> capture = std::move(state_->capture);
  state_->recording = capture->end();
  try {
    state_->keep_draws(default_generator().offset());
  } catch (...) {
    state_->recording.reset();
    throw;
  }
}

void Graph::abandon() noexcept {
  if (state_) state_->capture.reset();
}

void Graph::replay() {
  if (!captured()) throw RuntimeError("Graph: replay() called without a preceding successful capture");
  const std::lock_guard lock(state_->mutex);
  state_->draw_anew();
  runtime::queue_of(*state_->device).replay(*state_->recording);
}

void Graph::reset() { state_.reset(); }

bool Graph::captured() const noexcept { return state_ && state_->recording; }
size_t Graph::size() const noexcept { return captured() ? state_->recording->work.size() : 0; }
std::vector<std::string> Graph::operators() const {
  std::vector<std::string> list;
  if (!captured()) return list;
  for (const ir::Instruction& i : state_->recording->work) {
    std::string& text = list.emplace_back();
    ir::each_name(i, [&](const char* name) { text += (text.empty() ? "" : ", ") + std::string(name); });
    if (text.empty()) text = "copy";
  }
  return list;
}
std::optional<Device> Graph::device() const noexcept { return state_ ? state_->device : std::nullopt; }

bool is_capturing(Device device) noexcept {
  const runtime::Capture* c = runtime::Capture::current();
  if (!c || c->queue().device().type != device.type) return false;
  return device.is_cpu() || !device.has_index() || c->queue().device().index == device.index;
}

}  // namespace naru
