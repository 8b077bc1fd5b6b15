// Tensor: an n-dimensional array of one dtype on one device. A Tensor is a handle: copies share the same elements.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "naru/device.h"
#include "naru/dims.h"
#include "naru/dtype.h"
#include "naru/element_type.h"
#include "naru/error.h"
#include "naru/half.h"
#include "naru/scalar.h"
#include "naru/source_location.h"
#include "naru/standard.h"

namespace naru {

struct TensorImpl;
class Tensor;
class Operand;
namespace autograd {
class GradFn;
}

// The order of a tensor's dimensions in memory, from the largest stride to the smallest.
enum class MemoryFormat : uint8_t {
  Contiguous,      // row-major
  Preserve,        // the layout of the input tensor
  ChannelsLast,    // 4 dimensions: (n, h, w, c)
  ChannelsLast3d,  // 5 dimensions: (n, d, h, w, c)
};

// How to create a tensor. Unset fields mean the default dtype (or the dtype of the data) and the default device.
struct Options {
  std::optional<DType> dtype;
  std::optional<Device> device;
  bool requires_grad = false;
  bool pin_memory = false;
  std::optional<MemoryFormat> memory_format;  // unset: Contiguous; for the ..._like functions: Preserve

  Options() = default;
  Options(DType t) : dtype(t) {}
  Options(Device d) : device(d) {}
  Options(DType t, Device d) : dtype(t), device(d) {}
  // Anything that converts to a device: best_device(), torch::kCUDA.
  template <class D>
  requires(std::is_class_v<D> && !std::same_as<D, Device> && !std::same_as<D, Options> && std::is_convertible_v<const D&, Device> &&
           !std::is_convertible_v<const D&, std::string_view>) Options(const D& d)
      : device(d) {}
  // "cuda:1", "float32". Throws RuntimeError if the text is neither a device nor a dtype.
  Options(const char* device_or_dtype);
  Options& with_grad(bool on = true) {
    requires_grad = on;
    return *this;
  }
};

// Options that are set by name: TensorOptions().dtype(kFloat).device("cuda:1"), x.options().dtype(DType::I64).
class TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(const Options& o) : options_(o) {}
  TensorOptions(DType t) : options_(t) {}
  template <class D>
  requires(std::is_class_v<D>&& std::is_convertible_v<const D&, Device> && !std::same_as<D, TensorOptions>) TensorOptions(const D& d)
      : options_(Device(d)) {}
  TensorOptions dtype(std::optional<DType> t) const {
    return with([&](Options& o) { o.dtype = t; });
  }
  template <class D>
  requires std::is_convertible_v<const D&, Device> TensorOptions device(const D& d)
  const {
    return with([&](Options& o) { o.device = Device(d); });
  }
  TensorOptions device(DeviceType kind, int index = -1) const { return device(Device(kind, index)); }
  TensorOptions requires_grad(bool on) const {
    return with([&](Options& o) { o.requires_grad = on; });
  }
  TensorOptions pinned_memory(bool on = true) const {
    return with([&](Options& o) { o.pin_memory = on; });
  }
  // Strided is what all of them are.
  template <class L>
  TensorOptions layout(const L&) const {
    return *this;
  }
  TensorOptions memory_format(MemoryFormat f) const {
    return with([&](Options& o) { o.memory_format = f; });
  }
  DType dtype() const { return options_.dtype.value_or(default_dtype()); }
  Device device() const { return options_.device.value_or(Device()); }
  bool requires_grad() const noexcept { return options_.requires_grad; }
  operator const Options&() const noexcept { return options_; }

 private:
  template <class F>
  TensorOptions with(F f) const {
    TensorOptions changed = *this;
    f(changed.options_);
    return changed;
  }
  Options options_;
};

// libtorch's x.type(): a dtype and a kind of device.
class TensorType {
 public:
  TensorType(DType t, Device d) noexcept : dtype_(t), device_(d) {}
  DType scalarType() const noexcept { return dtype_; }
  DeviceType device_type() const noexcept { return device_.type; }
  bool is_cuda() const noexcept { return device_.is_cuda(); }
  operator DType() const noexcept { return dtype_; }
  operator Options() const noexcept { return {dtype_, device_}; }
  friend bool operator==(const TensorType& a, const TensorType& b) noexcept {
    return a.dtype_ == b.dtype_ && a.device_.type == b.device_.type;
  }

