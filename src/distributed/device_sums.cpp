#include "distributed/device_sums.h"

#include "naru/ops.h"
#include "naru/ops/complex.h"
#include "naru/ops/functions.h"

namespace naru::distributed {
namespace {

Tensor combined(ReduceOp op, const Tensor& a, const Tensor& b) {
  const bool logical = a.dtype() == DType::Bool;
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Avg:
      return logical ? bitwise_or(a, b) : a + b;
    case ReduceOp::Product:
      return logical ? bitwise_and(a, b) : a * b;
    case ReduceOp::Min:
      return logical ? bitwise_and(a, b) : minimum(a, b);
    case ReduceOp::Max:
      return logical ? bitwise_or(a, b) : maximum(a, b);
    case ReduceOp::BAnd:
      return bitwise_and(a, b);
    case ReduceOp::BOr:
      return bitwise_or(a, b);
    case ReduceOp::BXor:
      return bitwise_xor(a, b);
  }
  return a;
}

// A node of the tree. next: of the nodes.
Tensor value_of(Shards of, const std::vector<Shards>& nodes, const std::vector<Tensor>& values, size_t& next, ReduceOp op) {
  if (nodes[next] == of) return values[next++];
  const int left = left_half(of.count);
  const Tensor a = value_of({of.first, left}, nodes, values, next, op);
  return combined(op, a, value_of({of.first + left, of.count - left}, nodes, values, next, op));
}

}  // namespace

std::optional<Native> native(ReduceOp op, DType type, bool in_order) {
  using Op = Communicator::Op;
  if (type == DType::Bool) {  // 0 or 1 each
    const bool any = op == ReduceOp::Sum || op == ReduceOp::Max || op == ReduceOp::BOr;
    return op == ReduceOp::BXor ? std::nullopt : std::optional(Native{DType::U8, 1, any ? Op::Max : Op::Min});
  }
  if (op >= ReduceOp::BAnd || type == DType::I16 || type == kUInt16 || (in_order && is_inexact(type))) return std::nullopt;
  constexpr Op kOps[] = {Op::Sum, Op::Average, Op::Product, Op::Min, Op::Max};
  if (!is_complex(type)) return Native{type, 1, kOps[static_cast<size_t>(op)]};
  return op == ReduceOp::Product ? std::nullopt : std::optional(Native{real_of(type), 2, kOps[static_cast<size_t>(op)]});
}

Tensor flat(const Tensor& t, ReduceOp op) {
  if (t.dtype() == kUInt32 || t.dtype() == kUInt64) return t.view({-1}).view(t.dtype() == kUInt32 ? DType::I32 : DType::I64);  // of bits
  const bool pairs = is_complex(t.dtype()) && (op == ReduceOp::Sum || op == ReduceOp::Avg);
  return pairs ? view_as_real(t).view({-1}) : t.view({-1});
}

std::vector<std::pair<int64_t, int64_t>> parts_of(int64_t n, int ranks) {
  std::vector<std::pair<int64_t, int64_t>> parts;
  for (int64_t r = 0; r < ranks; ++r) parts.emplace_back(r * (n / ranks) + std::min(r, n % ranks), n / ranks + (r < n % ranks));
  return parts;
}

Tensor tree_of(const std::vector<Shards>& nodes, std::vector<Tensor> values, ReduceOp op, int shards) {
  const DType type = values[0].dtype();
  const bool widens = type == kUInt16;  // of which operators have no sums
  for (Tensor& t : values)
    if (widens) t = t.to(DType::I32);
  size_t next = 0;
  Tensor result = value_of({0, nodes.back().first + nodes.back().count}, nodes, values, next, op);
  if (op == ReduceOp::Avg) {
    if (widens) result = result.to(type).to(DType::I32);  // the sum has 16 bits, too
    result = is_inexact(type) ? result / shards : div(result, shards, "trunc");
  }
  return result.to(type);
}

}  // namespace naru::distributed
