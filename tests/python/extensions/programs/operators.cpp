// Operators and a class that are registered by name; no Python in it.
#include <ATen/Operators.h>
#include <torch/all.h>
#include <torch/library.h>

#include <string>
#include <vector>

namespace shapes {

// --- loops over elements, with an operator that writes its argument

at::Tensor muladd_cpu(const at::Tensor& a, const at::Tensor& b, double c) {
  TORCH_CHECK(a.sizes() == b.sizes(), "muladd: a and b must have the same sizes, got ", a.sizes(), " and ", b.sizes());
  TORCH_CHECK(a.dtype() == at::kFloat);
  TORCH_CHECK(b.dtype() == at::kFloat);
  TORCH_INTERNAL_ASSERT(a.device().type() == at::DeviceType::CPU);
  TORCH_INTERNAL_ASSERT(b.device().type() == at::DeviceType::CPU);
  at::Tensor a_contig = a.contiguous();
  at::Tensor b_contig = b.contiguous();
  at::Tensor result = torch::empty(a_contig.sizes(), a_contig.options());
  const float* a_ptr = a_contig.data_ptr<float>();
  const float* b_ptr = b_contig.data_ptr<float>();
  float* result_ptr = result.data_ptr<float>();
  for (int64_t i = 0; i < result.numel(); i++) result_ptr[i] = a_ptr[i] * b_ptr[i] + c;
  return result;
}

at::Tensor mul_cpu(const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(a.sizes() == b.sizes());
  TORCH_CHECK(a.scalar_type() == at::kFloat);
  at::Tensor a_contig = a.contiguous(), b_contig = b.contiguous();
  at::Tensor result = at::empty_like(a_contig);
  const float* a_ptr = a_contig.const_data_ptr<float>();
  const float* b_ptr = b_contig.const_data_ptr<float>();
  float* result_ptr = result.mutable_data_ptr<float>();
  for (int64_t i = 0; i < result.numel(); i++) result_ptr[i] = a_ptr[i] * b_ptr[i];
  return result;
}

void add_out_cpu(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) {
  TORCH_CHECK(a.sizes() == b.sizes());
  TORCH_CHECK(b.sizes() == out.sizes());
  TORCH_CHECK(out.is_contiguous());
  at::Tensor a_contig = a.contiguous();
  at::Tensor b_contig = b.contiguous();
  float* out_ptr = out.data_ptr<float>();
  for (int64_t i = 0; i < out.numel(); i++) out_ptr[i] = a_contig.data_ptr<float>()[i] + b_contig.data_ptr<float>()[i];
}

TORCH_LIBRARY(shapes, m) {
  m.def("muladd(Tensor a, Tensor b, float c) -> Tensor");
  m.def("mul(Tensor a, Tensor b) -> Tensor");
  m.def("add_out(Tensor a, Tensor b, Tensor(a!) out) -> ()");
  m.def("scaled(Tensor self, Scalar by=2, *, ScalarType? dtype=None, int[] dims=[]) -> Tensor");
  m.def("halves(Tensor self) -> (Tensor, Tensor)");
}

// --- arguments of other kinds, and functions for all devices

at::Tensor scaled(const at::Tensor& self, const at::Scalar& by, c10::optional<at::ScalarType> dtype, at::IntArrayRef dims) {
  at::Tensor result = self * by;
  if (dtype.has_value()) result = result.to(*dtype);
  for (auto d : dims) result = result.flip(d);
  return result;
}

std::tuple<at::Tensor, at::Tensor> halves(const at::Tensor& self) {
  const auto parts = self.chunk(2, 0);
  return {parts[0], parts[1]};
}

std::string described(const at::Tensor& x, int64_t n, bool loud, const std::string& name, const std::vector<int64_t>& sizes) {
  return name + std::to_string(x.dim() + n + static_cast<int64_t>(sizes.size())) + (loud ? "!" : ".");
}

TORCH_LIBRARY_FRAGMENT(shapes, m) {
  m.def("described", &described);
  m.def("joined(Tensor[] list, Tensor? last=None) -> Tensor", [](at::TensorList list, const c10::optional<at::Tensor>& last) {
    std::vector<at::Tensor> all(list.begin(), list.end());
    if (last.has_value()) all.push_back(*last);
    return torch::cat(all);
  });
}

TORCH_LIBRARY_IMPL(shapes, CompositeExplicitAutograd, m) { m.impl("scaled", &scaled); }
TORCH_LIBRARY_IMPL(shapes, CompositeImplicitAutograd, m) { m.impl("halves", &halves); }

TORCH_LIBRARY_IMPL(shapes, CPU, m) {
  m.impl("muladd", &muladd_cpu);
  m.impl("mul", &mul_cpu);
  m.impl("add_out", &add_out_cpu);
}

// --- an operator with a function for the cpu, and one that records the history and calls it again

TORCH_LIBRARY_FRAGMENT(shapes, m) { m.def("blend(Tensor self, Tensor other) -> Tensor"); }

at::Tensor blend_cpu(const at::Tensor& self_, const at::Tensor& other_) {
  TORCH_CHECK(self_.sizes() == other_.sizes());
  TORCH_INTERNAL_ASSERT(self_.device().type() == at::DeviceType::CPU);
  at::Tensor self = self_.contiguous();
  at::Tensor other = other_.contiguous();
  at::Tensor result = torch::empty(self.sizes(), self.options());
  const float* self_ptr = self.data_ptr<float>();
  const float* other_ptr = other.data_ptr<float>();
  float* result_ptr = result.data_ptr<float>();
  for (int64_t i = 0; i < result.numel(); i++) result_ptr[i] = 3 * self_ptr[i] + self_ptr[i] * other_ptr[i];
  return result;
}

TORCH_LIBRARY_IMPL(shapes, CPU, m) { m.impl("blend", blend_cpu); }

at::Tensor blend(const at::Tensor& self, const at::Tensor& other) {
  static auto op = c10::Dispatcher::singleton().findSchemaOrThrow("shapes::blend", "").typed<decltype(blend)>();
  return op.call(self, other);
}

class BlendFunction : public torch::autograd::Function<BlendFunction> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, at::Tensor self, at::Tensor other) {
    ctx->save_for_backward({self, other});
    at::AutoDispatchBelowADInplaceOrView guard;
    return blend(self, other);
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* ctx, torch::autograd::tensor_list grads) {
    const auto saved = ctx->get_saved_variables();
    return {grads[0] * (3 + saved[1]), grads[0] * saved[0]};
  }
};

