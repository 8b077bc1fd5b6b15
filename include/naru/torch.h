// libtorch's names, for those who want them: a C++ program written for libtorch includes this in place of <torch/torch.h>. namespace torch has all of
// naru's names and those that libtorch spells otherwise: TensorOptions, kFloat, kCUDA, NoGradGuard, ModuleHolder and TORCH_MODULE, nn::...Options,
// optim::...Options, data::make_data_loader. What is not there: torch::save and load, the JIT, and options that naru has no use for (inplace and
// workers are taken and not looked at).
#pragma once

#include "naru/torch/data.h"
#include "naru/torch/modules.h"
#include "naru/torch/optim.h"
#include "naru/torch/tensor.h"
