// Its name before headers had folders.
#pragma once
#include "naru/optim/averaged_model.h"
