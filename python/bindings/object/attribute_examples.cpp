// Examples in the docstrings of Tensor's attributes; tests/python/project/test_docstrings.py runs them.
#include <deque>
#include <string>
#include <string_view>
#include <utility>

#include "object/tensor_object.h"

namespace naru::py {

namespace {

// By attribute name. The examples of functions are in naru/_documentation; these docstrings belong to the type, which is created before any
// Python code runs.
constexpr std::pair<std::string_view, std::string_view> kExamples[] = {
    {"H", ">>> naru.tensor([[1 + 2j, 3j]]).H\ntensor([[1.-2.j],\n        [0.-3.j]])"},
    {"T", ">>> naru.tensor([[1, 2, 3]]).T\ntensor([[1],\n        [2],\n        [3]])"},
    {"data", ">>> x = naru.ones(2, requires_grad=True)\n>>> x.data\ntensor([1., 1.])"},
    {"device", ">>> naru.ones(2).device\ndevice(type='cpu')"},
    {"dtype", ">>> naru.ones(2).dtype\ntorch.float32"},
    {"grad", ">>> x = naru.tensor(3.0, requires_grad=True)\n>>> (x * x).backward(); x.grad\ntensor(6.)"},
    {"grad_fn", ">>> x = naru.ones(1, requires_grad=True)\n>>> x.grad_fn is None, x.exp().grad_fn.name()\n(True, 'ExpBackward0')"},
    {"imag", ">>> naru.tensor([1 + 2j, 3 - 4j]).imag\ntensor([ 2., -4.])"},
    {"is_cpu", ">>> naru.ones(1).is_cpu\nTrue"},
    {"is_cuda", ">>> naru.ones(1).is_cuda\nFalse"},
    {"is_hpu", ">>> naru.ones(1).is_hpu\nFalse"},
    {"is_ipu", ">>> naru.ones(1).is_ipu\nFalse"},
    {"is_leaf", ">>> x = naru.ones(1, requires_grad=True)\n>>> x.is_leaf, (x * 2).is_leaf\n(True, False)"},
    {"is_meta", ">>> naru.empty(2, device=\"meta\").is_meta\nTrue"},
    {"is_mkldnn", ">>> naru.ones(1).is_mkldnn\nFalse"},
    {"is_mps", ">>> naru.ones(1).is_mps\nFalse"},
    {"is_nested", ">>> naru.ones(1).is_nested\nFalse"},
    {"is_quantized", ">>> naru.ones(1).is_quantized\nFalse"},
    {"is_sparse", ">>> naru.eye(2).is_sparse, naru.eye(2).to_sparse().is_sparse\n(False, True)"},
    {"is_sparse_csr", ">>> naru.eye(2).is_sparse_csr, naru.eye(2).to_sparse_csr().is_sparse_csr\n(False, True)"},
    {"is_vulkan", ">>> naru.ones(1).is_vulkan\nFalse"},
    {"is_xla", ">>> naru.ones(1).is_xla\nFalse"},
    {"is_xpu", ">>> naru.ones(1).is_xpu\nFalse"},
    {"itemsize", ">>> naru.ones(2).itemsize, naru.arange(2).itemsize\n(4, 8)"},
    {"layout", ">>> naru.eye(2).to_sparse().layout\ntorch.sparse_coo"},
    {"mH", ">>> naru.tensor([[[1 + 2j, 3j]]]).mH\ntensor([[[1.-2.j],\n         [0.-3.j]]])"},
    {"mT", ">>> naru.tensor([[[1, 2, 3]]]).mT\ntensor([[[1],\n         [2],\n         [3]]])"},
    {"name", ">>> naru.ones(1).name is None\nTrue"},
    {"nbytes", ">>> naru.ones(2, 3).nbytes\n24"},
    {"ndim", ">>> naru.ones(2, 3).ndim\n2"},
    {"output_nr", ">>> naru.ones(2, requires_grad=True).exp().output_nr\n0"},
    {"real", ">>> naru.tensor([1 + 2j, 3 - 4j]).real\ntensor([1., 3.])"},
    {"requires_grad", ">>> x = naru.ones(1)\n>>> x.requires_grad = True; (x * 2).requires_grad\nTrue"},
    {"retains_grad", ">>> y = naru.ones(1, requires_grad=True) * 2\n>>> y.retain_grad(); y.retains_grad\nTrue"},
    {"shape", ">>> naru.ones(2, 3).shape\ntorch.Size([2, 3])"},
};

}  // namespace

const char* attribute_text(const char* name, const char* text) {
  static std::deque<std::string> texts;  // the type keeps pointers into them
  for (const auto& [of, example] : kExamples)
    if (of == name) return texts.emplace_back(std::string(text) + "\n\n" + std::string(example)).c_str();
  return text;
}

}  // namespace naru::py
