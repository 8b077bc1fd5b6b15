// All of naru.
#pragma once

#include "naru/amp.h"
#include "naru/autograd.h"
#include "naru/data.h"
#include "naru/device.h"
#include "naru/devices.h"
#include "naru/dims.h"
#include "naru/dtype.h"
#include "naru/error.h"
#include "naru/kernel.h"
#include "naru/nn.h"
#include "naru/ops.h"
#include "naru/optim.h"
#include "naru/random.h"
#include "naru/samplers.h"
#include "naru/scalar.h"
#include "naru/tensor.h"
