#include "ir/interpreter/interpret.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "ir/interpreter/interpret_loops.h"

namespace naru::ir {
namespace {

constexpr int64_t kBlock = 256;
constexpr size_t kSlotBytes = kBlock * 8;
constexpr uint32_t kNoSlot = ~0u;

// A kernel prepared for a run: which nodes are evaluated, in which order, and into which slot of scratch memory. Values that are the same for
// every element keep their own slot and are written once; other slots are reused after the last reader.
class Evaluation {
 public:
  Evaluation(const MapKernel& kernel, const uint64_t* params, int64_t n)
      : kernel_(kernel), loops_(loops()), slot_(kernel.graph.nodes().size(), kNoSlot) {
    plan();
    // One slot more than needed, to align the first.
    memory_ = std::make_unique_for_overwrite<std::byte[]>((slots_ + 1) * kSlotBytes);
    const auto address = reinterpret_cast<uintptr_t>(memory_.get());
    base_ = memory_.get() + (64 - address % 64) % 64;
    const int64_t width = std::min(n, kBlock);
    for (const uint32_t id : uniform_) {
      const Node& node = kernel.graph[id];
      if (node.prim == Prim::Const) fill(id, &node.bits, size_of(node.type), width);
      if (node.prim == Prim::Param) fill(id, &params[node.bits], size_of(node.type), width);
    }
  }

  // Loads the inputs that are one element for the whole run.
  void load_scalars(const std::byte* const* inputs, int64_t n) {
    for (const uint32_t id : uniform_) {
      const Node& node = kernel_.graph[id];
      if (node.prim != Prim::Input) continue;
      uint64_t value = 0;
      loops_.load(node.dtype, &value, inputs[node.bits], 1);
      fill(id, &value, size_of(node.type), std::min(n, kBlock));
    }
  }

  // Evaluates elements [first, first + n), n <= kBlock, relative to the `inputs` pointers.
  void run(const std::byte* const* inputs, int64_t first, int64_t n, int64_t index) {
    for (const uint32_t id : steps_) {
      const Node& node = kernel_.graph[id];
      switch (node.prim) {
        case Prim::Input:
          loops_.load(node.dtype, at(id), inputs[node.bits] + first * size_of(node.dtype), n);
          break;
        case Prim::Index: {
          auto* out = reinterpret_cast<int64_t*>(at(id));
          for (int64_t i = 0; i < n; ++i) out[i] = index + i;
          break;
        }
        default:
          loops_.node(node, kernel_.graph[node.a].type, at(id), at(node.a), node.b == kNoNode ? nullptr : at(node.b),
                      node.c == kNoNode ? nullptr : at(node.c), n);
      }
    }
  }

  std::byte* at(uint32_t id) const { return base_ + slot_[id] * kSlotBytes; }
  const Loops& loops_of() const { return loops_; }

 private:
  bool is_uniform(const Node& node) const {
    return node.prim == Prim::Const || node.prim == Prim::Param || (node.prim == Prim::Input && kernel_.inputs[node.bits].scalar);
  }

  void plan() {
    const auto& nodes = kernel_.graph.nodes();
    const auto count = static_cast<uint32_t>(nodes.size());
    // The last step that reads a node. Results are read at the end; unused nodes never.
    std::vector<uint32_t> last(count, kNoNode);
    for (const uint32_t id : kernel_.results) last[id] = count;
    for (uint32_t id = count; id-- > 0;) {
      if (last[id] == kNoNode) continue;
      for (const uint32_t operand : {nodes[id].a, nodes[id].b, nodes[id].c})
        if (operand != kNoNode && last[operand] == kNoNode) last[operand] = id;
    }
    std::vector<uint32_t> free;
    for (uint32_t id = 0; id < count; ++id) {
      if (last[id] == kNoNode) continue;
      const bool uniform = is_uniform(nodes[id]);
      (uniform ? uniform_ : steps_).push_back(id);
      if (free.empty() || uniform) {
        slot_[id] = slots_++;
      } else {
        slot_[id] = free.back();
        free.pop_back();
      }
      // Free operands only after the result has its slot, so that no loop writes where it reads.
      const Node& node = nodes[id];
      for (const uint32_t operand : {node.a, node.b != node.a ? node.b : kNoNode, node.c != node.a && node.c != node.b ? node.c : kNoNode})
        if (operand != kNoNode && last[operand] == id && !is_uniform(nodes[operand])) free.push_back(slot_[operand]);
    }
  }

  void fill(uint32_t id, const void* value, size_t size, int64_t n) {
    for (int64_t i = 0; i < n; ++i) std::memcpy(at(id) + i * static_cast<int64_t>(size), value, size);
  }

