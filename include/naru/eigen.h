// Its name before headers had folders.
#pragma once
#include "naru/interop/eigen.h"
