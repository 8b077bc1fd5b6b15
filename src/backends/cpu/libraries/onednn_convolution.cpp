#include "backends/cpu/libraries/onednn_convolution.h"

#include <algorithm>
#include <array>
#include <compare>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/cpu/exec/buffer.h"
#include "backends/cpu/exec/layout.h"
#include "backends/cpu/exec/simd.h"
#include "backends/cpu/exec/thread_pool.h"
#include "backends/cpu/libraries/library_call.h"
#include "backends/cpu/libraries/matmul_libraries.h"
#include "backends/cpu/libraries/onednn_primitives.h"
#include "core/per_thread.h"

namespace naru::cpu {
namespace {

using dnnl::Layout;
using dnnl::Primitive;
using ir::Convolution;
using Use = Convolution::Use;
using Array = Convolution::Array;

// Approximate nanoseconds per multiply-add.
constexpr double kTime = 0.01;
// Positions for each part of the images that adds a gradient of its own to that of the weights: adding takes no time beside them.
constexpr int64_t kLeastPositions = 128;
// Limit of cached plans.
constexpr size_t kMostPlans = 512;

// Everything that a plan depends on.
struct Key {
  Use use;
  DType type;
  bool bias;
  std::array<int64_t, 4> counts;
  std::array<Convolution::Sizes, 6> window;
  std::array<std::array<int64_t, 5>, 3> strides;
  auto operator<=>(const Key&) const = default;
  explicit Key(const Convolution& q)
      : use(q.use),
        type(q.dtype),
        bias(q.bias != nullptr),
        counts{q.batch, q.groups, q.in, q.out},
        window{q.size, q.result, q.kernel, q.stride, q.padding, q.dilation},
        strides{q.x.strides, q.w.strides, q.y.strides} {}
};

int64_t work_of(const Convolution& q) { return q.batch * q.groups * q.out * q.in * product(q.result) * product(q.kernel); }

// Desired number of parts, by the multiply-adds.
int64_t parts_for(int64_t work) { return work >= int64_t{64} << 20 ? 8 : work >= int64_t{8} << 20 ? 4 : 2; }

// The largest divisor of n that is at most `most`.
int64_t divisor(int64_t n, int64_t most) {
  for (int64_t d = std::clamp<int64_t>(most, 1, n); d > 1; --d)
    if (n % d == 0) return d;
  return 1;
}

// Number of equal slices of the channels, at most `wanted`: each a multiple of 16 and at least `least`, or 1.
int64_t slices_of(int64_t channels, int64_t wanted, int64_t least) {
  for (int64_t n = wanted; n > 1; --n)
    if (channels % n == 0 && channels / n >= least && channels / n % 16 == 0) return n;
  return 1;
}

// How x, w or y is divided among the parts. A piece is user memory or, if the library needs another layout, a separate buffer.
struct Piece {
  int64_t across = 1, down = 1;            // number of pieces along the first two dimensions
  int64_t across_step = 0, down_step = 0;  // elements between pieces, in user memory
  // Conversion of one share of the first dimension's elements: by naru, or by the library. Neither: user memory has the right layout.
  std::optional<BlockCopy> copy;
  std::optional<Primitive> reorder;
  int64_t shares = 1, share_step = 0;
  size_t bytes = 0, share_bytes = 0;  // of a piece in the library's layout (rounded up), of a share
  bool once = false;                  // only one part uses each piece