 private:
  DType dtype_;
  Device device_;
};

// None: as an index, a new dimension of size 1; in a Slice, an omitted bound.
struct NoneIndex {
  constexpr operator std::optional<int64_t>() const noexcept { return {}; }
};
struct EllipsisIndex {};
inline constexpr NoneIndex None{};
inline constexpr EllipsisIndex Ellipsis{};
// start:stop:step, as in Python: Slice(1, 5), Slice(None, -1), Slice(None, None, 2).
struct Slice {
  std::optional<int64_t> start, stop;
  int64_t step = 1;
  Slice() = default;
  explicit Slice(std::optional<int64_t> from) : start(from) {}
  Slice(std::optional<int64_t> from, std::optional<int64_t> to, std::optional<int64_t> by = {})
      : start(from), stop(to), step(by.value_or(1)) {}
};
struct Index;
class Indexed;
class Generator;
template <class T, size_t N>
class Accessor;
using IndexList = std::initializer_list<Index>;

// const applies to the handle, not to the elements: methods that write elements are const; only reassigning the handle is not.
class Tensor {
 public:
  Tensor() noexcept {}  // undefined: no device, no elements
  explicit Tensor(TensorImpl* adopted) noexcept : impl_(adopted) {}
  Tensor(const Tensor& o) noexcept;
  Tensor(Tensor&& o) noexcept : impl_(o.impl_) { o.impl_ = nullptr; }
  Tensor& operator=(const Tensor& o) & noexcept;
  Tensor& operator=(Tensor&& o) & noexcept {
    TensorImpl* const own = impl_;
    impl_ = o.impl_, o.impl_ = own;
    return *this;
  }
  // Assigning to a temporary writes its elements, converted and broadcast: x[0] = y, x.narrow(0, 1, 2) = 3.
  const Tensor& operator=(const Operand& value) &&;
  ~Tensor();

  bool defined() const noexcept { return impl_ != nullptr; }
  TensorImpl* impl() const noexcept { return impl_; }
  // True if both handles refer to the same tensor. Equal elements are not enough.
  bool is(const Tensor& o) const noexcept { return impl_ == o.impl_; }
  bool is_same(const Tensor& o) const noexcept { return impl_ == o.impl_; }

  // Geometry.
  Device device() const;
  DType dtype() const;
  DType scalar_type() const { return dtype(); }
  TensorType type() const { return {dtype(), device()}; }
  const Dims& sizes() const;
  const Dims& strides() const;  // elements
  int64_t size(int64_t dim) const;
  int64_t dim() const;
  int64_t ndimension() const { return dim(); }
  // The index of its device; -1 on cpu.
  int64_t get_device() const { return device().is_cpu() ? -1 : device().index; }
  int64_t numel() const;
  int64_t storage_offset() const;
  bool is_contiguous() const;
  bool is_contiguous(MemoryFormat format) const;
  // ChannelsLast if its elements are in that order, else Contiguous.
  MemoryFormat suggest_memory_format() const {
    return dim() == 4 && !is_contiguous() && is_contiguous(MemoryFormat::ChannelsLast) ? MemoryFormat::ChannelsLast
                                                                                       : MemoryFormat::Contiguous;
  }
  size_t element_size() const { return size_of(dtype()); }
  size_t itemsize() const { return size_of(dtype()); }
  uint32_t version() const;
  // True if the tensor was created under InferenceMode.
  bool is_inference() const;

