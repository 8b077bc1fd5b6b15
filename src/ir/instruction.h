// Instructions: all that a device is asked to do. Addresses are the device's own, strides count elements.
//
// Each kind describes itself, and whoever must know an instruction's operands, names or programs asks by ir/inspect.h, whatever the kind is:
//   each_operand(f)   f(void*& address, const OperandUse&) for each operand that has an address
//   name(), kNames, kFamily   the operator it carries out, all that there are, and what kind of operators they are (none: it has no name)
//   program, params   members of those that compute by a program
//   parts             a member of those made of other instructions, each part's in `work`
//   kHostOnly         that there is no text for devices: on others than hosts it is a fallback
// docs/architecture.md lists the files to change for a new kind.
#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "core/communicator.h"
#include "ir/attention.h"
#include "ir/fft.h"
#include "ir/index_name.h"
#include "ir/lapack.h"
#include "ir/operand.h"
#include "ir/program.h"
#include "ir/reduce.h"
#include "kernels/source/kernel_source.h"
#include "naru/device.h"
#include "naru/device/precision.h"
#include "naru/dims.h"

namespace naru::ir {

// An operand over an iteration space: the address of its first element and one stride per dimension (0 repeats).
struct View {
  void* data = nullptr;
  DType dtype = DType::F32;
  Dims strides;

  template <class F>
  void describe(F& f, const char* what, bool written, std::span<const int64_t> sizes, int64_t before = 0, int64_t behind = 0) {
    if (data) f(data, OperandUse{what, written, dtype, sizes, strides, before, behind});
  }
};

// outputs[i][p] = program(inputs[...][p]) for every position p of `shape`. An output overlaps an input only if it is exactly that input
// (same address, same strides). Input k of the program may be marked scalar only if all its strides are 0.
struct Map {
  Program program;
  Dims shape;
  std::vector<View> inputs, outputs;
  std::vector<uint64_t> params;

  template <class F>
  void each_operand(F&& f) {
    for (View& v : inputs) v.describe(f, "input of an elementwise operation", false, shape);
    for (View& v : outputs) v.describe(f, "result of an elementwise operation", true, shape);
  }
};

// A plain copy, with conversion, of the elements of a shape.
Map copy_of(Dims shape, View from, View to);

// out[kept] = reduction of program(inputs) over the reduced dimensions. The iteration space is `shape` = kept dimensions, then the last `reduced`
// dimensions, in the order in which elements are reduced. The program's output is of the accumulator's vtype.
// contiguous: neighbours in memory belong to one result; else strided: the last kept dimension is the one of neighbouring elements
// (see ir/reduce.h; whoever makes the instruction chooses, from shape and strides). out.strides has one entry per kept dimension.
// The accumulator converts to out.dtype at the end. others: more results, of the program's other outputs (of the same type), each with the dtype and
// strides of `out`: computed together, where the device does that, so that the inputs are read once.
struct Reduce {
  Program program;
  ReduceOp op;
  Dims shape;
  int reduced = 0;
  bool contiguous = true;
  std::vector<View> inputs;
  std::vector<uint64_t> params;
  View out;
  std::vector<View> others;

  static constexpr const char* kFamily = "reduction";
  static constexpr const char* kNames[] = {"sum", "prod", "max", "min", "any", "all"};  // in the order of ReduceOp
  const char* name() const { return kNames[static_cast<int>(op)]; }
  std::span<const int64_t> kept_sizes() const { return std::span<const int64_t>(shape).first(shape.size() - static_cast<size_t>(reduced)); }
  template <class F>
  void each_operand(F&& f) {
    for (View& v : inputs) v.describe(f, "input of a reduction", false, shape);
    out.describe(f, "result of a reduction", true, kept_sizes());
    for (View& v : others) v.describe(f, "result of a reduction", true, kept_sizes());
  }
};

// A reduction for each result, with what that needs.
std::vector<Reduce> separate(const Reduce& reduce);

// Position of the greatest (or least) element along the last dimension of `shape`, the first among equals, a NaN before all.
// values (of in.dtype) and indices (I64) have one stride per kept dimension; either may have a null address.
struct ArgReduce {
  bool greatest = true;
  Dims shape;
  View in, values, indices;

