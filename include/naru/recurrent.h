// Its name before headers had folders.
#pragma once
#include "naru/ops/recurrent.h"
