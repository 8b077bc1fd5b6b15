// Convolutions: an item for each result, which goes through its window (no columns are made), in the order that ir::Convolution names; so the bits
// are those of cpu's own kernel.
#include <fmt/format.h>

#include <algorithm>

#include "naru/error.h"
#include "render/c/expressions.h"
#include "render/c/launch.h"

namespace naru::render::c {
namespace {

using ir::Convolution;
using ir::VType;
using Use = Convolution::Use;

constexpr int kGroup = 64;
// Results of a looping item.
constexpr int64_t kEach = 256;

// The kernel's numbers, by the names they have in its text; {} stands for x, y and z, the spatial dimensions.
constexpr const char* kSingle[] = {"total", "each", "batch", "groups", "in", "out"};
constexpr const char* kSpatial[] = {"size_", "result_", "kernel_", "stride_", "padding_", "dilation_"};
constexpr const char* kStrided[] = {"x", "w", "y"};

const char* arithmetic(VType t) noexcept { return t == VType::I32 ? "u32" : t == VType::I64 ? "u64" : name_of(t); }

struct Text {
  const Convolution& q;
  const Target& target;
  VType type;
  bool wide;

  Text(const Convolution& c, const Target& t) : q(c), target(t), type(ir::vtype_of(c.dtype)) {
    const auto reach = [](const Convolution::Array& a, const std::array<int64_t, 5>& sizes) {
      int64_t n = 0;
      for (size_t d = 0; d < 5; ++d) n += sizes[d] * std::abs(a.strides[d]);
      return n;
    };
    int64_t most = std::max({reach(q.x, q.sizes_of_x()), reach(q.w, q.sizes_of_w()), reach(q.y, q.sizes_of_y()), total()});
    for (size_t d = 0; d < 3; ++d)
      most = std::max(most, q.size[d] + q.padding[d] + q.kernel[d] * q.dilation[d] + q.result[d] * q.stride[d]);
    wide = most > (int64_t{1} << 29);
  }

  int64_t total() const { return product(q.use == Use::Forward ? q.sizes_of_y() : q.use == Use::Input ? q.sizes_of_x() : q.sizes_of_w()); }

  std::string load(const char* array, const char* at) const {
    return fmt::format("({})({})", arithmetic(type), loaded(q.dtype, fmt::format("{}[{}]", array, at)));
  }

  std::string step(const std::string& left, const std::string& right, const std::string& condition) const {
    const std::string sum = is_float(type) ? fmt::format("fma_{}(v, {}, s)", name_of(type), right) : fmt::format("s + v * {}", right);
    return fmt::format("const {0} v = {1} ? {2} : 0;\n          s = {3};\n", arithmetic(type), condition, left, sum);
  }

  // Constants with the numbers' names.
  std::string names() const {
    int at = 0;
    std::string text;
    const auto name = [&](const std::string& n) { text += fmt::format("  const I {} = a.d[{}];\n", n, at++); };
    for (const char* n : kSingle) name(n);
    for (const char* n : kSpatial)
      for (const char* d : {"x", "y", "z"}) name(n + std::string(d));
    for (const char* n : kStrided)
      for (int d = 0; d < 5; ++d) name(fmt::format("{}_{}", n, d));
    name("bias_step");
    return text;
  }

  Arguments arguments(int64_t each) const {
    Arguments a(4, wide);
    for (const int64_t v : {total(), each, q.batch, q.groups, q.in, q.out}) a.add(v);
    for (const Convolution::Sizes* s : {&q.size, &q.result, &q.kernel, &q.stride, &q.padding, &q.dilation})
      for (const int64_t v : *s) a.add(v);
    for (const Convolution::Array* s : {&q.x, &q.w, &q.y})
      for (const int64_t v : s->strides) a.add(v);
    a.add(q.bias_stride);
    return a;
  }

