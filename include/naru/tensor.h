// Tensor: an n-dimensional array of one dtype that lives on exactly one device. A handle: copies share the elements.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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
#include "naru/error.h"
#include "naru/scalar.h"

namespace naru {

struct TensorImpl;
class Tensor;
class Operand;
namespace autograd {
class GradFn;
}

// The order of a tensor's dimensions in memory, from the widest stride to the narrowest. Preserve: as the tensor it is made of has them.
enum class MemoryFormat : uint8_t {
  Contiguous,      // row-major
  Preserve,        //
  ChannelsLast,    // 4 dimensions: (n, h, w, c)
  ChannelsLast3d,  // 5 dimensions: (n, d, h, w, c)
};

// How a new tensor is made. Unset fields mean: the default dtype (or the dtype of the data), the default device.
struct Options {
  std::optional<DType> dtype;
  std::optional<Device> device;
  bool requires_grad = false;
  bool pin_memory = false;
  std::optional<MemoryFormat> memory_format;  // unset: Contiguous; of the functions called ..._like Preserve

  Options() = default;
  Options(DType t) : dtype(t) {}
  Options(Device d) : device(d) {}
  Options(DType t, Device d) : dtype(t), device(d) {}
  Options& with_grad(bool on = true) {
    requires_grad = on;
    return *this;
  }
};

// One part of an index: x[{0, Slice(1, 5, 2), None, Ellipsis, mask_or_positions}].
struct Slice {
  std::optional<int64_t> start, stop;
  int64_t step = 1;
  Slice() = default;
  Slice(std::optional<int64_t> a, std::optional<int64_t> b, int64_t s = 1) : start(a), stop(b), step(s) {}
};
struct NoneIndex {};
struct EllipsisIndex {};
inline constexpr NoneIndex None{};
inline constexpr EllipsisIndex Ellipsis{};
struct Index;

class Tensor {
 public:
  Tensor() noexcept = default;  // undefined: no device, no elements
  explicit Tensor(TensorImpl* adopted) noexcept : impl_(adopted) {}
  Tensor(const Tensor& o) noexcept;
  Tensor(Tensor&& o) noexcept : impl_(o.impl_) { o.impl_ = nullptr; }
  Tensor& operator=(const Tensor& o) noexcept;
  Tensor& operator=(Tensor&& o) noexcept {
    std::swap(impl_, o.impl_);
    return *this;
  }
  ~Tensor();

  bool defined() const noexcept { return impl_ != nullptr; }
  TensorImpl* impl() const noexcept { return impl_; }
  // The same tensor, not only equal elements.
  bool is(const Tensor& o) const noexcept { return impl_ == o.impl_; }

  // Geometry.
  Device device() const;
  DType dtype() const;
  const Dims& sizes() const;
  const Dims& strides() const;  // elements
  int64_t size(int64_t dim) const;
  int64_t dim() const;
  int64_t numel() const;
  int64_t storage_offset() const;
  bool is_contiguous() const;
  bool is_contiguous(MemoryFormat format) const;
  size_t element_size() const { return size_of(dtype()); }
  uint32_t version() const;
  // Whether it was made within an InferenceMode.
  bool is_inference() const;

  // Host access. Each waits for unfinished work on the tensor.
  // The one element. Throws RuntimeError unless numel() == 1.
  Scalar item() const;
  template <class T>
  T item() const {
    const Scalar s = item();
    if constexpr (std::is_same_v<T, bool>)
      return s.to_bool();
    else if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(s.to_double());
    else
      return static_cast<T>(s.to_int());
  }
  // Address of the first element on its device; dereference it on cpu only.
  void* data_ptr() const;
  template <class T>
  T* data() const {
    return static_cast<T*>(data_ptr());
  }
  // All elements in row-major order, converted to T (double, int64_t, float, bool as uint8_t ...).
  std::vector<double> to_doubles() const;
  std::vector<int64_t> to_ints() const;
  std::string str() const;  // short: "tensor(shape=[2, 3], dtype=float32, device=cpu)"

