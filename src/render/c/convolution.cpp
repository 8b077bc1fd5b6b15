// Convolutions: tiles of an implicit matrix product, whose columns are looked up and never stored; or, if tiles would be too small, one item per
// result, which loops over its window. The order is always that of ir::Convolution, so the bits equal those of the cpu kernel.
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

// A group of kSide x kSide items computes a tile of kTile x kTile results, kDepth products of each at a time, through local memory.
constexpr int kSide = 16, kTile = 64, kEachSide = kTile / kSide, kDepth = 16;
constexpr int64_t kLeastRows = 16;
// Results per looping item.
constexpr int64_t kEachResult = 256;

// The kernel's Numbers, by their names in its text; {} is replaced by x, y and z, the spatial dimensions.
constexpr const char* kSingle[] = {"total", "each", "batch", "groups", "in", "out"};
constexpr const char* kSpatial[] = {"size_", "result_", "kernel_", "stride_", "padding_", "dilation_"};
constexpr const char* kStrided[] = {"x", "w", "y"};

struct ConvolutionText {
  const Convolution& q;
  const Target& target;
  VType type;
  bool wide;

  ConvolutionText(const Convolution& c, const Target& t) : q(c), target(t), type(ir::vtype_of(c.dtype)) {
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

  // Defines constants with the Numbers' names.
  std::string names() const {
    int at = 0;
    std::string text;
    const auto name = [&](const std::string& n) { text += fmt::format("  const I {} = a.d[{}];\n", n, at++); };
    for (const char* n : kSingle) name(n);
    for (const char* n : kSpatial)
      for (const char* d : {"x", "y", "z"}) name(n + std::string(d));
    for (const char* n : kStrided)
      for (int d = 0; d < 5; ++d) name(fmt::format("{}_{}", n, d));
    for (const char* n : {"bias_step", "rows", "cols", "depth"}) name(n);
    return text;
  }

  Arguments arguments(int64_t each) const {
    Arguments a(4, wide);
    for (const int64_t v : {total(), each, q.batch, q.groups, q.in, q.out}) a.add(v);
    for (const Convolution::Sizes* s : {&q.size, &q.result, &q.kernel, &q.stride, &q.padding, &q.dilation})
      for (const int64_t v : *s) a.add(v);
    for (const Convolution::Array* s : {&q.x, &q.w, &q.y})
      for (const int64_t v : s->strides) a.add(v);
    for (const int64_t v : {q.bias_stride, rows(), cols(), depth()}) a.add(v);
    return a;
  }

  // The product of each group: rows are channels of the result; columns are its positions in all images (Weight: channels of x and kernel
  // positions).
  int64_t rows() const { return q.use == Use::Input ? q.in : q.out; }
  int64_t cols() const {
    if (q.use == Use::Weight) return q.in * product(q.kernel);
    return q.batch * product(q.use == Use::Forward ? q.result : q.size);
  }
  int64_t depth() const {
    return q.use == Use::Forward ? q.in * product(q.kernel) : q.use == Use::Input ? q.out * product(q.kernel) : q.batch * product(q.result);
  }
  // True if tiles are worth it. (With a stride, elements of x meet few kernel positions.)
  bool tiled() const {
    const bool dense = q.use != Use::Input || product(q.stride) == 1;
    return !target.loops && dense && rows() >= kLeastRows && cols() >= kTile && depth() >= kDepth;
  }
  int64_t tiles() const { return q.groups * ((rows() + kTile - 1) / kTile) * ((cols() + kTile - 1) / kTile); }
  std::string tiles_text() const;

  std::string body() const;
  std::string text() const;
};

// Defines the constants i0 ... i4: the position with row-major index `i` for five sizes.
std::string place(const char* const (&sizes)[5]) {
  std::string text = "    I rest = i;\n";
  for (int d = 4; d > 0; --d) text += fmt::format("    const I i{0} = rest % {1};\n    rest /= {1};\n", d, sizes[d]);
  return text + "    const I i0 = rest;\n";
}

// Loops over the kernel's positions around `step`.
std::string over_kernel(const std::string& step) {
  return "        for (I kx = 0; kx < kernel_x; ++kx)\n        for (I ky = 0; ky < kernel_y; ++ky)\n        for (I kz = 0; kz < kernel_z; "
         "++kz) {\n" +
         step + "        }\n";
}

// The index i of the element of x that y's element p meets at kernel position k.
std::string met(const char* p, const char* k) {
  std::string text;
  for (int d = 0; d < 3; ++d)
    text += fmt::format("          const I a{0} = {1} * stride_{0} - padding_{0} + {2} * dilation_{0};\n", "xyz"[d],
                        fmt::format("{}{}", p, "xyz"[d]), fmt::format("{}{}", k, "xyz"[d]));
  return text;
}

constexpr const char* kInside = "ax >= 0 && ax < size_x && ay >= 0 && ay < size_y && az >= 0 && az < size_z";

std::string ConvolutionText::body() const {
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

std::string ConvolutionText::text() const {
  const char* const s = stored(q.dtype);
  Head h;
  h.memory = {s, s, "=" + std::string(s), s};
  h.numbers = 6 + 18 + 15 + 4;
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

// Defines constants b, px, py, pz (or c, kx, ky, kz): the image and position (or channel and kernel position) with row-major index `from`.
std::string position_of(const std::string& from, const char* sizes, const std::string& indent) {
  return fmt::format(
      "{0}I rest = {1};\n{0}const I pz = rest % {2}z;\n{0}rest /= {2}z;\n{0}const I py = rest % {2}y;\n{0}rest /= {2}y;\n{0}const I px = "
      "rest % "
      "{2}x, b = rest / {2}x;\n",
      indent, from, sizes);
}
std::string place_of(const std::string& from, const std::string& indent) {
  return fmt::format(
      "{0}I left_over = {1};\n{0}const I kz = left_over % kernel_z;\n{0}left_over /= kernel_z;\n{0}const I ky = left_over % "
      "kernel_y;\n{0}left_over /= "
      "kernel_y;\n{0}const I kx = left_over % kernel_x, c = left_over / kernel_x;\n",
      indent, from);
}

std::string ConvolutionText::tiles_text() const {
  const char* const s = stored(q.dtype);
  const char* const t = arithmetic(type);
  const bool forward = q.use == Use::Forward, weight = q.use == Use::Weight;
  const char* const positions = q.use == Use::Input ? "size_" : "result_";
  const auto column = [&](const std::string& from, const std::string& indent) {
    return weight ? place_of(from, indent) : position_of(from, positions, indent);
  };
  const auto inner = [&](const std::string& from, const std::string& indent) {
    return weight ? position_of(from, positions, indent) : place_of(from, indent);
  };
  constexpr const char* kW = "c * w_1 + kx * w_2 + ky * w_3 + kz * w_4";
  const std::string left = weight    ? "b * y_0 + (group * out + row) * y_1 + px * y_2 + py * y_3 + pz * y_4"
                           : forward ? fmt::format("(group * out + row) * w_0 + {}", kW)
                                     : "(group * out + c) * w_0 + row * w_1 + kx * w_2 + ky * w_3 + kz * w_4";
  const char* const right = q.use == Use::Input ? "b * y_0 + (group * out + c) * y_1 + ax * y_2 + ay * y_3 + az * y_4"
                                                : "b * x_0 + (group * in + c) * x_1 + ax * x_2 + ay * x_3 + az * x_4";
  const std::string result = weight    ? fmt::format("(group * out + row) * w_0 + {}", kW)
                             : forward ? "b * y_0 + (group * out + row) * y_1 + px * y_2 + py * y_3 + pz * y_4"
                                       : "b * x_0 + (group * in + row) * x_1 + px * x_2 + py * x_3 + pz * x_4";
  Head h;
  h.memory = {s, s, "=" + std::string(s), s};
  h.numbers = 6 + 18 + 15 + 4;
  h.group = kSide * kSide;
  h.wide = wide;
  std::string text = opening(h, target) + names();
  text += fmt::format(
      "  LOCAL {0} left[{1}];\n  LOCAL {0} right[{1}];\n  const I across = (cols + {2}) / {3}, down = (rows + {2}) / {3};\n"
      "  const I col0 = (I)GROUP % across * {3}, row0 = (I)GROUP / across % down * {3}, group = (I)GROUP / across / down;\n"
      "  const int ix = ITEM % {4}, iy = ITEM / {4}, own = ITEM % {3};\n  {0} s[{5}][{5}];\n"
      "  for (int i = 0; i < {5}; ++i)\n    for (int j = 0; j < {5}; ++j) s[i][j] = 0;\n",
      t, kTile * kDepth, kTile - 1, kTile, kSide, kEachSide);
  text += column("(col0 + own)", "  ");
  text += fmt::format("  for (I k0 = 0; k0 < depth; k0 += {}) {{\n    {{\n      const I k = k0 + ix;\n", kDepth) + inner("k", "      ");
  text += fmt::format(
      "      for (int e = 0; e < {0}; ++e) {{\n        const I row = row0 + iy + e * {1};\n        left[ix * {2} + iy + e * {1}] = k < "
      "depth && row < rows ? "
      "{3} : 0;\n      }}\n    }}\n",
      kEachSide, kSide, kTile, load("m1", left.c_str()));
  text += fmt::format("    for (int e = 0; e < {0}; ++e) {{\n      const int at = ITEM / {1} + e * {2};\n      const I k = k0 + at;\n",
                      kDepth * kTile / (kSide * kSide), kTile, kSide * kSide / kTile);
  text += inner("k", "      ");
  for (const char d : {'x', 'y', 'z'})
    text += q.use == Use::Input ? fmt::format("      const I a{0} = p{0} + padding_{0} - k{0} * dilation_{0};\n", d)
                                : fmt::format("      const I a{0} = p{0} * stride_{0} - padding_{0} + k{0} * dilation_{0};\n", d);
  text += fmt::format("      right[at * {} + own] = k < depth && col0 + own < cols && {} ? {} : 0;\n    }}\n    BARRIER;\n", kTile,
                      q.use == Use::Input ? "ax >= 0 && ax < result_x && ay >= 0 && ay < result_y && az >= 0 && az < result_z" : kInside,
                      load("m0", right));
  text += fmt::format(
      "    const int n = depth - k0 < {0} ? (int)(depth - k0) : {0};\n    for (int k = 0; k < n; ++k) {{\n      {1} l[{2}], r[{2}];\n"
      "      for (int i = 0; i < {2}; ++i) l[i] = left[k * {3} + iy + i * {4}], r[i] = right[k * {3} + ix + i * {4}];\n"
      "      for (int i = 0; i < {2}; ++i)\n        for (int j = 0; j < {2}; ++j) s[i][j] = {5};\n    }}\n    BARRIER;\n  }}\n",
      kDepth, t, kEachSide, kTile, kSide,
      is_float(type) ? fmt::format("fma_{}(l[i], r[j], s[i][j])", name_of(type)) : std::string("s[i][j] + l[i] * r[j]"));
  const std::string channel = fmt::format("(group * {} + row) * bias_step", forward ? "out" : "in");
  const std::string sum = q.bias ? load("m3", channel.c_str()) + " + s[i][j]" : std::string("s[i][j]");
  text += fmt::format(
      "  for (int i = 0; i < {0}; ++i)\n    for (int j = 0; j < {0}; ++j) {{\n      const I row = row0 + iy + i * {1}, col = col0 + ix + j "
      "* {1};\n",
      kEachSide, kSide);
  text += "      if (row >= rows || col >= cols) continue;\n" + column("col", "      ");
  text += fmt::format("      m2[{}] = {};\n    }}\n}}\n", result,
                      converted(type, q.dtype, fmt::format("(({})({}))", name_of(type), sum), target));
  return complete(target, text);
}

}  // namespace

void run(const Convolution& q, Launcher& launcher) {
  if (q.dtype == DType::Bool) throw RuntimeError("convolution: wanted numbers, got bool; convert them first");
  const Target& target = launcher.target();
  const ConvolutionText text(q, target);
  const bool tiled = text.tiled();
  const int64_t each = target.loops ? kEachResult : kGroup, groups = tiled ? text.tiles() : (text.total() + each - 1) / each;
  if (groups == 0) return;
  Arguments arguments = text.arguments(each);
  void* const x = q.x.data;
  void* const memory[] = {q.use == Use::Input ? q.y.data : x, q.use == Use::Weight ? q.y.data : q.w.data,
                          q.use == Use::Forward ? q.y.data
                          : q.use == Use::Input ? x
                                                : q.w.data,
                          const_cast<void*>(q.bias)};
  const KeyBits bits = KeyBits().add(static_cast<uint64_t>(q.use), 2).add(q.dtype).add(text.wide).add(q.bias != nullptr).add(tiled);
  launcher.start({{Kind::Convolution, nullptr, bits},
                  [&] { return tiled ? text.tiles_text() : text.text(); },
                  memory,
                  arguments.bytes(),
                  groups,
                  tiled          ? kSide * kSide
                  : target.loops ? 1
                                 : kGroup});
}

}  // namespace naru::render::c