at::Tensor blend_autograd(const at::Tensor& self, const at::Tensor& other) { return BlendFunction::apply(self, other); }

TORCH_LIBRARY_IMPL(shapes, Autograd, m) { m.impl("blend", blend_autograd); }

// --- a class

template <class T>
struct Pile : torch::CustomClassHolder {
  std::vector<T> items;
  Pile(std::vector<T> first) : items(first.begin(), first.end()) {}
  void push(T x) { items.push_back(x); }
  T pop() {
    TORCH_CHECK(!items.empty(), "the pile is empty");
    auto last = items.back();
    items.pop_back();
    return last;
  }
  int64_t size() const { return static_cast<int64_t>(items.size()); }
  c10::intrusive_ptr<Pile> clone() const { return c10::make_intrusive<Pile>(items); }
  void merge(const c10::intrusive_ptr<Pile>& other) {
    for (auto& item : other->items) push(item);
  }
};

c10::intrusive_ptr<Pile<std::string>> turned(const c10::intrusive_ptr<Pile<std::string>>& pile) {
  return c10::make_intrusive<Pile<std::string>>(std::vector<std::string>(pile->items.rbegin(), pile->items.rend()));
}

TORCH_LIBRARY_FRAGMENT(shapes, m) {
  m.class_<Pile<std::string>>("Pile")
      .def(torch::init<std::vector<std::string>>())
      .def("top", [](const c10::intrusive_ptr<Pile<std::string>>& self) { return self->items.back(); })
      .def("push", &Pile<std::string>::push)
      .def("pop", &Pile<std::string>::pop)
      .def("size", &Pile<std::string>::size)
      .def("clone", &Pile<std::string>::clone)
      .def("merge", &Pile<std::string>::merge)
      .def_pickle([](const c10::intrusive_ptr<Pile<std::string>>& self) -> std::vector<std::string> { return self->items; },
                  [](std::vector<std::string> state) -> c10::intrusive_ptr<Pile<std::string>> {
                    return c10::make_intrusive<Pile<std::string>>(std::move(state));
                  });
  m.def("turned(__torch__.torch.classes.shapes.Pile pile) -> __torch__.torch.classes.shapes.Pile", turned);
}

}  // namespace shapes