  // Moving and converting. `this` is returned where nothing changes (unless copy).
  Tensor to(Device device, bool non_blocking = false, bool copy = false) const;
  Tensor to(DType dtype, bool non_blocking = false, bool copy = false) const;
  Tensor to(std::optional<Device> device, std::optional<DType> dtype, bool non_blocking, bool copy,
            MemoryFormat format = MemoryFormat::Preserve) const;
  Tensor cpu() const { return to(Device(DeviceType::Cpu)); }
  Tensor cuda(int index = -1) const { return to(Device(DeviceType::Cuda, index)); }
  Tensor clone(MemoryFormat format = MemoryFormat::Preserve) const;
  Tensor contiguous(MemoryFormat format = MemoryFormat::Contiguous) const;
  Tensor& copy_(const Tensor& source, bool non_blocking = false);  // broadcasts, converts, crosses devices
  Tensor pin_memory() const;
  bool is_pinned() const;

  // Autograd (naru/autograd.h has the rest).
  bool requires_grad() const;
  Tensor& requires_grad_(bool on = true);
  bool is_leaf() const;
  Tensor grad() const;  // undefined until backward has reached it
  void set_grad(const Tensor& grad);
  std::string grad_fn_name() const;  // "AddBackward0", "" without
  autograd::GradFn grad_fn() const;  // naru/node.h
  // Gradient of this tensor (one element, or with `gradient` of the same shape) into the leaves' grad.
  void backward(const Tensor& gradient = {}, bool retain_graph = false, bool create_graph = false) const;
  Tensor detach() const;
  Tensor& detach_();
  Tensor data() const;  // shares elements, no history, writes through it are not counted
  // Called with the gradient of this tensor; may return another one to be used instead. Returns a number for remove_hook.
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
  Tensor slice(int64_t dim, std::optional<int64_t> start, std::optional<int64_t> stop, int64_t step = 1) const;
  Tensor diagonal(int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1) const;
  Tensor unfold(int64_t dim, int64_t size, int64_t step) const;
  Tensor as_strided(const Dims& sizes, const Dims& strides, int64_t offset) const;
  Tensor movedim(int64_t from, int64_t to) const;

  // Indexing.
  Tensor index(std::span<const Index> indices) const;
  Tensor operator[](int64_t i) const;
  Tensor operator[](std::initializer_list<Index> indices) const;
  void index_put_(std::span<const Index> indices, const Operand& value, bool accumulate = false);

  // Whole-tensor writes.
  Tensor& fill_(const Operand& value);
  Tensor& zero_();
  Tensor& uniform_(double from = 0, double to = 1);
  Tensor& normal_(double mean = 0, double std = 1);

  // Operators of the elementwise table: x.exp(), x.exp_(), x.add(y) ...
#define NARU_OP1(name, rule, lo, hi, expr, da, doc) \
  Tensor name() const;                              \
  Tensor& name##_();
#define NARU_OP2(name, rule, lo, hi, expr, da, db, doc) \
  Tensor name(const Operand& b) const;                  \
  Tensor& name##_(const Operand& b);
#define NARU_OP3(name, rule, lo, hi, expr, da, db, dc, doc) \
  Tensor name(const Operand& b, const Operand& c) const;    \
  Tensor& name##_(const Operand& b, const Operand& c);
#include "naru/elementwise.inc"
#undef NARU_OP1
#undef NARU_OP2
#undef NARU_OP3
  Tensor& operator+=(const Operand& b);
  Tensor& operator-=(const Operand& b);
  Tensor& operator*=(const Operand& b);
  Tensor& operator/=(const Operand& b);

  // Reductions; the functions of naru/ops.h say what each does.
  Tensor sum() const;
  Tensor sum(const Dims& dims, bool keepdim = false) const;
  Tensor mean() const;
  Tensor mean(const Dims& dims, bool keepdim = false) const;
  Tensor max() const;
  Tensor min() const;
  Tensor argmax() const;
  Tensor argmax(int64_t dim, bool keepdim = false) const;
  Tensor matmul(const Tensor& other) const;

