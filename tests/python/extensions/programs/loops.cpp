// Functions for Python: loops over elements of any floating-point type, derivatives, a module, and NumPy's arrays.
#include <ATen/AccumulateType.h>
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <c10/util/irange.h>
#include <pybind11/numpy.h>
#include <torch/extension.h>

#include <algorithm>
#include <vector>

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// --- boxes that overlap a better one are left out

template <typename scalar_t>
at::Tensor kept_boxes(const at::Tensor& boxes, const at::Tensor& scores, double threshold) {
  TORCH_CHECK(boxes.is_cpu(), "boxes must be a CPU tensor");
  if (boxes.numel() == 0) return at::empty({0}, boxes.options().dtype(at::kLong));
  auto x1_t = boxes.select(1, 0).contiguous(), y1_t = boxes.select(1, 1).contiguous();
  auto x2_t = boxes.select(1, 2).contiguous(), y2_t = boxes.select(1, 3).contiguous();
  at::Tensor areas_t = (x2_t - x1_t) * (y2_t - y1_t);
  auto order_t = std::get<1>(scores.sort(/*dim=*/0, /*descending=*/true));
  const auto n = boxes.size(0);
  at::Tensor dropped_t = at::zeros({n}, boxes.options().dtype(at::kByte));
  at::Tensor keep_t = at::zeros({n}, order_t.options());
  auto dropped = dropped_t.data_ptr<uint8_t>();
  auto keep = keep_t.data_ptr<int64_t>();
  auto order = order_t.data_ptr<int64_t>();
  auto x1 = x1_t.data_ptr<scalar_t>();
  auto y1 = y1_t.data_ptr<scalar_t>();
  auto x2 = x2_t.data_ptr<scalar_t>();
  auto y2 = y2_t.data_ptr<scalar_t>();
  auto areas = areas_t.data_ptr<scalar_t>();
  int64_t count = 0;
  for (const auto a : c10::irange(n)) {
    const auto i = order[a];
    if (dropped[i] == 1) continue;
    keep[count++] = i;
    for (const auto b : c10::irange(a + 1, n)) {
      const auto j = order[b];
      if (dropped[j] == 1) continue;
      const auto width = std::max(static_cast<scalar_t>(0), std::min(x2[i], x2[j]) - std::max(x1[i], x1[j]));
      const auto height = std::max(static_cast<scalar_t>(0), std::min(y2[i], y2[j]) - std::max(y1[i], y1[j]));
      const auto shared = width * height;
      if (shared / (areas[i] + areas[j] - shared) > threshold) dropped[j] = 1;
    }
  }
  return keep_t.narrow(/*dim=*/0, /*start=*/0, /*length=*/count);
}

at::Tensor nms(const at::Tensor& boxes, const at::Tensor& scores, double threshold) {
  TORCH_CHECK(boxes.dim() == 2 && boxes.size(1) == 4, "boxes should be a 2d tensor of 4 columns, got ", boxes.sizes());
  TORCH_CHECK_VALUE(boxes.size(0) == scores.size(0), "boxes and scores should have the same number of rows, got ", boxes.size(0), " and ",
                    scores.size(0));
  auto result = at::empty({0}, boxes.options());
  AT_DISPATCH_FLOATING_TYPES(boxes.scalar_type(), "nms", [&] { result = kept_boxes<scalar_t>(boxes, scores, threshold); });
  return result;
}

// The mean of each `size` x `size` window of a matrix with any strides, through accessors.
at::Tensor window_means(const at::Tensor& x, int64_t size) {
  auto result = torch::zeros({x.size(0) - size + 1, x.size(1) - size + 1}, x.options());
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.type().scalarType(), "window_means", ([&] {
                                    using sum_t = at::acc_type<scalar_t, /*is_cuda=*/true>;
                                    const auto from = x.accessor<scalar_t, 2>();
                                    auto to = result.packed_accessor32<scalar_t, 2, at::DefaultPtrTraits>();
                                    for (int64_t i = 0; i < to.size(0); i++)
                                      for (int64_t j = 0; j < to.size(1); j++) {
                                        sum_t sum = 0;
                                        for (int64_t a = 0; a < size; a++)
                                          for (int64_t b = 0; b < size; b++) sum += static_cast<sum_t>(from[i + a][j + b]);
                                        to[i][j] = static_cast<scalar_t>(sum / static_cast<sum_t>(size * size));
                                      }
                                  }));
  return result;
}

