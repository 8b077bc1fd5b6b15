// Its name before headers had folders.
#pragma once
#include "naru/nn/utils.h"