  // The functions of naru/compositions.h say what each does.
  Tensor add(const Operand& b, Scalar alpha) const;
  Tensor sub(const Operand& b, Scalar alpha) const;
  Tensor rsub(const Operand& b) const;
  Tensor& add_(const Operand& b, Scalar alpha);
  Tensor& sub_(const Operand& b, Scalar alpha);
  Tensor div(const Operand& b, std::optional<std::string_view> rounding_mode) const;
  Tensor& div_(const Operand& b, std::optional<std::string_view> rounding_mode);
  Tensor addcmul(const Tensor& a, const Tensor& b, Scalar value = 1) const;
  Tensor addcdiv(const Tensor& a, const Tensor& b, Scalar value = 1) const;
  Tensor& addcmul_(const Tensor& a, const Tensor& b, Scalar value = 1);
  Tensor& addcdiv_(const Tensor& a, const Tensor& b, Scalar value = 1);
  Tensor& lerp_(const Tensor& end, const Operand& weight);
  Tensor& round_(int64_t decimals);
  Tensor& resize_(const Dims& sizes, std::optional<MemoryFormat> format = {});
  Tensor& resize_as_(const Tensor& model, std::optional<MemoryFormat> format = {});
  Tensor& t_();
  Tensor& transpose_(int64_t a, int64_t b);
  Tensor& squeeze_();
  Tensor& squeeze_(int64_t dim);
  Tensor& unsqueeze_(int64_t dim);
  Tensor& set_(const Tensor& from);
  Tensor& share_memory_();
  Tensor& index_fill_(int64_t dim, const Tensor& index, const Operand& value);
  Tensor& index_copy_(int64_t dim, const Tensor& index, const Tensor& source);
  Tensor& masked_scatter_(const Tensor& mask, const Tensor& source);
  Tensor& fill_diagonal_(const Operand& value, bool wrap = false);
  Tensor& tril_(int64_t diagonal = 0);
  Tensor& triu_(int64_t diagonal = 0);
  Tensor& cumsum_(int64_t dim);
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
  Tensor nansum(const std::optional<Dims>& dims = {}, bool keepdim = false) const;
  Tensor nanmean(const std::optional<Dims>& dims = {}, bool keepdim = false) const;
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

 private:
  TensorImpl* impl_ = nullptr;
};

struct Index {
  enum class Kind : uint8_t { Integer, Slice, None, Ellipsis, Tensor, Bool } kind;
  int64_t integer = 0;
  Slice slice;
  Tensor tensor;  // integers (positions) or bool (mask)
  Index(int i) : Index(static_cast<int64_t>(i)) {}
  Index(int64_t i) : kind(Kind::Integer), integer(i) {}
  Index(bool b) : kind(Kind::Bool), integer(b) {}
  Index(Slice s) : kind(Kind::Slice), slice(s) {}
  Index(NoneIndex) : kind(Kind::None) {}
  Index(EllipsisIndex) : kind(Kind::Ellipsis) {}
  Index(Tensor t) : kind(Kind::Tensor), tensor(std::move(t)) {}
};

// An operand of an elementwise operator: a tensor, or a number, which takes part in promotion by its category alone.
class Operand {
 public:
  Operand(const Tensor& t) : tensor_(&t) {}
  template <class T>
  requires std::is_arithmetic_v<T> Operand(T v) : scalar_(v) {}
  Operand(Scalar s) : scalar_(s) {}
  bool is_tensor() const noexcept { return tensor_ != nullptr; }
  const Tensor& tensor() const noexcept { return *tensor_; }
  const Scalar& scalar() const noexcept { return scalar_; }

 private:
  const Tensor* tensor_ = nullptr;  // outlived by the expression it stands in
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
Tensor operator==(const Tensor& a, const Operand& b);
Tensor operator!=(const Tensor& a, const Operand& b);
Tensor operator&(const Tensor& a, const Operand& b);
Tensor operator|(const Tensor& a, const Operand& b);
Tensor operator^(const Tensor& a, const Operand& b);
Tensor operator~(const Tensor& a);

}  // namespace naru
