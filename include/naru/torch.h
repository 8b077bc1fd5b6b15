// libtorch's names: a C++ program written for libtorch can include this instead of <torch/torch.h>. namespace torch has all of naru's
// names, and those that libtorch spells differently: TensorOptions, kFloat, kCUDA, NoGradGuard, ModuleHolder and TORCH_MODULE,
// nn::...Options, optim::...Options and param_groups(), data::make_data_loader, save and load (for PyTorch's files, not TorchScript's). Not
// supported: the JIT, and options that naru does not need (inplace is accepted and ignored).
#pragma once

#include "naru/torch/data.h"
#include "naru/torch/dispatch.h"
#include "naru/torch/functional.h"
#include "naru/torch/library.h"
#include "naru/torch/modules.h"
#include "naru/torch/optim.h"
#include "naru/torch/parallel.h"
#include "naru/torch/tensor.h"