  static constexpr const char* kFamily = "reduction";
  static constexpr const char* kNames[] = {"argmin", "argmax"};
  const char* name() const { return kNames[greatest]; }
  template <class F>
  void each_operand(F&& f) {
    const auto kept = std::span<const int64_t>(shape).first(shape.size() - 1);
    in.describe(f, "input of argmax/argmin", false, shape);
    values.describe(f, "values of argmax/argmin", true, kept), indices.describe(f, "indices of argmax/argmin", true, kept);
  }
};

// Running sum or product along the last dimension, in the order of ir/reduce.h. in and out may be the same.
struct Scan {
  ReduceOp op;  // Sum, Prod, Max or Min (which give NaN from the first NaN on, and of equal elements the later)
  Dims shape;
  View in, out;  // out.dtype is the type accumulated in (F32 for F16 and BF16)

  static constexpr const char* kFamily = "scan";
  static constexpr const char* kNames[] = {"cumsum", "cumprod", "cummax", "cummin"};
  const char* name() const { return kNames[static_cast<int>(op)]; }
  template <class F>
  void each_operand(F&& f) {
    in.describe(f, "input of a scan", false, shape), out.describe(f, "result of a scan", true, shape);
  }
};

// One index operand: I64 positions over the iteration space; position i addresses element i * step of the indexed dimension,
// i in [-bound, bound), negative ones counted from the end (from_end), else in [0, bound).
struct IndexOperand {
  View positions;
  int64_t bound = 0, step = 0;
  int dimension = -1;  // the dimension that error messages name; -1: the operand's number
  bool from_end = true;
  BadIndex raises = BadIndex::IndexError;
  int64_t least() const noexcept { return from_end ? -bound : 0; }
};
// The operand that indices move in, and the indices.
template <class F>
void describe_indexed(F& f, View& moved, const char* what, bool written, const Dims& shape, std::vector<IndexOperand>& indices) {
  int64_t before = 0, behind = 0;
  for (const IndexOperand& i : indices) (i.step < 0 ? before : behind) += (std::max<int64_t>(i.bound, 1) - 1) * std::abs(i.step);
  moved.describe(f, what, written, shape, before, behind);
  for (IndexOperand& i : indices) i.positions.describe(f, "index", false, shape);
}

// Gather: out[p] = source[p, indices(p)]: source.strides are 0 in the dimensions that only the indices move in.
// Scatter: target[p, indices(p)] = value[p] (Add: +=, in order of p). A position out of bounds raises an error (`raises`) naming
// position, value and bound (cpu: from run; others: at the next read of anything on the device, with the line of the call).
struct Gather {
  Dims shape;
  View out, source;
  std::vector<IndexOperand> indices;
  IndexName op = "index";
  uint32_t where = 0;  // the line of the call (see core/storage.h: Origin)

  static constexpr const char* kFamily = "index";
  static constexpr const auto& kNames = kIndexNames;
  const char* name() const { return op; }
  template <class F>
  void each_operand(F&& f) {
    out.describe(f, "result of an indexing", true, shape);
    describe_indexed(f, source, "source of an indexing", false, shape, indices);
  }
};
struct Scatter {
  Dims shape;
  View target, value;
  std::vector<IndexOperand> indices;
  bool add = false;
  IndexName op = "index_put_";
  uint32_t where = 0;

