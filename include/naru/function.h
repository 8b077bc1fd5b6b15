// Its name before headers had folders.
#pragma once
#include "naru/autograd/function.h"
