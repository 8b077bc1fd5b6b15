// gradcheck: compares gradients with finite differences.
#include <fmt/format.h>

#include "naru/autograd/derivatives.h"
#include "naru/ops.h"
#include "naru/ops/complex.h"

namespace naru::autograd {
namespace {

using List = std::vector<Tensor>;

// Complex tensors as pairs of reals, because only functions of real numbers are differentiated.
Tensor parts(const Tensor& t) { return is_complex(t.dtype()) ? view_as_real(t) : t; }

List detached(const List& list) {
  List result;
  for (const Tensor& t : list) result.push_back(parts(t.detach().clone()));
  return result;
}

std::string text_of(const Tensor& row) {
  std::string text = "tensor([";
  for (const double v : row.to_doubles()) text += fmt::format("{}{:.6g}", text.back() == '[' ? "" : ", ", v);
  return text + "])";
}

// The i-th element in row-major order, as a view, for any strides.
Tensor element_of(Tensor t, int64_t i) {
  while (t.dim() > 0) {
    const int64_t size = t.size(-1);
    t = t.select(-1, i % size);
    i /= size;
  }
  return t;
}

// Returns [i][k]: the central difference of output k for element i of `input`.
std::vector<List> differences(const TensorFunction& f, const List& inputs, const Tensor& input, double eps) {
  const NoGrad off;
  const Tensor whole = input.data();
  for (int64_t d = 0; d < whole.dim(); ++d)
    if (whole.stride(d) == 0 && whole.size(d) > 1)
      throw RuntimeError("gradcheck: an input has a dimension with stride 0, whose elements are one in memory; pass a clone of it");
  const Tensor each = parts(whole);
  std::vector<List> columns;
  for (int64_t i = 0; i < each.numel(); ++i) {
    Tensor element = element_of(each, i);
    const double value = element.item<double>();
    element.fill_(value + eps);
    const List high = detached(f(inputs));
    element.fill_(value - eps);
    const List low = detached(f(inputs));
    element.fill_(value);
    List& column = columns.emplace_back();
    for (size_t k = 0; k < high.size(); ++k) column.push_back(((high[k] - low[k]) / (2 * eps)).reshape({-1}));
  }
  return columns;
}

// Compares one row of the Jacobian, computed twice, with the differences. Returns what differs, if anything.
std::optional<std::string> compare_row(const Tensor& out, size_t number, int64_t j, const Tensor& input, size_t position,
                                       const std::vector<List>& columns, const GradcheckOptions& o) {
  Tensor seed = zeros_like(out.detach(), Options(out.dtype())).contiguous();
  seed.reshape({-1}).select(0, j).fill_(1);
  List rows;
  for (int twice = 0; twice < 2; ++twice) {
    Tensor g = grad({out}, {input}, {seed}, true, false, true)[0];
    if (o.check_grad_dtypes && g.defined() && g.dtype() != input.dtype())
      return fmt::format("Backward gave a gradient of {} for input {} of {}", name_of(g.dtype()), position, name_of(input.dtype()));
    rows.push_back(parts(g.defined() ? g.detach() : zeros_like(input.detach())));
  }
  if (!allclose(rows[0], rows[1], 0, o.nondet_tol, true))
    return fmt::format(
        "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different values, although "
        "analytical gradient matches numerical gradient. The tolerance for nondeterminism was {}.",
        o.nondet_tol);
  const Tensor row = rows[0].reshape({-1});
  if (columns.empty()) return {};
  List wanted;
  for (const List& column : columns) wanted.push_back(column[number].select(0, j));
  const Tensor numerical = stack(wanted);
  if (allclose(row, numerical, o.rtol, o.atol)) return {};
  return fmt::format("Jacobian mismatch for output {} with respect to input {},\nnumerical:{}\nanalytical:{}", number, position,
                     text_of(numerical), text_of(row));
}

bool passed(const std::optional<std::string>& failure) {
  if (failure) throw GradcheckError(*failure);
  return true;
}

List with_gradient(const List& list) {
  List found;
  for (const Tensor& t : list)
    if (t.defined() && t.requires_grad()) found.push_back(t);
  return found;
}

}  // namespace

std::optional<std::string> gradcheck_failure(const TensorFunction& f, const List& inputs, const GradcheckOptions& options) {
  const List watched = with_gradient(inputs);
  if (watched.empty())
    throw ValueError("gradcheck expects at least one input tensor to require gradient, but none of the them have requires_grad=True.");
  for (size_t position = 0; position < watched.size(); ++position) {
    const std::vector<List> columns = differences(f, inputs, watched[position], options.eps);
    const EnableGrad on;
    List outputs = f(inputs);
    for (Tensor& out : outputs) out = parts(out);
    for (size_t number = 0; number < outputs.size(); ++number)
      if (outputs[number].requires_grad())
        for (int64_t j = 0; j < outputs[number].numel(); ++j)
          if (auto failure = compare_row(outputs[number], number, j, watched[position], position, columns, options)) return failure;
  }
  return {};
}

bool gradcheck(const TensorFunction& f, const List& inputs, const GradcheckOptions& options) {
  return passed(gradcheck_failure(f, inputs, options));
}

std::optional<std::string> gradgradcheck_failure(const TensorFunction& f, const List& inputs, const List& grad_outputs,
                                                 const GradcheckOptions& options) {
  List starts = grad_outputs, all = inputs;
  if (starts.empty()) {
    const EnableGrad on;
    for (const Tensor& out : with_gradient(f(inputs)))
      starts.push_back(randn(out.sizes(), Options(out.dtype(), out.device())).requires_grad_());
  }
  all.insert(all.end(), starts.begin(), starts.end());
  // Record even if gradcheck itself runs in no-grad mode.
  const TensorFunction first = [&](const List& given) {
    const EnableGrad on;
    const auto middle = given.begin() + static_cast<std::ptrdiff_t>(inputs.size());
    const List own(given.begin(), middle), start(middle, given.end());
    List found;
    for (Tensor& g : grad(with_gradient(f(own)), with_gradient(own), start, true, true, true))
      if (g.defined()) found.push_back(std::move(g));
    return found;
  };
  return gradcheck_failure(first, all, options);
}

bool gradgradcheck(const TensorFunction& f, const List& inputs, const List& grad_outputs, const GradcheckOptions& options) {
  return passed(gradgradcheck_failure(f, inputs, grad_outputs, options));
}

}  // namespace naru::autograd
