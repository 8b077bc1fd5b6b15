#include "backends/cpu/libraries/onednn_primitives.h"

#include <atomic>
#include <string_view>
#include <type_traits>

#include "backends/cpu/libraries/library_call.h"
#include "backends/cpu/libraries/onednn.h"
#include "naru/error.h"

namespace naru::cpu::dnnl {
namespace {

// The library's enumerators, the same in both versions.
enum : int {
  kF32 = 3,
  kBf16 = 2,
  kAny = 1,  // tag of a layout that the library chooses
  kForward = 64,
  kDirect = 1,
  kUserScratch = 1,
  kImplementation = 8,  // first of the query codes
  kStrides = 14,
  kDimsCount = 256,
  kPaddedDims = 260,
  kFormatKind = 262,
  kInnerCount = 263,
  kInnerSizes = 264,
  kInnerDimensions = 265,
  kSrc = 129,
  kDiffSrc = 130,
  kWeights = 131,
  kDiffWeights = 132,
  kDst = 133,
  kDiffDst = 134,
  kScratch = 136,
  kArgFrom = 1,
  kArgTo = 17,
  kArgSrc = 1,
  kArgDst = 17,
  kArgWeights = 33,
  kArgBias = 41,
  kArgScratch = 80,
  kArgDiffSrc = 129,
  kArgDiffDst = 145,
  kArgDiffWeights = 161,
};
constexpr size_t kMostDims = 12;
using Numbers = std::array<int64_t, kMostDims>;
// oneDNN 2's structs have 696 and 5,976 bytes.
constexpr size_t kLayoutBytes = 1024, kConvolutionBytes = 8192;

struct ExecArgument {
  int what;
  void* memory;
};

struct Functions {
  int (*engine_create)(void**, int kind, size_t index);
  int (*stream_create)(void**, void* engine, unsigned flags);
  int (*stream_destroy)(void*);
  int (*memory_create)(void**, const void* layout, void* engine, void* data);
  int (*memory_destroy)(void*);
  int (*memory_desc_equal)(const void*, const void*);
  size_t (*memory_desc_get_size)(const void*);
  int (*primitive_attr_create)(void**);
  int (*primitive_attr_set_scratchpad_mode)(void*, int);
  int (*primitive_desc_destroy)(void*);
  int (*primitive_desc_query)(const void*, int what, int index, void* result);
  const void* (*primitive_desc_query_md)(const void*, int what, int index);
  int (*primitive_create)(void**, const void* description);
  int (*primitive_destroy)(void*);
  int (*primitive_execute)(const void*, void* stream, int count, const ExecArgument*);
  int (*reorder_primitive_desc_create)(void**, const void* from, void*, const void* to, void*, const void* attributes);
  // oneDNN 2.
  int (*memory_desc_init_by_strides)(void*, int dims, const int64_t* sizes, int type, const int64_t* strides);
  int (*memory_desc_init_by_tag)(void*, int dims, const int64_t* sizes, int type, int tag);
  int (*memory_desc_init_submemory)(void*, const void* whole, const int64_t* sizes, const int64_t* offsets);
  int (*dilated_convolution_forward_desc_init)(void*, int kind, int algorithm, const void* x, const void* w, const void* bias,
                                               const void* y, const int64_t* stride, const int64_t* dilation, const int64_t* before,
                                               const int64_t* behind);
  int (*dilated_convolution_backward_data_desc_init)(void*, int algorithm, const void* x, const void* w, const void* y,
                                                     const int64_t* stride, const int64_t* dilation, const int64_t* before,
                                                     const int64_t* behind);
  int (*dilated_convolution_backward_weights_desc_init)(void*, int algorithm, const void* x, const void* w, const void* bias, const void* y,
                                                        const int64_t* stride, const int64_t* dilation, const int64_t* before,
                                                        const int64_t* behind);
  int (*primitive_desc_create)(void**, const void* convolution, const void* attributes, void* engine, const void* forward);
  // oneDNN 3.
  int (*memory_desc_create_with_strides)(void**, int dims, const int64_t* sizes, int type, const int64_t* strides);
  int (*memory_desc_create_with_tag)(void**, int dims, const int64_t* sizes, int type, int tag);
  int (*memory_desc_create_submemory)(void**, const void* whole, const int64_t* sizes, const int64_t* offsets);
  int (*memory_desc_destroy)(void*);
  int (*memory_desc_query)(const void*, int what, void* answer);
  int (*convolution_forward_primitive_desc_create)(void**, void* engine, int kind, int algorithm, const void* x, const void* w,
                                                   const void* bias, const void* y, const int64_t* stride, const int64_t* dilation,
                                                   const int64_t* before, const int64_t* behind, const void* attributes);
  int (*convolution_backward_data_primitive_desc_create)(void**, void* engine, int algorithm, const void* x, const void* w, const void* y,
                                                         const int64_t* stride, const int64_t* dilation, const int64_t* before,
                                                         const int64_t* behind, const void* forward, const void* attributes);
  int (*convolution_backward_weights_primitive_desc_create)(void**, void* engine, int algorithm, const void* x, const void* w,
                                                            const void* bias, const void* y, const int64_t* stride, const int64_t* dilation,
                                                            const int64_t* before, const int64_t* behind, const void* forward,
                                                            const void* attributes);
};

struct Library : Functions {
  bool handles = false;  // oneDNN 3
  bool complete = true;
  void *engine = nullptr, *attributes = nullptr;