  bool converts() const { return copy || reorder; }
  size_t scratch_bytes() const { return copy ? copy->scratch_bytes() : reorder->scratch_bytes(); }
  // written: from the library's layout to user memory; else the other way.
  void convert(bool written, char* from, char* to, char* scratch) const {
    void* const memory[] = {from, to};
    if (!copy)
      reorder->run(memory, scratch);
    else
      written ? copy->from_blocks(from, to, scratch) : copy->to_blocks(from, to, scratch);
  }
};

struct Plan {
  bool usable = false;
  std::optional<Primitive> work;
  std::array<Piece, 3> pieces;            // x, w, y
  int64_t images = 1, outs = 1, ins = 1;  // number of slices
  size_t result = 0;                      // index of the piece that is written
};

size_t round_up(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Removes a leading spatial dimension of size 1 from sizes and strides; two remain at least.
struct Spatial {
  size_t from;
  explicit Spatial(const Convolution& q) : from(q.size[0] == 1 && q.result[0] == 1 && q.kernel[0] == 1 && q.padding[0] == 0 ? 1 : 0) {}
  Dims of(const Convolution::Sizes& s) const { return Dims(std::span<const int64_t>(s).subspan(from)); }
  // Those of the channel dimensions, then of the positions.
  Dims array(int64_t a, int64_t b, std::span<const int64_t> positions) const {
    Dims d{a, b};
    for (const int64_t p : positions.subspan(from)) d.push_back(p);
    return d;
  }
};

Dims dense_channels_last(const Dims& sizes) {
  Dims strides(sizes.size(), 0);
  int64_t next = sizes[1];
  strides[1] = 1;
  for (size_t d = sizes.size(); d-- > 2;) strides[d] = next, next *= sizes[d];
  strides[0] = next;
  return strides;
}

// True if the elements are contiguous in channels-last order.
bool is_channels_last(const std::array<int64_t, 5>& strides, const std::array<int64_t, 5>& sizes) {
  const Dims dense = dense_channels_last(Dims(std::span<const int64_t>(sizes)));
  for (size_t d = 0; d < 5; ++d)
    if (sizes[d] != 1 && strides[d] != dense[d]) return false;
  return sizes[1] > 1;
}

// True if no element repeats and no stride is negative.
bool is_plain(const std::array<int64_t, 5>& strides, const std::array<int64_t, 5>& sizes) {
  for (size_t d = 0; d < 5; ++d)
    if (sizes[d] != 1 && strides[d] < 1) return false;
  return true;
}

// Padding at the end that the last position of the result needs; at least 0.
Dims padding_behind(const Convolution& q, const Spatial& spatial) {
  Convolution::Sizes p{};
  for (size_t d = 0; d < 3; ++d)
    p[d] = std::max<int64_t>(0, (q.result[d] - 1) * q.stride[d] + (q.kernel[d] - 1) * q.dilation[d] + 1 - q.size[d] - q.padding[d]);
  return spatial.of(p);
}

void set_slices(const Convolution& q, Plan& p) {
  const int64_t wanted = parts_for(work_of(q));
  constexpr int64_t least = 32;
  const int64_t pieces = q.batch / divisor(q.batch, (q.batch + wanted - 1) / wanted);  // of the images
  if (q.use == Use::Weight) {
    if (q.groups > 1) return;
    // Parts with images of their own multiply all channels together, but their gradients have to be added up.
    if (q.dtype == DType::F32 && pieces > 1 && q.batch * product(q.result) >= kLeastPositions * pieces) {
      p.images = pieces;
      return;
    }
    p.outs = slices_of(q.out, wanted, least);
    p.ins = slices_of(q.in, wanted / p.outs, least);
    return;
  }
  const bool forward = q.use == Use::Forward;
  int64_t& slices = forward ? p.outs : p.ins;
  const int64_t channels = forward ? q.out : q.in;
  // Every part with images of its own reads all weights, every part with channels of its own all images: what is larger is read once.
  const int64_t weights = q.out * q.in * product(q.kernel),
                images = q.batch * (forward ? q.in * product(q.size) : q.out * product(q.result));
  if (q.groups == 1 && weights > images) slices = slices_of(channels, wanted, least);
  if (slices > 1) return;
  p.images = pieces;
  if (q.groups == 1 && p.images < wanted) slices = slices_of(channels, wanted / p.images, least);
}

bool set_piece(Piece& p, const Layout& theirs, DType type, const Dims& sizes, const Dims& strides, int64_t shares, bool written) {
  const Layout ours = dnnl::layout(type, sizes, &strides);
  if (!ours || !theirs) return false;
  p.bytes = round_up(dnnl::bytes_of(theirs));
  if (dnnl::equal(ours, theirs)) return true;
  p.shares = written ? 1 : shares;
  Dims part{sizes[0] / p.shares};
  for (size_t d = 1; d < sizes.size(); ++d) part.push_back(sizes[d]);
  p.share_step = part[0] * strides[0];
  p.share_bytes = dnnl::bytes_of(theirs) / static_cast<size_t>(p.shares);
  const Layout a = dnnl::layout(type, part, &strides), b = p.shares == 1 ? theirs : dnnl::part_of(theirs, part);
  if (const auto blocks = b ? dnnl::blocks_of(b) : std::nullopt)
    if (p.copy = BlockCopy::make(part, strides, *blocks, size_of(type)); p.copy) return true;
  p.reorder = written ? Primitive::reorder(b, a) : Primitive::reorder(a, b);
  return p.reorder.has_value();
}

std::unique_ptr<const Plan> make_plan(const Convolution& q) {
  auto plan = std::make_unique<Plan>();
  Plan& p = *plan;
  set_slices(q, p);
  const Spatial spatial(q);
  const int64_t images = q.batch / p.images, outs = q.groups * q.out / p.outs, ins = q.groups * q.in / p.ins;
  const Dims x = spatial.array(images, ins, q.size), y = spatial.array(images, outs, q.result);
  const auto tail = [](const std::array<int64_t, 5>& a) { return std::span<const int64_t>(a).subspan(2); };
  const Dims xs = spatial.array(q.x.strides[0], q.x.strides[1], tail(q.x.strides)),
             ys = spatial.array(q.y.strides[0], q.y.strides[1], tail(q.y.strides));
  Dims w = spatial.array(q.out / p.outs, q.in / p.ins, q.kernel), ws = spatial.array(q.w.strides[0], q.w.strides[1], tail(q.w.strides));
  if (q.groups > 1) {
    w.insert(0, q.groups);
    ws.insert(0, q.out * q.w.strides[0]);
  }
  const bool last = is_channels_last(q.x.strides, q.sizes_of_x()) && is_channels_last(q.y.strides, q.sizes_of_y());
  const Dims xl = dense_channels_last(x), yl = dense_channels_last(y);
  dnnl::ConvolutionLayouts c;
  c.use = q.use;
  c.x = dnnl::layout(q.dtype, x, last ? &xl : nullptr), c.y = dnnl::layout(q.dtype, y, last ? &yl : nullptr);
  c.w = dnnl::layout(q.dtype, w, nullptr);
  const Dims one{1}, channels{outs};
  if (q.bias && q.use == Use::Forward) c.bias = dnnl::layout(q.dtype, channels, &one);
  c.stride = spatial.of(q.stride), c.dilation = spatial.of(q.dilation), c.before = spatial.of(q.padding),
  c.behind = padding_behind(q, spatial);
  p.work = Primitive::convolution(c);
  // There may be no such kernel for channels_last, as for depthwise forward in oneDNN 2.6 (naru has one). Copies to the library's own layout are
  // cheap beside naru's general kernel.
  if (!p.work && last && (q.in > 1 || q.out > 1)) {
    c.x = dnnl::layout(q.dtype, x, nullptr), c.y = dnnl::layout(q.dtype, y, nullptr);
    p.work = Primitive::convolution(c);
  }
  if (!p.work) return plan;
  p.result = q.use == Use::Forward ? 2 : q.use == Use::Input ? 0 : 1;
  auto& [px, pw, py] = p.pieces;
  px.across = py.across = p.images, px.down = pw.down = p.ins, pw.across = py.down = p.outs;
  px.once = p.outs == 1, pw.once = p.images == 1, py.once = p.ins == 1;
  px.across_step = images * q.x.strides[0], px.down_step = ins * q.x.strides[1];
  py.across_step = images * q.y.strides[0], py.down_step = outs * q.y.strides[1];
  pw.across_step = outs * q.w.strides[0], pw.down_step = ins * q.w.strides[1];
  const int64_t shares = q.use == Use::Weight ? images / divisor(images, (images + 7) / 8) : 1;
  p.usable = set_piece(px, p.work->layout_of(0), q.dtype, x, xs, shares, p.result == 0) &&
             set_piece(pw, p.work->layout_of(1), q.dtype, w, ws, 1, p.result == 1) &&
             set_piece(py, p.work->layout_of(2), q.dtype, y, ys, shares, p.result == 2);
  if (q.use == Use::Weight && p.images * p.outs * p.ins == 1) px.once = py.once = false;
  return plan;
}

// The cached plan for such a convolution; never null.
std::shared_ptr<const Plan> plan_of(const Convolution& q) {
  static std::mutex mutex;
  static auto* const plans = new std::map<Key, std::shared_ptr<const Plan>>;
  const Key key(q);
  {
    const std::lock_guard lock(mutex);
    if (const auto known = plans->find(key); known != plans->end()) return known->second;
  }
  const std::shared_ptr<const Plan> made = make_plan(q);
  const std::lock_guard lock(mutex);
  if (plans->size() >= kMostPlans) plans->clear();
  return plans->emplace(key, made).first->second;
}

class Run {
 public:
  Run(const Convolution& q, const Plan& plan) : q_(q), plan_(plan), item_(size_of(q.dtype)) {}

  void run() {
    const double time = kTime * static_cast<double>(work_of(q_));
    reorder_shared(time / 8);
    const Plan& p = plan_;
    if (q_.use == Use::Weight && p.images > 1) addends_ = shared_memory(static_cast<size_t>(p.images) * p.pieces[1].bytes);
    parallel_for(
        p.images * p.outs * p.ins, [this](int64_t i) { part(i); }, time);
    if (addends_) put_sum();
  }

 private:
  char* user(const Array& a, int64_t elements) const { return static_cast<char*>(a.data) + elements * static_cast<int64_t>(item_); }
  const Array& array(size_t i) const { return i == 0 ? q_.x : i == 1 ? q_.w : q_.y; }
  char* user_piece(size_t i, int64_t across, int64_t down) const {
    const Piece& p = plan_.pieces[i];
    return user(array(i), across * p.across_step + down * p.down_step);
  }
  bool is_shared(size_t i) const { return plan_.pieces[i].converts() && !plan_.pieces[i].once && i != plan_.result; }

  // A buffer that the calling thread keeps up to kMost bytes: allocating fresh memory costs as much as the reorder.
  char* shared_memory(size_t bytes) {
    struct Kept {
      Buffer memory;
      size_t bytes = 0;
    };
    constexpr size_t kMost = size_t{64} << 20;
    if (bytes > kMost) {
      large_ = make_buffer({static_cast<int64_t>(bytes)}, 1);
      return large_.get();
    }
    Kept& kept = per_thread<Kept>();
    if (kept.bytes < bytes) {
      kept = {};
      kept.memory = make_buffer({static_cast<int64_t>(bytes)}, 1), kept.bytes = bytes;
    }
    return kept.memory.get();
  }

  static void reorder(const Piece& p, char* from, char* to, int64_t from_step, int64_t to_step, char* scratch) {
    for (int64_t s = 0; s < p.shares; ++s) p.convert(false, from + s * from_step, to + s * to_step, scratch);
  }

  // The sum of the gradients of all parts, in order, to user memory.
  void put_sum() {
    const Piece& w = plan_.pieces[1];
    const auto count = static_cast<int64_t>(w.bytes / sizeof(float));
    float* const sum = reinterpret_cast<float*>(addends_);
    split(count, 0.1 * static_cast<double>(count * plan_.images), 1, [&](int64_t begin, int64_t end) {
      for (int64_t image = 1; image < plan_.images; ++image) {
        const float* const more = sum + image * count;
        for (int64_t i = begin; i < end; ++i) sum[i] += more[i];
      }
    });
    if (w.converts())
      w.convert(true, addends_, user_piece(1, 0, 0), scratch(w.scratch_bytes() + 64));
    else
      std::memcpy(user_piece(1, 0, 0), addends_, static_cast<size_t>(product(q_.sizes_of_w())) * item_);
  }

  // Reorders the operands that several parts read, before the parts run.
  void reorder_shared(double time) {
    int64_t units[3] = {};
    size_t places[3] = {}, bytes = 0;
    for (size_t i = 0; i < 3; ++i) {
      const Piece& p = plan_.pieces[i];
      if (!is_shared(i)) continue;
      units[i] = p.across * p.down * p.shares;
      places[i] = bytes, bytes += static_cast<size_t>(p.across * p.down) * p.bytes;
    }
    if (bytes == 0) return;
    char* const memory = shared_memory(bytes);
    for (size_t i = 0; i < 3; ++i) shared_[i] = memory + places[i];
    parallel_for(
        units[0] + units[1] + units[2],
        [&](int64_t unit) {
          size_t i = 0;
          while (unit >= units[i]) unit -= units[i++];
          const Piece& p = plan_.pieces[i];
          const int64_t piece = unit / p.shares, share = unit % p.shares;
          char* const from = user_piece(i, piece / p.down, piece % p.down) + share * p.share_step * static_cast<int64_t>(item_);
          char* const to = shared_[i] + static_cast<size_t>(piece) * p.bytes + static_cast<size_t>(share) * p.share_bytes;
          p.convert(false, from, to, scratch(p.scratch_bytes() + 64));
        },
        time);
  }

  void part(int64_t number) {
    const Plan& p = plan_;
    const int64_t image = number / (p.outs * p.ins), out = number / p.ins % p.outs, in = number % p.ins;
    const std::array<std::array<int64_t, 2>, 3> places{{{image, in}, {out, in}, {image, out}}};
    size_t room = p.work->scratch_bytes(), used = 0;
    for (size_t i = 0; i < 3; ++i)
      if (p.pieces[i].converts()) {
        room = std::max(room, p.pieces[i].scratch_bytes());
        if (!is_shared(i) && !(addends_ && i == p.result)) used += p.pieces[i].bytes;
      }
    char* const memory = scratch(used + room + 64);
    char* const work = memory + used;
    std::array<void*, 4> arguments{};
    size_t at = 0;
    for (size_t i = 0; i < 3; ++i) {
      const Piece& piece = p.pieces[i];
      const auto [across, down] = places[i];
      char* const theirs = user_piece(i, across, down);
      if (addends_ && i == p.result) {
        arguments[i] = addends_ + static_cast<size_t>(image) * piece.bytes;
      } else if (!piece.converts()) {
        arguments[i] = theirs;
      } else if (is_shared(i)) {
        arguments[i] = shared_[i] + static_cast<size_t>(across * piece.down + down) * piece.bytes;
      } else {
        arguments[i] = memory + at;
        at += piece.bytes;
        if (i != p.result)
          reorder(piece, theirs, static_cast<char*>(arguments[i]), piece.share_step * static_cast<int64_t>(item_),
                  static_cast<int64_t>(piece.share_bytes), work);
      }
    }
    const bool bias = q_.bias && q_.use == Use::Forward;
    if (bias)
      arguments[3] = static_cast<char*>(const_cast<void*>(q_.bias)) + static_cast<size_t>(out * (q_.groups * q_.out / p.outs)) * item_;
    p.work->run(std::span<void* const>(arguments).first(bias ? 4 : 3), work);
    const Piece& result = p.pieces[p.result];
    if (result.converts() && !addends_) {
      const auto [across, down] = places[p.result];
      result.convert(true, static_cast<char*>(arguments[p.result]), user_piece(p.result, across, down), work);
    }
  }

  const Convolution& q_;
  const Plan& plan_;
  const size_t item_;
  std::array<char*, 3> shared_{};
  char* addends_ = nullptr;  // gradients of the weights of each part of the images
  Buffer large_;
};

// True if the processor multiplies bfloat16; if the library would have to convert, computing in float32 is as fast.
bool multiplies_bfloat16() {
#if defined(__x86_64__)
  static const bool does = __builtin_cpu_supports("avx512bf16");
  return does;
#else
  return false;
#endif
}

// Floats that a vector holds, and so the channels in a block of the library's layout.
int64_t lanes() { return wide_level() == 2 ? 16 : wide_level() == 1 ? 8 : 4; }

// Whether the library is expected to be quicker than naru's own kernel. Both multiply at the processor's speed; what they do besides decides.
// naru's copies every window into columns, the library converts operands to its layout. So it is the library, but where its calls cost more than the
// work, and where the layout of its images is mostly channels that do not exist, which it multiplies all the same. By the sizes and the length of
// vectors alone: an answer that was measured would change from run to run, and the bits with it.
bool is_quicker(const Convolution& q) {
  constexpr int64_t kLeast = 1 << 15;
  if (work_of(q) < kLeast || (q.dtype == DType::BF16 && !multiplies_bfloat16())) return false;
  if (q.use != Use::Input || q.groups > 1 || is_channels_last(q.y.strides, q.sizes_of_y())) return true;
  const int64_t n = lanes(), blocked = (q.out + n - 1) / n * n;
  return blocked < 3 * q.out || q.in < n;
}

}  // namespace

bool convolve_by_onednn(const Convolution& q) {
  if (LibraryCall::process_ends()) return false;  // the library is unloaded, or is about to be
  if (q.precision.deterministic || (q.dtype != DType::F32 && q.dtype != DType::BF16) || !is_quicker(q)) return false;
  if (!products().convolutions) return false;
  if (q.bias && (q.use != Use::Forward || (q.bias_stride != 1 && q.groups * q.out != 1))) return false;
  if (!is_plain(q.x.strides, q.sizes_of_x()) || !is_plain(q.w.strides, q.sizes_of_w()) || !is_plain(q.y.strides, q.sizes_of_y()))
    return false;
  const std::shared_ptr<const Plan> plan = plan_of(q);
  if (!plan->usable) return false;
  Run(q, *plan).run();
  return true;
}

}  // namespace naru::cpu
