#include "cudnn_operations.h"

#include <functional>
#include <regex>

namespace {

using Index = std::array<int64_t, 4>;

std::string word_of(const Operation& o) {
  if (o.kind == Kind::Matmul) return "matmul ";
  if (o.kind == Kind::Reshape) return "reshape ";
  if (o.kind == Kind::Reduction) return o.mode == kSum ? "sum " : o.mode == kMost ? "most " : "? ";
  static const std::map<int, const char*> kWords = {{kAdd, "add "},           {kMul, "mul "},         {kDiv, "div "},
                                                    {kSub, "sub "},           {kExp, "exp "},         {kLog, "log "},
                                                    {kIdentity, "identity "}, {kAtLeast, "atleast "}, {kSelect, "select "}};
  if (o.mode == kIndex) return "index" + std::to_string(o.axis) + " ";
  const auto found = kWords.find(o.mode);
  return found == kWords.end() ? "? " : found->second;
}

// The attention graphs in cuDNN's documentation and front end: forward with statistics, and backward.
const std::regex kForward("matmul mul (add )?(index2 index3 atleast select )?most sub exp sum log add div matmul ");
const std::regex kBackward(
    "mul sum mul matmul mul (add )?sub (index2 index3 atleast select )?exp reshape matmul (sum )?matmul sub mul mul reshape matmul (sum )?"
    "reshape matmul identity ");

bool is_half(const OpTensor& t) { return t.type == kHalf || t.type == kBfloat16; }

// Checks result types: of comparisons, of indices, and otherwise float32, except for outputs and inputs of 16-bit products.
bool fits(const Operation& o) {
  if (o.kind == Kind::Pointwise && o.mode == kIndex) return o.out.type == kInt32;
  if (o.kind == Kind::Pointwise && o.mode == kAtLeast)
    return o.out.type == kBoolean && o.computed == kBoolean && o.in[0].type == kInt32 && o.in[1].type == kInt32;
  if (o.computed != kFloat) return false;
  if (o.kind == Kind::Pointwise && o.mode == kSelect && o.in[2].type != kBoolean) return false;
  if (o.kind == Kind::Reshape && o.out.type != o.in[0].type) return is_half(o.out) && o.out.inner;
  return is_half(o.out) || o.out.type == kFloat;
}

int64_t shared(int64_t i, int64_t all, int64_t own) { return all == own ? i : own == 1 ? 0 : i / (all / own); }

// Calls f for each index of `size`.
void each(const Index& size, const std::function<void(const Index&)>& f) {
  Index i{};
  for (i[0] = 0; i[0] < size[0]; ++i[0])
    for (i[1] = 0; i[1] < size[1]; ++i[1])
      for (i[2] = 0; i[2] < size[2]; ++i[2])
        for (i[3] = 0; i[3] < size[3]; ++i[3]) f(i);
}
// The offset of index i of `size` in a tensor that may have sizes of 1, or fewer heads.
size_t place(const OpTensor& t, const Index& i, const Index& size) {
  int64_t at = 0;
  for (size_t d = 0; d < 4; ++d) at += shared(i[d], size[d], t.size[d]) * t.stride[d];
  return static_cast<size_t>(at);
}

double as_type(double x, int type) {
  char bytes[8];
  if (type == kInt32 || type == kBoolean) return x;
  put(bytes, type, 0, x);
  return get(bytes, type, 0);
}

double pointwise(int mode, const std::array<double, 3>& x, int64_t position) {
  switch (mode) {
    case kAdd:
      return x[0] + x[1];
    case kMul:
      return x[0] * x[1];
    case kDiv:
      return x[0] / x[1];
    case kSub:
      return x[0] - x[1];
    case kExp:
      return std::exp(x[0]);
    case kLog:
      return std::log(x[0]);
    case kAtLeast:
      return x[0] >= x[1];
    case kIndex:
      return static_cast<double>(position);
    case kSelect:
      return x[2] != 0 ? x[0] : x[1];
    default:
      return x[0];
  }
}

using Values = std::map<int64_t, std::vector<double>>;

void compute(const Operation& o, Values& values) {
  const OpTensor& out = o.out;
  std::vector<double> result(out.reach(), o.kind == Kind::Reduction && o.mode == kMost ? -INFINITY : 0);
  if (o.kind == Kind::Reshape) result = values.at(o.in[0].number);
  if (o.kind == Kind::Matmul)
    each(out.size, [&](const Index& i) {
      const OpTensor &a = o.in[0], &b = o.in[1];
      double sum = 0;
      for (int64_t k = 0; k < a.size[3]; ++k) {
        const Index left{i[0], i[1], i[2], k}, right{i[0], i[1], k, i[3]};
        sum += values.at(a.number)[place(a, left, {out.size[0], out.size[1], a.size[2], a.size[3]})] *
               values.at(b.number)[place(b, right, {out.size[0], out.size[1], b.size[2], b.size[3]})];
      }
      result[place(out, i, out.size)] = sum;
    });
  if (o.kind == Kind::Pointwise)
    each(out.size, [&](const Index& i) {
      std::array<double, 3> x{};
      for (size_t k = 0; k < o.in.size(); ++k) x[k] = values.at(o.in[k].number)[place(o.in[k], i, out.size)];
      result[place(out, i, out.size)] = pointwise(o.mode, x, o.axis < 0 ? 0 : i[static_cast<size_t>(o.axis)]);
    });
  if (o.kind == Kind::Reduction)
    each(o.in[0].size, [&](const Index& i) {
      double& to = result[place(out, i, o.in[0].size)];
      const double x = values.at(o.in[0].number)[place(o.in[0], i, o.in[0].size)];
      to = o.mode == kSum ? to + x : std::max(to, x);
    });
  for (double& x : result) x = as_type(x, out.type);
  values[out.number] = std::move(result);
}

}  // namespace