  Library() : Functions{} {
    const auto find = [this](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(onednn_function(name));
      complete = complete && function;
    };
#define NARU_FIND(name) find(name, "dnnl_" #name)
    NARU_FIND(engine_create), NARU_FIND(stream_create), NARU_FIND(stream_destroy), NARU_FIND(memory_create), NARU_FIND(memory_destroy);
    NARU_FIND(memory_desc_equal), NARU_FIND(memory_desc_get_size), NARU_FIND(primitive_attr_create);
    NARU_FIND(primitive_attr_set_scratchpad_mode), NARU_FIND(primitive_desc_destroy), NARU_FIND(primitive_desc_query);
    NARU_FIND(primitive_desc_query_md), NARU_FIND(primitive_create), NARU_FIND(primitive_destroy), NARU_FIND(primitive_execute);
    NARU_FIND(reorder_primitive_desc_create);
    handles = onednn_major() >= 3;
    if (handles) {
      NARU_FIND(memory_desc_create_with_strides), NARU_FIND(memory_desc_create_with_tag), NARU_FIND(memory_desc_create_submemory);
      NARU_FIND(memory_desc_destroy), NARU_FIND(convolution_forward_primitive_desc_create);
      NARU_FIND(convolution_backward_data_primitive_desc_create), NARU_FIND(convolution_backward_weights_primitive_desc_create);
      NARU_FIND(memory_desc_query);
    } else {
      NARU_FIND(memory_desc_init_by_strides), NARU_FIND(memory_desc_init_by_tag), NARU_FIND(memory_desc_init_submemory);
      NARU_FIND(dilated_convolution_forward_desc_init), NARU_FIND(dilated_convolution_backward_data_desc_init);
      NARU_FIND(dilated_convolution_backward_weights_desc_init), NARU_FIND(primitive_desc_create);
    }
#undef NARU_FIND
    constexpr int kCpu = 1;
    complete = complete && onednn_major() >= 2 && onednn_major() <= 3 && engine_create(&engine, kCpu, 0) == 0 &&
               primitive_attr_create(&attributes) == 0 && primitive_attr_set_scratchpad_mode(attributes, kUserScratch) == 0;
  }
};

const Library& lib() {
  static const auto* const one = new Library;
  return *one;
}

Numbers numbers(const Dims& dims, int64_t less = 0) {
  Numbers all{};
  for (size_t i = 0; i < dims.size(); ++i) all[i] = dims[i] - less;
  return all;
}

std::shared_ptr<void> owned(void* made, int (*destroy)(void*)) {
  return {made, [destroy](void* p) { destroy(p); }};
}

// A layout from one of two functions: `fill` fills a struct, `make` creates a handle.
template <class Struct, class Handle>
Layout layout_by(Struct fill, Handle make) {
  if (lib().handles) {
    void* made = nullptr;
    return make(&made) == 0 ? owned(made, lib().memory_desc_destroy) : nullptr;
  }
  const std::shared_ptr<void> bytes(new (std::align_val_t(64)) char[kLayoutBytes](),
                                    [](void* p) { ::operator delete[](p, std::align_val_t(64)); });
  return fill(bytes.get()) == 0 ? bytes : nullptr;
}

// The roles of the arrays in one direction of a convolution.
struct Direction {
  struct Array {
    int query, argument;
  } x, w, y;
};
constexpr Direction kDirections[] = {  // in the order of Use
    {{kSrc, kArgSrc}, {kWeights, kArgWeights}, {kDst, kArgDst}},
    {{kDiffSrc, kArgDiffSrc}, {kWeights, kArgWeights}, {kDiffDst, kArgDiffDst}},
    {{kSrc, kArgSrc}, {kDiffWeights, kArgDiffWeights}, {kDiffDst, kArgDiffDst}}};

// The descriptor of a convolution; null if the library has none.
std::shared_ptr<void> describe(const ConvolutionLayouts& c, ir::Convolution::Use use, const void* forward) {
  using Use = ir::Convolution::Use;
  const Library& l = lib();
  const Numbers s = numbers(c.stride), d = numbers(c.dilation, 1), a = numbers(c.before), b = numbers(c.behind);
  const void *x = c.x.get(), *w = c.w.get(), *y = c.y.get(), *bias = use == Use::Forward ? c.bias.get() : nullptr;
  void* made = nullptr;
  int status = 0;
  if (l.handles) {
    switch (use) {
      case Use::Forward:
        status = l.convolution_forward_primitive_desc_create(&made, l.engine, kForward, kDirect, x, w, bias, y, s.data(), d.data(),
                                                             a.data(), b.data(), l.attributes);
        break;
      case Use::Input:
        status = l.convolution_backward_data_primitive_desc_create(&made, l.engine, kDirect, x, w, y, s.data(), d.data(), a.data(),
                                                                   b.data(), forward, l.attributes);
        break;
      case Use::Weight:
        status = l.convolution_backward_weights_primitive_desc_create(&made, l.engine, kDirect, x, w, nullptr, y, s.data(), d.data(),
                                                                      a.data(), b.data(), forward, l.attributes);
        break;
    }
  } else {
    alignas(64) char convolution[kConvolutionBytes] = {};
    switch (use) {
      case Use::Forward:
        status =
            l.dilated_convolution_forward_desc_init(convolution, kForward, kDirect, x, w, bias, y, s.data(), d.data(), a.data(), b.data());
        break;
      case Use::Input:
        status = l.dilated_convolution_backward_data_desc_init(convolution, kDirect, x, w, y, s.data(), d.data(), a.data(), b.data());
        break;
      case Use::Weight:
        status = l.dilated_convolution_backward_weights_desc_init(convolution, kDirect, x, w, nullptr, y, s.data(), d.data(), a.data(),
                                                                  b.data());
        break;
    }
    if (status == 0) status = l.primitive_desc_create(&made, convolution, l.attributes, l.engine, forward);
  }
  return status == 0 ? owned(made, l.primitive_desc_destroy) : nullptr;
}

// True for specialised code: neither a plain loop ("ref:any") nor im2col with a product ("gemm:jit").
bool is_own_code(const void* description) {
  const char* name = nullptr;
  if (lib().primitive_desc_query(description, kImplementation, 0, &name) != 0 || !name) return false;
  const std::string_view text = name;
  return text.starts_with("jit") || text.starts_with("brg");
}

}  // namespace

bool available() { return lib().complete; }

Layout layout(DType type, const Dims& sizes, const Dims* strides) {
  const Library& l = lib();
  const Numbers n = numbers(sizes), s = strides ? numbers(*strides) : Numbers{};
  const int dims = static_cast<int>(sizes.size()), number = type == DType::BF16 ? kBf16 : kF32;
  if (strides)
    return layout_by([&](void* p) { return l.memory_desc_init_by_strides(p, dims, n.data(), number, s.data()); },
                     [&](void** p) { return l.memory_desc_create_with_strides(p, dims, n.data(), number, s.data()); });
  return layout_by([&](void* p) { return l.memory_desc_init_by_tag(p, dims, n.data(), number, kAny); },
                   [&](void** p) { return l.memory_desc_create_with_tag(p, dims, n.data(), number, kAny); });
}

Layout part_of(const Layout& whole, const Dims& sizes) {
  const Numbers n = numbers(sizes), zero{};
  return layout_by([&](void* p) { return lib().memory_desc_init_submemory(p, whole.get(), n.data(), zero.data()); },
                   [&](void** p) { return lib().memory_desc_create_submemory(p, whole.get(), n.data(), zero.data()); });
}

bool equal(const Layout& a, const Layout& b) { return lib().memory_desc_equal(a.get(), b.get()) != 0; }
size_t bytes_of(const Layout& a) { return lib().memory_desc_get_size(a.get()); }

std::optional<BlockLayout> blocks_of(const Layout& a) {
  constexpr int kBlocked = 2;
  int dims = 0, kind = 0, count = 0;
  const int64_t *sizes = nullptr, *strides = nullptr, *inner = nullptr, *dimensions = nullptr;
  if (lib().handles) {
    const auto ask = [&](int what, void* answer) { return lib().memory_desc_query(a.get(), what, answer) == 0; };
    if (!lib().memory_desc_query || !ask(kDimsCount, &dims) || !ask(kFormatKind, &kind) || kind != kBlocked || !ask(kPaddedDims, &sizes) ||
        !ask(kStrides, &strides) || !ask(kInnerCount, &count) || !ask(kInnerSizes, &inner) || !ask(kInnerDimensions, &dimensions))
      return {};
  } else {
    // The public struct of oneDNN 2.
    struct Description {
      int dims;
      int64_t sizes[kMostDims];
      int type;
      int64_t padded[kMostDims], padding[kMostDims], offset;
      int kind;
      int64_t strides[kMostDims];
      int count;
      int64_t inner[kMostDims], dimensions[kMostDims];
    };
    const auto& d = *static_cast<const Description*>(a.get());
    dims = d.dims, kind = d.kind, count = d.count, sizes = d.padded, strides = d.strides, inner = d.inner, dimensions = d.dimensions;
    if (kind != kBlocked || d.offset != 0) return {};
  }
  BlockLayout b{Dims(std::span(sizes, static_cast<size_t>(dims))), Dims(std::span(strides, static_cast<size_t>(dims))), {}};
  for (int i = 0; i < count; ++i) b.inner.push_back({inner[i], static_cast<size_t>(dimensions[i])});
  return b;
}

bool Primitive::make(std::shared_ptr<void> description) {
  const Library& l = lib();
  void* made = nullptr;
  if (l.primitive_create(&made, description.get()) != 0) return false;
  made_ = owned(made, l.primitive_destroy);
  description_ = std::move(description);
  scratch_ = query(kScratch);
  scratch_bytes_ = scratch_ ? dnnl::bytes_of(scratch_) : 0;
  return true;
}

Layout Primitive::query(int what) const { return {description_, lib().primitive_desc_query_md(description_.get(), what, 0)}; }

std::optional<Primitive> Primitive::reorder(const Layout& from, const Layout& to) {
  const Library& l = lib();
  if (!from || !to) return std::nullopt;
  const OneOpenMpThread one;  // primitives run with the number of threads at their creation
  Primitive p;
  void* description = nullptr;
  if (l.reorder_primitive_desc_create(&description, from.get(), l.engine, to.get(), l.engine, l.attributes) != 0) return std::nullopt;
  if (!p.make(owned(description, l.primitive_desc_destroy))) return std::nullopt;
  p.arguments_[0] = {kArgFrom, from}, p.arguments_[1] = {kArgTo, to};
  return p;
}

std::optional<Primitive> Primitive::convolution(const ConvolutionLayouts& c) {
  using Use = ir::Convolution::Use;
  if (!c.x || !c.w || !c.y) return std::nullopt;
  const OneOpenMpThread one;
  std::shared_ptr<void> description = describe(c, Use::Forward, nullptr);
  // Gradients need the forward descriptor as a hint.
  if (description && c.use != Use::Forward) description = describe(c, c.use, description.get());
  if (!description || !is_own_code(description.get())) return std::nullopt;
  Primitive p;
  if (!p.make(std::move(description))) return std::nullopt;
  const Direction& d = kDirections[static_cast<size_t>(c.use)];
  const Direction::Array arrays[] = {d.x, d.w, d.y};
  for (size_t i = 0; i < 3; ++i) p.arguments_[i] = {arrays[i].argument, p.query(arrays[i].query)};
  if (c.bias) p.arguments_[3] = {kArgBias, c.bias};
  return p;
}

void Primitive::run(std::span<void* const> memory, void* scratch) const {
  const Library& l = lib();
  const OneOpenMpThread one;
  static constinit std::atomic<bool> known{false};
  const LibraryCall call(known);
  std::array<ExecArgument, 5> arguments{};
  size_t count = 0;
  void* stream = nullptr;
  int status = l.stream_create(&stream, l.engine, 1);
  const auto add = [&](const Argument& a, void* data) {
    if (status == 0 && a.layout) {
      status = l.memory_create(&arguments[count].memory, a.layout.get(), l.engine, data);
      arguments[count].what = a.what;
      count += status == 0;
    }
  };
  for (size_t i = 0; i < memory.size(); ++i) add(arguments_[i], memory[i]);
  if (scratch_bytes_ > 0) add({kArgScratch, scratch_}, scratch);
  if (status == 0) status = l.primitive_execute(made_.get(), stream, static_cast<int>(count), arguments.data());
  for (size_t i = 0; i < count; ++i) l.memory_destroy(arguments[i].memory);
  if (stream) l.stream_destroy(stream);
  if (status != 0) throw RuntimeError("convolution: oneDNN failed with status {}", status);
}

}  // namespace naru::cpu::dnnl
