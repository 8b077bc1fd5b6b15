// Its name before headers had folders.
#pragma once
#include "naru/optim/steps.h"
