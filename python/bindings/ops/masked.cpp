// The functions behind naru/masked.py, which implements torch.masked. Their names say what they do.
#include "naru/ops/masked.h"

#include "object/tensor_object.h"

namespace naru::py {
namespace {

using MaskedReduction = Tensor (*)(const Tensor&, const Tensor&, const OptionalDims&, bool, OptType);
using Extreme = Tensor (*)(const Tensor&, const Tensor&, OptInt, bool, OptType);
using AlongDim = Tensor (*)(const Tensor&, const Tensor&, int64_t, OptType);
using Spread = Tensor (*)(const Tensor&, const Tensor&, const OptionalDims&, double, bool, OptType);

void define_masked_reductions() {
  constexpr std::pair<const char*, MaskedReduction> kReductions[] = {
      {"_masked_sum", &masked::sum},   {"_masked_prod", &masked::prod}, {"_masked_amax", &masked::amax},
      {"_masked_amin", &masked::amin}, {"_masked_mean", &masked::mean}, {"_masked_logsumexp", &masked::logsumexp}};
  for (const auto& [name, f] : kReductions)
    def(kFunction, name, "input, mask, dim, keepdim, dtype", "",
        [f = f](const Tensor& t, const OptTensor& mask, const OptionalDims& dim, bool keepdim, OptType dtype) {
          return f(t, or_undefined(mask), dim, keepdim, dtype);
        });
  constexpr std::pair<const char*, Extreme> kExtremes[] = {{"_masked_argmax", &masked::argmax}, {"_masked_argmin", &masked::argmin}};
  for (const auto& [name, f] : kExtremes)
    def(kFunction, name, "input, mask, dim, keepdim, dtype", "",
        [f = f](const Tensor& t, const OptTensor& mask, OptInt dim, bool keepdim, OptType dtype) {
          return f(t, or_undefined(mask), dim, keepdim, dtype);
        });
  constexpr std::pair<const char*, Spread> kSpreads[] = {{"_masked_var", &masked::var}, {"_masked_std", &masked::std}};
  for (const auto& [name, f] : kSpreads)
    def(kFunction, name, "input, mask, dim, correction, keepdim, dtype", "",
        [f = f](const Tensor& t, const OptTensor& mask, const OptionalDims& dim, double correction, bool keepdim, OptType dtype) {
          return f(t, or_undefined(mask), dim, correction, keepdim, dtype);
        });
  def(kFunction, "_masked_median", "input, mask, dim, keepdim, dtype", "",
      [](const Tensor& t, const OptTensor& mask, int64_t dim, bool keepdim, OptType dtype) {
        return masked::median(t, or_undefined(mask), dim, keepdim, dtype);
      });
  def(kFunction, "_masked_norm", "input, mask, ord, dim, keepdim, dtype", "",
      [](const Tensor& t, const OptTensor& mask, double ord, const OptionalDims& dim, bool keepdim, OptType dtype) {
        return masked::norm(t, or_undefined(mask), ord, dim, keepdim, dtype);
      });
}

}  // namespace

void define_masked() {
  define_masked_reductions();
  constexpr std::pair<const char*, AlongDim> kAlong[] = {{"_masked_cumsum", &masked::cumsum},
                                                         {"_masked_cumprod", &masked::cumprod},
                                                         {"_masked_softmax", &masked::softmax},
                                                         {"_masked_softmin", &masked::softmin},
                                                         {"_masked_log_softmax", &masked::log_softmax}};
  for (const auto& [name, f] : kAlong)
    def(kFunction, name, "input, mask, dim, dtype", "",
        [f = f](const Tensor& t, const OptTensor& mask, int64_t dim, OptType dtype) { return f(t, or_undefined(mask), dim, dtype); });
  def(kFunction, "_masked_logaddexp", "input, other, input_mask, other_mask, dtype", "",
      [](const Tensor& a, const Tensor& b, const OptTensor& a_mask, const OptTensor& b_mask, OptType dtype) {
        return masked::logaddexp(a, b, or_undefined(a_mask), or_undefined(b_mask), dtype);
      });
  def(kFunction, "_masked_normalize", "input, mask, ord, dim, eps, dtype", "",
      [](const Tensor& t, const OptTensor& mask, double ord, int64_t dim, double eps, OptType dtype) {
        return masked::normalize(t, or_undefined(mask), ord, dim, eps, dtype);
      });
}

}  // namespace naru::py