  // Host access. Each of these waits for pending work on the tensor.
  // Returns the only element. Throws RuntimeError unless numel() == 1.
  Scalar item() const;
  // Throws RuntimeError if T can't represent the value.
  template <class T>
  T item(SourceLocation where = NARU_CURRENT_LOCATION) const {
    return detail::with_location(where, [&] { return number_as<T>(item()); });
  }
  // Address of the first element, in the memory of the tensor's device; dereference it only for cpu tensors.
  void* data_ptr() const;
  // Throws RuntimeError if the dtype's element type is not T (naru/element_type.h).
  template <class T>
  T* data_ptr(SourceLocation where = NARU_CURRENT_LOCATION) const {
    return detail::with_location(where, [&] {
      if (const DType t = dtype(); !is_element_of<T>(t)) detail::throw_wrong_element(t, dtype_of<T>());
      return static_cast<T*>(data_ptr());
    });
  }
  template <class T>
  T* data(SourceLocation where = NARU_CURRENT_LOCATION) const {
    return data_ptr<T>(where);
  }
  const void* const_data_ptr() const { return data_ptr(); }
  void* mutable_data_ptr() const { return data_ptr(); }
  template <class T>
  const T* const_data_ptr(SourceLocation where = NARU_CURRENT_LOCATION) const {
    return data_ptr<T>(where);
  }
  template <class T>
  T* mutable_data_ptr(SourceLocation where = NARU_CURRENT_LOCATION) const {
    return data_ptr<T>(where);
  }
  // Indexed access to a cpu tensor of N dimensions with any strides: x.accessor<float, 2>()[i][j]. Throws RuntimeError for tensors on other
  // devices.
  template <class T, size_t N>
  Accessor<T, N> accessor(SourceLocation where = NARU_CURRENT_LOCATION) const;
  // libtorch's names; of its traits for pointers, none is needed.
  template <class T, size_t N, template <class> class... Traits>
  Accessor<T, N> packed_accessor32(SourceLocation where = NARU_CURRENT_LOCATION) const {
    return accessor<T, N>(where);
  }
  template <class T, size_t N, template <class> class... Traits>
  Accessor<T, N> packed_accessor64(SourceLocation where = NARU_CURRENT_LOCATION) const {
    return accessor<T, N>(where);
  }
  // All elements of a contiguous cpu tensor: for (float& v : x.span<float>()). Throws RuntimeError if the tensor is not contiguous.
  template <class T>
  std::span<T> span(SourceLocation where = NARU_CURRENT_LOCATION) const;
  // All elements in row-major order, converted to double or int64.
  std::vector<double> to_doubles() const;
  std::vector<int64_t> to_ints() const;
  std::string str() const;  // as repr() in Python: "tensor([1., 2.])" (naru/print.h)

  // Moving and converting. Returns `this` tensor if nothing changes and copy is false.
  Tensor to(Device device, bool non_blocking = false, bool copy = false, SourceLocation where = NARU_CURRENT_LOCATION) const;
  Tensor to(DType dtype, bool non_blocking = false, bool copy = false, SourceLocation where = NARU_CURRENT_LOCATION) const;
  // libtorch's forms.
  Tensor toType(DType dtype) const { return to(dtype); }
  // (A template, so that {} is never taken for a dtype or a device: it means "as it is" in the general form below.)
  template <class D, std::same_as<DType> T>
  requires std::convertible_to<const D&, Device> Tensor to(const D& device, T dtype, bool non_blocking = false, bool copy = false)
  const { return to(std::optional<Device>(device), std::optional<DType>(dtype), non_blocking, copy); }
  template <std::same_as<TensorOptions> O>
  Tensor to(const O& o, bool non_blocking = false, bool copy = false) const {
    const Options& options = o;
    return to(options.device, options.dtype, non_blocking, copy);
  }
  Tensor to(std::optional<Device> device, std::optional<DType> dtype, bool non_blocking, bool copy,
            MemoryFormat format = MemoryFormat::Preserve, SourceLocation where = NARU_CURRENT_LOCATION) const;
  Tensor cpu(SourceLocation where = NARU_CURRENT_LOCATION) const { return to(Device(DeviceType::Cpu), false, false, where); }
  Tensor cuda(int index = -1, SourceLocation where = NARU_CURRENT_LOCATION) const {
    return to(Device(DeviceType::Cuda, index), false, false, where);
  }
  Tensor clone(MemoryFormat format = MemoryFormat::Preserve) const;
  Tensor contiguous(MemoryFormat format = MemoryFormat::Contiguous) const;
  const Tensor& copy_(const Tensor& source, bool non_blocking = false) const;  // broadcasts, converts, crosses devices
  Tensor pin_memory() const;
  bool is_pinned() const;

