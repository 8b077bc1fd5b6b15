// Its name before headers had folders.
#pragma once
#include "naru/source_location.h"