  static constexpr const char* kFamily = "index";
  static constexpr const auto& kNames = kIndexNames;
  const char* name() const { return op; }
  template <class F>
  void each_operand(F&& f) {
    describe_indexed(f, target, "target of an indexing", true, shape, indices);
    value.describe(f, "value of an indexing", false, shape);
  }
};

// c = a b (+ bias), for `batch` pairs. Strides in elements; all three of one type. bias: n elements, or null.
struct MatMul {
  struct Matrix {
    void* data = nullptr;
    int64_t batch_stride = 0, row_stride = 0, col_stride = 0;
  };
  DType dtype = DType::F32;
  int64_t batch = 1, m = 0, n = 0, k = 0;
  Matrix a, b, c;
  const void* bias = nullptr;
  int64_t bias_stride = 1;
  Precision precision;

  static constexpr const char* kFamily = "product";
  static constexpr const char* kNames[] = {"matmul"};
  const char* name() const { return kNames[0]; }
  template <class F>
  void each_operand(F&& f) {
    const auto matrix = [&](Matrix& x, const char* what, bool written, int64_t rows, int64_t cols) {
      const int64_t sizes[] = {batch, rows, cols}, strides[] = {x.batch_stride, x.row_stride, x.col_stride};
      if (x.data) f(x.data, OperandUse{what, written, dtype, sizes, strides});
    };
    matrix(a, "left matrix", false, m, k), matrix(b, "right matrix", false, k, n), matrix(c, "product", true, m, n);
    void* address = const_cast<void*>(bias);
    if (address) f(address, OperandUse{"bias", false, dtype, std::span(&n, 1), std::span(&bias_stride, 1)});
    bias = address;
  }
};

// Convolution over three spatial dimensions (leading ones of size 1 for fewer), `groups` groups of channels apart from each other:
//   y[b, o, p] = sum over c, k of x[b, c, p * stride - padding + k * dilation] * w[o, c, k], with x 0 outside of its sizes.
// Forward computes y (+ bias[o]); Input the gradient of x, which is the transposed convolution of y (+ bias[c]); Weight that of w.
// Deterministic: each element is one chain of fma, in the order of the channels summed over, then the kernel's positions (those that meet an element
// of y, for Input); for Weight in the order of images, then the positions of y.
struct Convolution {
  enum class Use : uint8_t { Forward, Input, Weight };
  using Sizes = std::array<int64_t, 3>;
  struct Array {
    void* data = nullptr;
    std::array<int64_t, 5> strides{};  // x, y: image, channel of all, position; w: channel of y of all, channel of x in the group, position
  };
  Use use = Use::Forward;
  DType dtype = DType::F32;
  int64_t batch = 1, groups = 1, in = 1, out = 1;              // in, out: channels of a group of x, of y
  Sizes size{1, 1, 1}, result{1, 1, 1}, kernel{1, 1, 1};       // of x, y and w
  Sizes stride{1, 1, 1}, padding{0, 0, 0}, dilation{1, 1, 1};  // padding: in front of x
  Array x, w, y;
  const void* bias = nullptr;
  int64_t bias_stride = 1;
  Precision precision;