  std::string body() const;
  std::string text() const;
};

// The constants i0 ... i4: where result number `i` stands among five sizes.
std::string place(const char* const (&sizes)[5]) {
  std::string text = "    I rest = i;\n";
  for (int d = 4; d > 0; --d) text += fmt::format("    const I i{0} = rest % {1};\n    rest /= {1};\n", d, sizes[d]);
  return text + "    const I i0 = rest;\n";
}

// Loops over a kernel's places around a step.
std::string over_kernel(const std::string& step) {
  return "        for (I kx = 0; kx < kernel_x; ++kx)\n        for (I ky = 0; ky < kernel_y; ++ky)\n        for (I kz = 0; kz < kernel_z; "
         "++kz) {\n" +
         step + "        }\n";
}

// Element i of x that y's element p meets at place k of the kernel.
std::string met(const char* p, const char* k) {
  std::string text;
  for (int d = 0; d < 3; ++d)
    text += fmt::format("          const I a{0} = {1} * stride_{0} - padding_{0} + {2} * dilation_{0};\n", "xyz"[d],
                        fmt::format("{}{}", p, "xyz"[d]), fmt::format("{}{}", k, "xyz"[d]));
  return text;
}

constexpr const char* kInside = "ax >= 0 && ax < size_x && ay >= 0 && ay < size_y && az >= 0 && az < size_z";

std::string Text::body() const {
  if (q.use == Use::Forward) {
    return place({"batch", "(groups * out)", "result_x", "result_y", "result_z"}) +
           "    const I px = i2, py = i3, pz = i4, first = i1 / out * in;\n    for (I c = 0; c < in; ++c)\n" +
           over_kernel(met("p", "k") + "          " +
                       step(load("m0", "i0 * x_0 + (first + c) * x_1 + ax * x_2 + ay * x_3 + az * x_4"),
                            load("m1", "i1 * w_0 + c * w_1 + kx * w_2 + ky * w_3 + kz * w_4"), kInside));
  }
  if (q.use == Use::Input) {
    std::string at;
    for (const char d : {'x', 'y', 'z'})
      at += fmt::format("          const I t{0} = p{0} + padding_{0} - k{0} * dilation_{0}, a{0} = t{0} / stride_{0};\n", d);
    return place({"batch", "(groups * in)", "size_x", "size_y", "size_z"}) +
           "    const I px = i2, py = i3, pz = i4, first = i1 / in * out, own = i1 % in;\n    for (I c = 0; c < out; ++c)\n" +
           over_kernel(at + "          if (tx % stride_x != 0 || ty % stride_y != 0 || tz % stride_z != 0) continue;\n          " +
                       step(load("m0", "i0 * y_0 + (first + c) * y_1 + ax * y_2 + ay * y_3 + az * y_4"),
                            load("m1", "(first + c) * w_0 + own * w_1 + kx * w_2 + ky * w_3 + kz * w_4"),
                            "ax >= 0 && ax < result_x && ay >= 0 && ay < result_y && az >= 0 && az < result_z"));
  }
  return place({"(groups * out)", "in", "kernel_x", "kernel_y", "kernel_z"}) +
         "    const I kx = i2, ky = i3, kz = i4, first = i0 / out * in;\n    for (I b = 0; b < batch; ++b)\n"
         "        for (I px = 0; px < result_x; ++px)\n        for (I py = 0; py < result_y; ++py)\n        for (I pz = 0; pz < result_z; "
         "++pz) {\n" +
         met("p", "k") + "          " +
         step(load("m0", "b * x_0 + (first + i1) * x_1 + ax * x_2 + ay * x_3 + az * x_4"),
              load("m1", "b * y_0 + i0 * y_1 + px * y_2 + py * y_3 + pz * y_4"), kInside) +
         "        }\n";
}

std::string Text::text() const {
  const char* const s = stored(q.dtype);
  Head h;
  h.memory = {s, s, "=" + std::string(s), s};
  h.numbers = 6 + 18 + 15 + 1;
  h.group = target.loops ? 1 : kGroup;
  h.wide = wide;
  std::string text = opening(h, target) + names();
  text += target.loops ? "  const I last = ((I)GROUP + 1) * each < total ? ((I)GROUP + 1) * each : total;\n  for (I i = (I)GROUP * each; i "
                         "< last; ++i) {\n"
                       : fmt::format("  const I i = (I)GROUP * {} + ITEM;\n  if (i < total) {{\n", kGroup);
  text += fmt::format("    {} s = 0;\n", arithmetic(type)) + body();
  const std::string sum = q.bias ? load("m3", "i1 * bias_step") + " + s" : std::string("s");
  constexpr const char* kWritten[] = {"y", "x", "w"};
  const char* to = kWritten[static_cast<int>(q.use)];
  text += fmt::format("    m2[i0 * {0}_0 + i1 * {0}_1 + i2 * {0}_2 + i3 * {0}_3 + i4 * {0}_4] = {1};\n  }}\n}}\n", to,
                      converted(type, q.dtype, fmt::format("(({})({}))", name_of(type), sum), target));
  return complete(target, text);
}

}  // namespace

void run(const Convolution& q, Launcher& launcher) {
  if (q.dtype == DType::Bool) throw RuntimeError("convolution: wanted numbers, got bool; convert them first");
  const Target& target = launcher.target();
  const Text text(q, target);
  const int64_t each = target.loops ? kEach : kGroup, groups = (text.total() + each - 1) / each;
  if (groups == 0) return;
  Arguments arguments = text.arguments(each);
  void* const x = q.x.data;
  void* const memory[] = {q.use == Use::Input ? q.y.data : x, q.use == Use::Weight ? q.y.data : q.w.data,
                          q.use == Use::Forward ? q.y.data
                          : q.use == Use::Input ? x
                                                : q.w.data,
                          const_cast<void*>(q.bias)};
  launcher.start(
      {{Kind::Convolution, nullptr, KeyBits().add(static_cast<uint64_t>(q.use), 2).add(q.dtype).add(text.wide).add(q.bias != nullptr)},
       [&] { return text.text(); },
       memory,
       arguments.bytes(),
       groups,
       target.loops ? 1 : kGroup});
}

}  // namespace naru::render::c