int Operations::trouble() const {
  std::string words;
  std::map<int64_t, bool> made;
  int type = -1;
  for (const Operation& o : all) {
    words += word_of(o);
    if (!fits(o)) return kMisfitType;
    for (const OpTensor& t : o.in) {
      if (t.inner && !made[t.number]) return kMisfitGraph;  // no operation produces it
      if (t.inner || t.of_host || t.type == kFloat || !is_half(t)) continue;
      if (type >= 0 && t.type != type) return kMisfitType;
      type = t.type;
    }
    if (made[o.out.number]) return kMisfitGraph;
    made[o.out.number] = true;
    if (o.kind == Kind::Matmul &&
        (o.in[0].size[3] != o.in[1].size[2] || o.out.size[2] != o.in[0].size[2] || o.out.size[3] != o.in[1].size[3]))
      return kMisfit;
    if (o.kind == Kind::Reshape && o.in[0].reach() != o.out.reach()) return kMisfit;
  }
  if (!std::regex_match(words, kForward) && !std::regex_match(words, kBackward)) return kMisfitGraph;
  for (const auto& [number, t] : in_memory) {
    if (t.of_host || !is_half(t)) continue;
    // Elements of a head must be contiguous (for a transposed matrix, its columns), with 16-byte alignment; a bias may have any strides.
    const bool turned = t.stride[2] == 1 && t.stride[3] != 1;
    if (!turned && t.stride[3] != 1) return kMisfitLayout;
    const int64_t width = t.size[turned ? 2 : 3], line = t.stride[turned ? 3 : 2];
    if (width % 8 == 0 && line % 8 != 0 && t.size[turned ? 3 : 2] != 1) return kMisfitLayout;
  }
  return 0;
}

void Operations::compute(const std::map<int64_t, char*>& memory, bool mine) const {
  Values values;
  for (const auto& [number, t] : in_memory) {
    std::vector<double>& all_of = values[number];
    all_of.resize(t.reach());
    for (size_t i = 0; i < all_of.size(); ++i) all_of[i] = get(memory.at(number), t.type, i);
  }
  for (const Operation& o : all) {
    ::compute(o, values);
    if (o.out.inner) continue;
    // Write only its own elements: other tensors may be interleaved.
    each(o.out.size, [&](const Index& i) {
      const size_t at = place(o.out, i, o.out.size);
      put(memory.at(o.out.number), o.out.type, at, mine ? values[o.out.number][at] : NAN);
    });
  }
}