  static constexpr const char* kFamily = "product";
  static constexpr const char* kNames[] = {"convolution", "convolution_input", "convolution_weight"};  // in the order of Use
  const char* name() const { return kNames[static_cast<int>(use)]; }
  std::array<int64_t, 5> sizes_of_x() const { return {batch, groups * in, size[0], size[1], size[2]}; }
  std::array<int64_t, 5> sizes_of_y() const { return {batch, groups * out, result[0], result[1], result[2]}; }
  std::array<int64_t, 5> sizes_of_w() const { return {groups * out, in, kernel[0], kernel[1], kernel[2]}; }
  template <class F>
  void each_operand(F&& f) {
    const auto array = [&](Array& a, const char* what, Use written, const std::array<int64_t, 5>& sizes) {
      if (a.data) f(a.data, OperandUse{what, use == written, dtype, sizes, a.strides});
    };
    array(x, "input of a convolution", Use::Input, sizes_of_x()), array(w, "weight of a convolution", Use::Weight, sizes_of_w());
    array(y, "result of a convolution", Use::Forward, sizes_of_y());
    const int64_t channels = groups * (use == Use::Forward ? out : in);
    void* address = const_cast<void*>(bias);
    if (address) f(address, OperandUse{"bias", false, dtype, std::span(&channels, 1), std::span(&bias_stride, 1)});
    bias = address;
  }
};

// Windows over three spatial dimensions of `batch` images of `channels` each: what position p of the result sees of x. Along dimension d it has
// `places` places; place t of position p is element index[t * result[d] + p] of x, or nothing where that is -1. Without an index, p is its own one
// place. A place weighs weight[t * result[d] + p], or 1 without weights; in all, the product of the three (the first two first).
//   Sum: y[p] = the sum of x * weight, multiplied and then added in the order of places (the last dimension's fastest). If `apart`: the sum over the
//   first dimension's places of its weight times the sum over the second's of its weight times that over the last's, in the type computed in
//   Max: y[p] = the greatest, the first among equals, the last NaN if there is one; indices[p] = its row-major number among x's positions, -1 if p
//   sees nothing. Without an address, indices are not written
//   Pick: y[p] = the sum of those x whose number in `indices` (laid over x) is p's own, each of which must be among p's places; in their order
struct Windows {
  enum class Op : uint8_t { Sum, Max, Pick };
  struct Table {
    int64_t places = 1;
    void* index = nullptr;   // I64
    void* weight = nullptr;  // of the type computed in: F32 for 16-bit types
    // If step > 0: index[t * result[d] + p] is first + p * step + t where x has such an element, else -1, and every p has at least one element.
    int64_t step = 0, first = 0;
  };
  using Sizes = Convolution::Sizes;
  using Array = Convolution::Array;  // image, channel, position
  Op op = Op::Sum;
  DType dtype = DType::F32, out = DType::F32;  // of x and y
  DType index = DType::I64;                    // of `indices`: I64, or I32 if x has (Pick: y has) fewer than 2^31 positions
  int64_t batch = 1, channels = 1;
  Sizes size{1, 1, 1}, result{1, 1, 1};  // of x and y
  bool apart = false;
  std::array<Table, 3> tables;
  Array x, y, indices;

  static constexpr const char* kFamily = "index";
  static constexpr const char* kNames[] = {"window_sum", "window_max", "window_pick"};  // in the order of Op
  const char* name() const { return kNames[static_cast<int>(op)]; }
  DType computed() const { return dtype == DType::F16 || dtype == DType::BF16 ? DType::F32 : dtype; }
  std::array<int64_t, 5> sizes_of_x() const { return {batch, channels, size[0], size[1], size[2]}; }
  std::array<int64_t, 5> sizes_of_y() const { return {batch, channels, result[0], result[1], result[2]}; }
  template <class F>
  void each_operand(F&& f) {
    const auto array = [&](Array& a, const char* what, bool written, DType type, const std::array<int64_t, 5>& sizes) {
      if (a.data) f(a.data, OperandUse{what, written, type, sizes, a.strides});
    };
    array(x, "input of windows", false, dtype, sizes_of_x()), array(y, "result of windows", true, out, sizes_of_y());
    array(indices, "indices of windows", op == Op::Max, index, op == Op::Max ? sizes_of_y() : sizes_of_x());
    for (size_t d = 0; d < 3; ++d) {
      const int64_t count = tables[d].places * result[d], stride = 1;
      for (auto& [address, type] : {std::pair{&tables[d].index, DType::I64}, std::pair{&tables[d].weight, computed()}})
        if (*address) f(*address, OperandUse{"table of windows", false, type, std::span(&count, 1), std::span(&stride, 1)});
    }
  }
};

// Sorts rows of n elements along the last dimension of `shape`; NaN counts as greatest; stable. Writes the first k of the order.
// values (in.dtype) and indices (I64) may have a null address.
struct Sort {
  Dims shape;
  int64_t k = 0;  // = n for a whole sort
  bool descending = false;
  View in, values, indices;

