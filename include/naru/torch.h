// libtorch's names, for those who want them: a C++ program written for libtorch includes this in place of <torch/torch.h>. namespace torch has all of
// naru's names and those that libtorch spells otherwise: TensorOptions, kFloat, kCUDA, NoGradGuard, ModuleHolder and TORCH_MODULE, nn::...Options,
// optim::...Options and param_groups(), data::make_data_loader, save and load (of PyTorch's files, not of TorchScript's). What is not there: the JIT, and
// options that naru has no use for (inplace is taken and not looked at).
#pragma once

#include "naru/torch/data.h"
#include "naru/torch/functional.h"
#include "naru/torch/modules.h"
#include "naru/torch/optim.h"
#include "naru/torch/tensor.h"