  // Autograd (naru/autograd.h has the rest).
  bool requires_grad() const;
  const Tensor& requires_grad_(bool on = true) const;
  const Tensor& set_requires_grad(bool on) const { return requires_grad_(on); }
  bool is_leaf() const;
  Tensor grad() const;  // undefined until backward accumulates into it
  void set_grad(const Tensor& grad) const;
  std::string grad_fn_name() const;  // "AddBackward0"; "" without history
  autograd::GradFn grad_fn() const;  // naru/autograd/node.h
  // Accumulates gradients into the grad of the leaves. The tensor has one element, or `gradient` has the tensor's shape.
  void backward(const Tensor& gradient = {}, bool retain_graph = false, bool create_graph = false,
                SourceLocation where = NARU_CURRENT_LOCATION) const;
  Tensor detach() const;
  const Tensor& detach_() const;
  Tensor data() const;  // shares elements, has no history; writes through it do not change the version
  // The hook is called with this tensor's gradient; if it returns a defined tensor, that replaces the gradient. Returns an id for
  // remove_hook.
  int64_t register_hook(std::function<Tensor(const Tensor&)> hook) const;
  void remove_hook(int64_t number) const;
  void retain_grad() const;

  // Views.
  Tensor view(const Dims& shape) const;
  Tensor view(DType dtype) const;
  Tensor reshape(const Dims& shape) const;
  Tensor permute(const Dims& dims) const;
  Tensor transpose(int64_t a, int64_t b) const;
  Tensor t() const;
  Tensor squeeze() const;
  Tensor squeeze(int64_t dim) const;
  Tensor unsqueeze(int64_t dim) const;
  Tensor expand(const Dims& shape) const;  // -1 keeps a size
  Tensor flatten(int64_t start = 0, int64_t end = -1) const;
  Tensor unflatten(int64_t dim, const Dims& sizes) const;
  Tensor narrow(int64_t dim, int64_t start, int64_t length) const;
  Tensor select(int64_t dim, int64_t index) const;
  Tensor slice(int64_t dim, std::optional<int64_t> start = {}, std::optional<int64_t> stop = {}, int64_t step = 1) const;
  Tensor diagonal(int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1) const;
  Tensor unfold(int64_t dim, int64_t size, int64_t step) const;
  Tensor as_strided(const Dims& sizes, const Dims& strides, int64_t offset) const;
  Tensor movedim(int64_t from, int64_t to) const;

  // Indexing, as x[...] in Python: integers, slices, None and Ellipsis return a view; integer or bool tensors return a copy of the selected
  // elements. Throws IndexError for an index that doesn't fit.
  Tensor index(std::span<const Index> indices) const;
  Tensor index(IndexList indices, SourceLocation where = NARU_CURRENT_LOCATION) const;
  // x[0] and x[Slice(1, None)] are views, so x[0] = y writes to x.
  template <std::integral T>
  requires(!std::same_as<T, bool>) Tensor operator[](T i) const { return select_first(static_cast<int64_t>(i)); }
  Tensor operator[](const Slice& slice) const;
  Tensor operator[](NoneIndex) const;
  Tensor operator[](EllipsisIndex) const;
  // x[{Slice(), 0}], x[mask]: can be read as a tensor or assigned to (naru/indexed.h).
  Indexed operator[](IndexList indices) const;
  Indexed operator[](const Tensor& mask_or_positions) const;
  template <std::same_as<bool> T>
  Indexed operator[](T whole_or_nothing) const;
  // x[indices] = value; with accumulate, += (values at repeated positions add up). Throws RuntimeError if value doesn't broadcast.
  const Tensor& index_put_(std::span<const Index> indices, const Operand& value, bool accumulate = false) const;
  const Tensor& index_put_(IndexList indices, const Operand& value, bool accumulate = false,
                           SourceLocation where = NARU_CURRENT_LOCATION) const;