at::Tensor count_above(const at::Tensor& x, double above) {
  const at::Scalar limit = above;
  auto result = at::zeros({}, at::TensorOptions().dtype(at::kLong));
  AT_DISPATCH_SWITCH(x.scalar_type(), "count_above", AT_DISPATCH_CASE_INTEGRAL_TYPES([&] {
                       const auto flat = x.contiguous();
                       const scalar_t* data = flat.const_data_ptr<scalar_t>();
                       const auto least = limit.to<scalar_t>();
                       *result.mutable_data_ptr<int64_t>() =
                           std::count_if(data, data + flat.numel(), [&](scalar_t v) { return v > least; });
                     }) AT_DISPATCH_CASE(at::ScalarType::Float, [&] { result.fill_(x.gt(limit).sum()); }));
  return result;
}

// --- sums of the rows of each segment, on several threads

std::tuple<at::Tensor, at::Tensor> segment_sums(const at::Tensor& src, const at::Tensor& ends) {
  TORCH_CHECK(src.dim() == 2, "src must have 2 dimensions");
  TORCH_CHECK(ends.scalar_type() == at::kLong, "ends must be int64, got ", ends.dtype());
  const int64_t segments = ends.numel() - 1, width = src.size(1);
  auto sums = torch::zeros({segments, width}, src.options());
  auto largest = torch::full({segments}, -1, ends.options());
  const auto* end = ends.data_ptr<int64_t>();
  auto* row_of = largest.data_ptr<int64_t>();
  const int64_t row_stride = src.stride(0), column_stride = src.stride(1);
  AT_DISPATCH_ALL_TYPES(src.scalar_type(), "segment_sums", [&] {
    const scalar_t* from = src.data_ptr<scalar_t>();
    scalar_t* to = sums.data_ptr<scalar_t>();
    at::parallel_for(0, segments, 1, [&](int64_t first, int64_t last) {
      for (int64_t s = first; s < last; s++)
        for (int64_t row = end[s]; row < end[s + 1]; row++) {
          for (int64_t c = 0; c < width; c++) to[s * width + c] += from[row * row_stride + c * column_stride];
          if (row_of[s] < 0 || from[row * row_stride] > from[row_of[s] * row_stride]) row_of[s] = row;
        }
    });
  });
  return std::make_tuple(sums, largest);
}

int64_t sum_in_parallel(int64_t n) {
  return at::parallel_reduce(
      0, n, 100, int64_t{0},
      [](int64_t first, int64_t last, int64_t sum) {
        for (int64_t i = first; i < last; i++) sum += i;
        return sum;
      },
      [](int64_t a, int64_t b) { return a + b; });
}

// --- a function with its derivative in C++

class Smooth : public torch::autograd::Function<Smooth> {
 public:
  static variable_list forward(AutogradContext* ctx, torch::Tensor x, torch::Tensor weight, double power, bool keep) {
    ctx->save_for_backward({x, weight});
    ctx->saved_data["power"] = power;
    ctx->saved_data["keep"] = keep;
    auto rounded = (x * 2).round();
    ctx->mark_non_differentiable({rounded});
    return {x.pow(power) * weight, rounded};
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    auto saved = ctx->get_saved_variables();
    const double power = ctx->saved_data["power"].toDouble();
    torch::Tensor grad_x, grad_weight;
    if (ctx->needs_input_grad(0)) grad_x = grads[0] * saved[1] * power * saved[0].pow(power - 1);
    if (ctx->needs_input_grad(1)) grad_weight = (grads[0] * saved[0].pow(power)).sum_to_size(saved[1].sizes());
    return {grad_x, grad_weight, torch::Tensor(), torch::Tensor()};
  }
};

std::vector<torch::Tensor> smooth(const torch::Tensor& x, const torch::Tensor& weight, double power, bool keep) {
  return Smooth::apply(x, weight, power, keep);
}

