// Its name before headers had folders.
#pragma once
#include "naru/nn/images.h"