  // Whole-tensor writes.
  const Tensor& fill_(const Operand& value) const;
  const Tensor& zero_() const;
  const Tensor& uniform_(double from = 0, double to = 1) const;
  const Tensor& normal_(double mean = 0, double std = 1) const;

  // The elementwise table's operators: x.exp(), x.exp_(), x.add(y) ...
#define NARU_OP1(name, rule, lo, hi, expr, da, doc) \
  Tensor name() const;                              \
  const Tensor& name##_() const;
#define NARU_OP2(name, rule, lo, hi, expr, da, db, doc) \
  Tensor name(const Operand& b) const;                  \
  const Tensor& name##_(const Operand& b) const;
#define NARU_OP3(name, rule, lo, hi, expr, da, db, dc, doc) \
  Tensor name(const Operand& b, const Operand& c) const;    \
  const Tensor& name##_(const Operand& b, const Operand& c) const;
#include "naru/elementwise.inc"
#undef NARU_OP1
#undef NARU_OP2
#undef NARU_OP3
  const Tensor& operator+=(const Operand& b) const;
  const Tensor& operator-=(const Operand& b) const;
  const Tensor& operator*=(const Operand& b) const;
  const Tensor& operator/=(const Operand& b) const;

  // Reductions, documented in naru/ops.h.
  Tensor sum() const;
  Tensor sum(const Dims& dims, bool keepdim = false) const;
  Tensor mean() const;
  Tensor mean(const Dims& dims, bool keepdim = false) const;
  Tensor max() const;
  Tensor min() const;
  Tensor argmax() const;
  Tensor argmax(int64_t dim, bool keepdim = false) const;
  Tensor matmul(const Tensor& other) const;

