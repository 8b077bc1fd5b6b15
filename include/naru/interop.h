// Its name before headers had folders.
#pragma once
#include "naru/interop/interop.h"
