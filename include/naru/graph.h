// Its name before headers had folders.
#pragma once
#include "naru/device/graph.h"