  // Documented in naru/ops/functions.h.
  Tensor add(const Operand& b, Scalar alpha) const;
  Tensor sub(const Operand& b, Scalar alpha) const;
  Tensor rsub(const Operand& b) const;
  const Tensor& add_(const Operand& b, Scalar alpha) const;
  const Tensor& sub_(const Operand& b, Scalar alpha) const;
  Tensor div(const Operand& b, std::optional<std::string_view> rounding_mode) const;
  const Tensor& div_(const Operand& b, std::optional<std::string_view> rounding_mode) const;
  Tensor addcmul(const Tensor& a, const Tensor& b, Scalar value = 1) const;
  Tensor addcdiv(const Tensor& a, const Tensor& b, Scalar value = 1) const;
  const Tensor& addcmul_(const Tensor& a, const Tensor& b, Scalar value = 1) const;
  const Tensor& addcdiv_(const Tensor& a, const Tensor& b, Scalar value = 1) const;
  const Tensor& lerp_(const Tensor& end, const Operand& weight) const;
  const Tensor& round_(int64_t decimals) const;
  const Tensor& resize_(const Dims& sizes, std::optional<MemoryFormat> format = {}) const;
  const Tensor& resize_as_(const Tensor& model, std::optional<MemoryFormat> format = {}) const;
  const Tensor& t_() const;
  const Tensor& transpose_(int64_t a, int64_t b) const;
  const Tensor& squeeze_() const;
  const Tensor& squeeze_(int64_t dim) const;
  const Tensor& unsqueeze_(int64_t dim) const;
  const Tensor& set_(const Tensor& from) const;
  const Tensor& share_memory_() const;
  const Tensor& index_fill_(int64_t dim, const Tensor& index, const Operand& value) const;
  const Tensor& index_copy_(int64_t dim, const Tensor& index, const Tensor& source) const;
  const Tensor& masked_scatter_(const Tensor& mask, const Tensor& source) const;
  const Tensor& fill_diagonal_(const Operand& value, bool wrap = false) const;
  const Tensor& tril_(int64_t diagonal = 0) const;
  const Tensor& triu_(int64_t diagonal = 0) const;
  const Tensor& cumsum_(int64_t dim) const;
  bool is_shared() const;
  Tensor mT() const;
  Tensor fill(const Operand& value) const;
  std::vector<Tensor> tensor_split(const Tensor& ends, int64_t dim = 0) const;
  Tensor prelu(const Tensor& weight) const;
  Tensor addmv(const Tensor& matrix, const Tensor& vector, Scalar beta = 1, Scalar alpha = 1) const;
  Tensor baddbmm(const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1) const;
  Tensor round(int64_t decimals) const;
  Tensor float_power(const Operand& exponent) const;
  Tensor rad2deg() const;
  Tensor deg2rad() const;
  Tensor logit(std::optional<double> eps = {}) const;
  Tensor nan_to_num(double nan = 0, std::optional<double> posinf = {}, std::optional<double> neginf = {}) const;
  Tensor heaviside(const Tensor& at_zero) const;
  Tensor median() const;
  std::pair<Tensor, Tensor> median(int64_t dim, bool keepdim = false) const;
  Tensor nansum(const OptionalDims& dims = {}, bool keepdim = false) const;
  Tensor nanmean(const OptionalDims& dims = {}, bool keepdim = false) const;
  std::pair<Tensor, Tensor> aminmax(std::optional<int64_t> dim = {}, bool keepdim = false) const;
  Tensor trace() const;
  bool is_nonzero() const;
  Tensor quantile(const Operand& q, std::optional<int64_t> dim = {}, bool keepdim = false, std::string_view interpolation = "linear") const;
  std::pair<Tensor, Tensor> kthvalue(int64_t k, int64_t dim = -1, bool keepdim = false) const;
  Tensor histc(int64_t bins = 100, double low = 0, double high = 0) const;
  Tensor bucketize(const Tensor& boundaries, bool out_int32 = false, bool right = false) const;
  Tensor dist(const Tensor& b, double p = 2) const;
  Tensor cross(const Tensor& b, std::optional<int64_t> dim = {}) const;
  Tensor inner(const Tensor& b) const;
  Tensor kron(const Tensor& b) const;
  Tensor diff(int64_t n = 1, int64_t dim = -1) const;
  std::vector<Tensor> tensor_split(int64_t sections, int64_t dim = 0) const;
  std::vector<Tensor> tensor_split(const Dims& ends, int64_t dim = 0) const;
  Tensor tile(const Dims& times) const;
  Tensor repeat_interleave(int64_t repeats, std::optional<int64_t> dim = {}, std::optional<int64_t> output_size = {}) const;
  Tensor repeat_interleave(const Tensor& repeats, std::optional<int64_t> dim = {}, std::optional<int64_t> output_size = {}) const;
  Tensor squeeze(const Dims& dims) const;
  Tensor movedim(const Dims& from, const Dims& to) const;
  Tensor rot90(int64_t k = 1, const Dims& dims = {0, 1}) const;
  Tensor diag(int64_t diagonal = 0) const;
  Tensor take_along_dim(const Tensor& indices, std::optional<int64_t> dim = {}) const;
  Tensor index_fill(int64_t dim, const Tensor& index, const Operand& value) const;
  Tensor index_copy(int64_t dim, const Tensor& index, const Tensor& source) const;
  Tensor index_add(int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha = 1) const;
  Tensor index_put(std::span<const Index> indices, const Operand& value, bool accumulate = false) const;
  Tensor index_put(IndexList indices, const Operand& value, bool accumulate = false) const;

#include "naru/function_methods.inc"
#include "naru/tensor_methods.inc"

 private:
  // Writes a function's result into this tensor. Throws RuntimeError naming the method if the shapes differ or the dtype can't be cast.
  const Tensor& write_result(const Tensor& made, const char* method) const;
  // The input for such a function: a clone while history is recorded, because backward may need the old values.
  Tensor to_be_written() const;
  Tensor select_first(int64_t i) const;
  TensorImpl* impl_ = nullptr;
};

