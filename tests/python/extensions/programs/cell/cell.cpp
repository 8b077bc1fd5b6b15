// A recurrent cell with its derivative written by hand: lists of tensors in and out.
#include <torch/extension.h>

#include <iostream>
#include <vector>

torch::Tensor slope_of_sigmoid(torch::Tensor z) {
  auto s = torch::sigmoid(z);
  return (1 - s) * s;
}

torch::Tensor slope_of_tanh(torch::Tensor z) { return 1 - z.tanh().pow(2); }

// elu'(z) for alpha = 1
torch::Tensor slope_of_elu(torch::Tensor z, torch::Scalar alpha = 1.0) {
  auto e = z.exp();
  auto mask = (alpha * (e - 1)) < 0;
  return (z > 0).type_as(z) + mask.type_as(z) * (alpha * e);
}

#define CHECK_FLOATING(x) TORCH_CHECK(x.is_floating_point(), #x " must be floating-point, got ", x.scalar_type())

std::vector<at::Tensor> cell_forward(torch::Tensor input, torch::Tensor weights, torch::Tensor bias, torch::Tensor state,
                                     torch::Tensor memory) {
  CHECK_FLOATING(input);
  TORCH_CHECK(input.dim() == 2, "input must have 2 dimensions, got ", input.dim());
  auto joined = torch::cat({state, input}, /*dim=*/1);
  auto gate_inputs = torch::addmm(bias, joined, weights.transpose(0, 1));
  auto gates = gate_inputs.chunk(3, /*dim=*/1);
  auto let_in = torch::sigmoid(gates[0]);
  auto let_out = torch::sigmoid(gates[1]);
  auto candidate = torch::elu(gates[2], /*alpha=*/1.0);
  auto new_memory = memory + candidate * let_in;
  auto new_state = torch::tanh(new_memory) * let_out;
  return {new_state, new_memory, let_in, let_out, candidate, joined, gate_inputs};
}

std::vector<torch::Tensor> cell_backward(torch::Tensor grad_state, torch::Tensor grad_memory, torch::Tensor new_memory,
                                         torch::Tensor let_in, torch::Tensor let_out, torch::Tensor candidate, torch::Tensor joined,
                                         torch::Tensor gate_inputs, torch::Tensor weights) {
  auto d_let_out = torch::tanh(new_memory) * grad_state;
  auto d_tanh_memory = let_out * grad_state;
  auto d_new_memory = slope_of_tanh(new_memory) * d_tanh_memory + grad_memory;
  auto d_memory = d_new_memory;
  auto d_candidate = let_in * d_new_memory;
  auto d_let_in = candidate * d_new_memory;
  auto gates = gate_inputs.chunk(3, /*dim=*/1);
  d_let_in *= slope_of_sigmoid(gates[0]);
  d_let_out *= slope_of_sigmoid(gates[1]);
  d_candidate *= slope_of_elu(gates[2]);
  auto d_gates = torch::cat({d_let_in, d_let_out, d_candidate}, /*dim=*/1);
  auto d_weights = d_gates.t().mm(joined);
  auto d_bias = d_gates.sum(/*dim=*/0, /*keepdim=*/true);
  auto d_joined = d_gates.mm(weights);
  const auto size = grad_state.size(1);
  auto d_state = d_joined.slice(/*dim=*/1, 0, size);
  auto d_input = d_joined.slice(/*dim=*/1, size);
  return {d_input, d_weights, d_bias, d_state, d_memory};
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("forward", &cell_forward, "the cell's step");
  m.def("backward", &cell_backward, "its derivative");
}