  static constexpr const char* kFamily = "sort";
  static constexpr const char* kNames[] = {"sort"};
  const char* name() const { return kNames[0]; }
  template <class F>
  void each_operand(F&& f) {
    Dims taken = shape;
    taken.back() = k;
    in.describe(f, "input of a sort", false, shape);
    values.describe(f, "sorted values", true, taken), indices.describe(f, "sorted indices", true, taken);
  }
};

// Where the elements of a mask are true, in two steps, as how many there are must be known between them. `ends`: for each block of kBlock elements, in
// row-major order, how many are true up to its end (int64). Without positions it is written; with them read, and row k of `positions` (int64) becomes
// the position of the k-th true element in each dimension of `shape`. The mask (Bool) lies row-major.
struct Nonzero {
  static constexpr int64_t kBlock = 4096;
  Dims shape;
  bool finds = false;  // the second step
  int64_t count = 0;   // of true elements, then
  View mask, ends, positions;

  static constexpr const char* kFamily = "index";
  static constexpr const char* kNames[] = {"nonzero"};
  const char* name() const { return kNames[0]; }
  int64_t blocks() const { return (product(shape) + kBlock - 1) / kBlock; }
  template <class F>
  void each_operand(F&& f) {
    const int64_t counts = blocks(), found[] = {count, static_cast<int64_t>(shape.size())};
    mask.describe(f, "mask", false, shape), ends.describe(f, "counts of true elements", !finds, std::span(&counts, 1));
    positions.describe(f, "positions of true elements", true, found);
  }
};

// Copies `bytes` bytes between devices (or within one).
struct CopyBytes {
  void* target = nullptr;
  const void* source = nullptr;
  size_t bytes = 0;
  Device target_device, source_device;

  template <class F>
  void each_operand(F&& f) {
    const int64_t size = static_cast<int64_t>(bytes), stride = 1;
    const auto side = [&](void*& p, const char* what, bool written, const Device& device) {
      if (p) f(p, OperandUse{what, written, DType::U8, std::span(&size, 1), std::span(&stride, 1), 0, 0, &device});
    };
    void* from = const_cast<void*>(source);
    side(target, "target of a copy", true, target_device), side(from, "source of a copy", false, source_device);
    source = from;
  }
};

// A kernel of the user's own, over a grid of items in groups. Its memory and numbers stand in the order of its parameters.
struct UserKernel {
  const KernelSource* source = nullptr;
  int entry = 0;                                            // of source->kernels()
  std::vector<void*> memory;                                // one for each pointer, null for tensors without elements
  std::vector<uint64_t> numbers;                            // bits of the others: integers in 64 bits, float and double as they are
  std::array<int64_t, 3> items{1, 1, 1}, threads{1, 1, 1};  // of the grid; of a group. The last groups may be smaller
  int64_t shared = 0;                                       // bytes of the shared array that the kernel leaves open
  int64_t groups(int d) const {
    return (items[static_cast<size_t>(d)] + threads[static_cast<size_t>(d)] - 1) / threads[static_cast<size_t>(d)];
  }

  const char* name() const { return "kernel"; }  // the user's own: it has no place among kNames
  // How far the kernel goes from each address nobody knows.
  template <class F>
  void each_operand(F&& f) {
    auto p = memory.begin();
    for (const KernelParam& param : source->kernels()[static_cast<size_t>(entry)].params) {
      if (!param.pointer || p == memory.end()) continue;
      if (*p) f(*p, OperandUse{"argument of a kernel", !param.constant, DType::U8, {}, {}});
      ++p;
    }
  }
};

// Parts over the same rows, with the results of doing one after another; made to be done a few rows at a time, so that a row stays in
// the first cache. The positions of each part, counted row-major, belong to `rows` rows, as many to each: those of a Map's
// shape, those of the kept dimensions of a contiguous reduction; a strided reduction reduces the rows. Only devices with row_fused get it
// (runtime/device/backend.h); others get the parts.
struct RowFused {
  struct Part {
    std::variant<Reduce, Map> work;
    // A contiguous reduction: where not null, the reduced values are kept for later parts, as their contiguous input at this address, of the
    // accumulators' type; a later part writes there. (They need not go to that memory: a device may have a better place.)
    void* kept = nullptr;
  };
  int64_t rows = 0;
  std::vector<Part> parts;
  // One bool a row: where not null, only the rows are done where it is true. A row then has at most Capabilities::longest_chosen_row elements, and no
  // reduction is strided.
  void* only = nullptr;