// One component of an index: x[{0, Slice(1, 5, 2), None, Ellipsis, mask_or_positions}].
struct Index {
// These enumerators are scoped; g++ 12 wrongly reports that they shadow naru::None.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
  enum class Kind : uint8_t { Integer, Slice, None, Ellipsis, Tensor, Bool } kind;
#pragma GCC diagnostic pop
  int64_t integer = 0;
  Slice slice;
  Tensor tensor;  // integers (positions) or bool (mask)
  template <std::integral T>
  Index(T i) : kind(std::same_as<T, bool> ? Kind::Bool : Kind::Integer), integer(static_cast<int64_t>(i)) {}
  Index(const Slice& s) : kind(Kind::Slice), slice(s) {}
  Index(NoneIndex) : kind(Kind::None) {}
  Index(std::nullopt_t) : kind(Kind::None) {}
  Index(EllipsisIndex) : kind(Kind::Ellipsis) {}
  Index(Tensor t) : kind(Kind::Tensor), tensor(std::move(t)) {}
  Index(const Indexed& t);
  // Integer positions, like a list in Python: x[{0, std::vector<int64_t>{1, 3}}].
  Index(const std::vector<int64_t>& positions);
  // "...", as in libtorch. Throws IndexError for any other text.
  Index(const char* dots);
};

// An operand of an elementwise operator: a tensor or a scalar. In type promotion, scalars count only by category.
class Operand {
 public:
  Operand(const Tensor& t) : tensor_(&t) {}
  Operand(const Indexed& t);
  template <class T>
  requires std::is_arithmetic_v<T> Operand(T v) : scalar_(v) {}
  template <ComplexNumber C>
  Operand(const C& v) : scalar_(v) {}
  Operand(Scalar s) : scalar_(s) {}
  bool is_tensor() const noexcept { return tensor_ != nullptr; }
  const Tensor& tensor() const noexcept { return *tensor_; }
  const Scalar& scalar() const noexcept { return scalar_; }

 private:
  const Tensor* tensor_ = nullptr;  // not owned; the tensor must outlive the expression
  Scalar scalar_;
};

#define NARU_OP1(name, rule, lo, hi, expr, da, doc) Tensor name(const Operand& a);
#define NARU_OP2(name, rule, lo, hi, expr, da, db, doc) Tensor name(const Operand& a, const Operand& b);
#define NARU_OP3(name, rule, lo, hi, expr, da, db, dc, doc) Tensor name(const Operand& a, const Operand& b, const Operand& c);
#include "naru/elementwise.inc"
#undef NARU_OP1
#undef NARU_OP2
#undef NARU_OP3

Tensor operator+(const Tensor& a, const Operand& b);
Tensor operator-(const Tensor& a, const Operand& b);
Tensor operator*(const Tensor& a, const Operand& b);
Tensor operator/(const Tensor& a, const Operand& b);
Tensor operator+(Scalar a, const Tensor& b);
Tensor operator-(Scalar a, const Tensor& b);
Tensor operator*(Scalar a, const Tensor& b);
Tensor operator/(Scalar a, const Tensor& b);
Tensor operator-(const Tensor& a);
Tensor operator<(const Tensor& a, const Operand& b);
Tensor operator<=(const Tensor& a, const Operand& b);
Tensor operator>(const Tensor& a, const Operand& b);
Tensor operator>=(const Tensor& a, const Operand& b);
Tensor operator&(const Tensor& a, const Operand& b);
Tensor operator|(const Tensor& a, const Operand& b);
Tensor operator^(const Tensor& a, const Operand& b);
Tensor operator~(const Tensor& a);

}  // namespace naru

#include "naru/accessor.h"
#include "naru/indexed.h"

namespace naru {

// Templates, because C++20 would otherwise also try the operands in reverse order.
template <class T>
concept TensorLike = std::derived_from<T, Tensor> || std::same_as<T, Indexed>;
template <class T>
concept OperandLike = std::convertible_to<const T&, Operand>;
template <TensorLike A, OperandLike B>
Tensor operator==(const A& a, const B& b) {
  return eq(a, b);
}
template <TensorLike A, OperandLike B>
Tensor operator!=(const A& a, const B& b) {
  return ne(a, b);
}
template <class A, TensorLike B>
requires std::constructible_from<Scalar, A> Tensor operator==(A a, const B& b) { return eq(b, Scalar(a)); }
template <class A, TensorLike B>
requires std::constructible_from<Scalar, A> Tensor operator!=(A a, const B& b) { return ne(b, Scalar(a)); }

}  // namespace naru
