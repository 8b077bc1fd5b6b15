// Its name before headers had folders.
#pragma once
#include "naru/interop/dlpack.h"
