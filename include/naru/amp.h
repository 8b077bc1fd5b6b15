// Its name before headers had folders.
#pragma once
#include "naru/optim/amp.h"
