// libtorch's header of this name, for extensions (torch.utils.cpp_extension).
#pragma once
#include "naru/torch/dispatch.h"