// --- a module that is trained in C++, or in Python

struct Net : torch::nn::Module {
  Net(int64_t in, int64_t hidden)
      : first(register_module("first", torch::nn::Linear(in, hidden))), last(register_module("last", torch::nn::Linear(hidden, 1))) {
    scale = register_parameter("scale", torch::ones({1}));
  }
  torch::Tensor forward(torch::Tensor x) { return last(torch::tanh(first(x))) * scale; }
  torch::nn::Linear first, last;
  torch::Tensor scale;
};

double train(std::shared_ptr<Net> net, torch::Tensor x, torch::Tensor y, int64_t steps) {
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  double loss_of_last = 0;
  for (int64_t i = 0; i < steps; i++) {
    py::gil_scoped_release without;
    optimizer.zero_grad();
    auto loss = torch::mse_loss(net->forward(x), y);
    loss.backward();
    optimizer.step();
    loss_of_last = loss.item<double>();
  }
  return loss_of_last;
}

void set_all(std::shared_ptr<Net> net, double value) {
  torch::NoGradGuard guard;
  for (auto& p : net->parameters()) p.fill_(value);
}

// --- numbers, options, and errors

py::array_t<double> doubled_array(py::array_t<double, py::array::c_style | py::array::forcecast> a) {
  auto t = torch::from_blob(a.mutable_data(), {static_cast<int64_t>(a.size())}, torch::kDouble) * 2;
  return py::array_t<double>(a.size(), t.data_ptr<double>());
}

torch::Tensor made(std::vector<int64_t> sizes, py::object dtype, double value) {
  auto options = torch::TensorOptions().dtype(dtype.is_none() ? torch::kFloat32 : py::cast<torch::ScalarType>(dtype)).device(torch::kCPU);
  return torch::full(sizes, value, options);
}

torch::Tensor maybe(c10::optional<torch::Tensor> x, const std::vector<torch::Tensor>& more, torch::Device device) {
  auto result = x.has_value() ? x->to(device) : torch::zeros({1}, device);
  for (const auto& each : more) result = result + each;
  return result;
}

void fails(const std::string& how) {
  TORCH_CHECK(how != "check", "the check of ", 1, " and ", 2.5, " failed");
  TORCH_CHECK_VALUE(how != "value", "a value");
  TORCH_CHECK_INDEX(how != "index", "an index");
  TORCH_CHECK_TYPE(how != "type", "a type");
  TORCH_CHECK_NOT_IMPLEMENTED(how != "not implemented", "not there");
  TORCH_CHECK_EQ(how == "equal" ? 1 : 2, 2);
  if (how == "shape") torch::ones({2, 3}).matmul(torch::ones({2, 3}));
  if (how == "warn") TORCH_WARN("be ", "careful");
  if (how == "standard") throw std::out_of_range("beyond");
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.doc() = "loops";
  m.def("nms", &nms, py::arg("boxes"), py::arg("scores"), py::arg("threshold") = 0.5);
  m.def("window_means", &window_means);
  m.def("count_above", &count_above);
  m.def("segment_sums", &segment_sums, py::call_guard<py::gil_scoped_release>());
  m.def("sum_in_parallel", &sum_in_parallel);
  m.def("smooth", &smooth, py::arg("x"), py::arg("weight"), py::arg("power") = 3.0, py::arg("keep") = true);
  py::class_<Net, std::shared_ptr<Net>>(m, "Net")
      .def(py::init<int64_t, int64_t>())
      .def("forward", &Net::forward)
      .def("parameters", [](Net& self) { return self.parameters(); })
      .def("named", [](Net& self) {
        std::vector<std::string> names;
        for (const auto& item : self.named_parameters()) names.push_back(item.key());
        return names;
      });
  m.def("train", &train);
  m.def("set_all", &set_all);
  m.def("doubled_array", &doubled_array);
  m.def("made", &made, py::arg("sizes"), py::arg("dtype") = py::none(), py::arg("value") = 1.0);
  m.def("maybe", &maybe, py::arg("x") = py::none(), py::arg("more") = std::vector<torch::Tensor>(),
        py::arg("device") = torch::Device(torch::kCPU));
  m.def("fails", &fails);
}