  template <class F>
  void each_operand(F&& f) {
    const int64_t once = 1;
    if (only) f(only, OperandUse{"choice of rows", false, DType::Bool, std::span(&rows, 1), std::span(&once, 1)});
    for (Part& p : parts) {
      std::visit([&](auto& work) { work.each_operand(f); }, p.work);
      if (!p.kept) continue;
      const auto& reduce = std::get<Reduce>(p.work);
      const int64_t count = product(reduce.shape), stride = 1;
      const DType type = reduce.program.nodes[reduce.program.outputs[0]].out;
      f(p.kept, OperandUse{"values of a reduction", true, type, std::span(&count, 1), std::span(&stride, 1)});
    }
  }
};

// The same program over several lists of operands, with the results of doing one list after another; made so that a device does many small lists
// in one kernel. The operands of a list are dense, of as many elements each; an input that the program marks scalar is one element, the same for all
// lists. No list writes what another reads or writes, and an output overlaps an input only if both are the same. Only devices with maps_each
// (core/capabilities.h) get it.
struct MapEach {
  Program program;
  std::vector<uint64_t> params;
  std::vector<int64_t> counts;   // of the elements of each list
  std::vector<void*> addresses;  // of the inputs, then the outputs, of the first list, of the second ...

  size_t inputs() const { return program.inputs_count; }
  size_t operands() const { return inputs() + program.outputs_count; }
  bool is_scalar(size_t k) const { return k < inputs() && program.inputs[k].scalar; }
  DType dtype(size_t k) const { return k < inputs() ? program.inputs[k].dtype : program.nodes[program.outputs[k - inputs()]].out; }
  // The work on one list.
  Map one(size_t list) const;
  template <class F>
  void each_operand(F&& f) {
    const int64_t dense = 1, repeats = 0;
    for (size_t i = 0; i < addresses.size(); ++i) {
      const size_t k = i % operands();
      f(addresses[i], OperandUse{k < inputs() ? "input of elementwise operations" : "result of elementwise operations", k >= inputs(),
                                 dtype(k), std::span(&counts[i / operands()], 1), std::span(is_scalar(k) ? &repeats : &dense, 1)});
    }
  }
};

// Calls of the library that joins devices of several processes.
struct Exchange {
  std::shared_ptr<Communicator> communicator;
  std::vector<Communicator::Call> calls;

  const char* name() const { return "exchange"; }  // no operator: it has no place among kNames
  template <class F>
  void each_operand(F&& f) {
    const int64_t stride = 1;
    const int ranks = communicator->size();
    for (Communicator::Call& c : calls) {
      const auto side = [&](void*& p, bool written, size_t elements) {
        const auto size = static_cast<int64_t>(elements);
        if (p && size) f(p, OperandUse{"tensor of a collective", written, c.type, std::span(&size, 1), std::span(&stride, 1)});
      };
      void* from = const_cast<void*>(c.from);
      side(from, false, c.read(ranks));
      c.from = from;
      side(c.to, true, c.written(ranks));
    }
  }
};

using Instruction = std::variant<Map, Reduce, ArgReduce, Scan, Gather, Scatter, MatMul, Convolution, Windows, Sort, Nonzero, Lapack, Fft,
                                 Attention, CopyBytes, RowFused, MapEach, UserKernel, Exchange>;

}  // namespace naru::ir
