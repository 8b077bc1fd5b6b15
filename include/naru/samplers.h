// Its name before headers had folders.
#pragma once
#include "naru/data/samplers.h"
