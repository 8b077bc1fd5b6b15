// Its name before headers had folders.
#pragma once
#include "naru/io/checkpoint.h"
