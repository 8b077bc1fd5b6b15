// Its name before headers had folders.
#pragma once
#include "naru/ops/masked.h"