  const MapKernel& kernel_;
  const Loops& loops_;
  std::vector<uint32_t> slot_, steps_, uniform_;
  uint32_t slots_ = 0;
  std::unique_ptr<std::byte[]> memory_;
  std::byte* base_ = nullptr;
};

std::vector<const std::byte*> addresses(const MapKernel& kernel, void* const* operands) {
  std::vector<const std::byte*> out(kernel.inputs.size());
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<const std::byte*>(operands[i]);
  return out;
}

}  // namespace

void fill_identity(ReduceOp op, VType type, void* out, int64_t n) {
  const uint64_t bits = identity_bits(op, type);
  const size_t size = size_of(type);
  for (int64_t i = 0; i < n; ++i) std::memcpy(static_cast<std::byte*>(out) + i * static_cast<int64_t>(size), &bits, size);
}

void interpret(const MapKernel& kernel, void* const* operands, const uint64_t* params, int64_t n, int64_t index0) {
  if (n <= 0) return;
  Evaluation evaluation(kernel, params, n);
  const auto inputs = addresses(kernel, operands);
  evaluation.load_scalars(inputs.data(), n);
  void* const* outputs = operands + kernel.inputs.size();
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t count = std::min(kBlock, n - first);
    evaluation.run(inputs.data(), first, count, index0 + first);
    for (size_t i = 0; i < kernel.outputs.size(); ++i) {
      const DType dtype = kernel.outputs[i];
      evaluation.loops_of().store(dtype, static_cast<std::byte*>(outputs[i]) + first * static_cast<int64_t>(size_of(dtype)),
                                  evaluation.at(kernel.results[i]), count);
    }
  }
}

void interpret_contiguous(const ReduceKernel& kernel, void* const* operands, const uint64_t* params, int64_t n, int64_t index0, void* out) {
  static_assert(kBlock % kLanes == 0);
  const auto size = static_cast<int64_t>(size_of(kernel.type));
  struct Lanes {
    alignas(64) std::byte bytes[kLanes * 8];
  };
  const size_t results = kernel.map.results.size();
  std::vector<Lanes> lanes(results);
  for (Lanes& l : lanes) fill_identity(kernel.op, kernel.type, l.bytes, kLanes);
  const Loops& loop = loops();
  if (n > 0) {
    Evaluation evaluation(kernel.map, params, n);
    const auto in = addresses(kernel.map, operands);
    evaluation.load_scalars(in.data(), n);
    for (int64_t first = 0; first < n; first += kBlock) {
      const int64_t count = std::min(kBlock, n - first);
      evaluation.run(in.data(), first, count, index0 + first);
      if (!kernel.map.outputs.empty())
        loop.store(kernel.map.outputs[0], static_cast<std::byte*>(operands[in.size()]) + first * size, evaluation.at(kernel.map.results[0]),
                   count);
      for (size_t r = 0; r < results; ++r)
        for (int64_t i = 0; i < count; i += kLanes)
          loop.combine(kernel.op, kernel.type, lanes[r].bytes, evaluation.at(kernel.map.results[r]) + i * size,
                       std::min(kLanes, count - i));
    }
  }
  for (size_t r = 0; r < results; ++r) {
    std::byte* const first = lanes[r].bytes;
    for (int64_t half = kLanes / 2; half > 0; half /= 2) loop.combine(kernel.op, kernel.type, first, first + half * size, half);
    std::memcpy(static_cast<std::byte*>(out) + static_cast<int64_t>(r) * size, first, static_cast<size_t>(size));
  }
}

void interpret_strided(const ReduceKernel& kernel, void* const* inputs, const int64_t* row_strides, const uint64_t* params, int64_t rows,
                       int64_t cols, int64_t index0, int64_t index_stride, void* out, int64_t plane) {
  if (cols <= 0 || rows <= 0) return;
  const auto size = static_cast<int64_t>(size_of(kernel.type));
  Evaluation evaluation(kernel.map, params, cols);
  auto in = addresses(kernel.map, inputs);
  for (int64_t row = 0; row < rows; ++row) {
    evaluation.load_scalars(in.data(), cols);
    for (int64_t first = 0; first < cols; first += kBlock) {
      const int64_t count = std::min(kBlock, cols - first);
      evaluation.run(in.data(), first, count, index0 + row * index_stride + first);
      for (size_t r = 0; r < kernel.map.results.size(); ++r)
        evaluation.loops_of().combine(kernel.op, kernel.type, static_cast<std::byte*>(out) + static_cast<int64_t>(r) * plane + first * size,
                                      evaluation.at(kernel.map.results[r]), count);
    }
    for (size_t i = 0; i < in.size(); ++i) in[i] += row_strides[i];
  }
}

void combine_values(ReduceOp op, VType type, void* a, const void* b, int64_t n) { loops().combine(op, type, a, b, n); }

}  // namespace naru::ir
