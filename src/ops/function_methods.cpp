// The methods of naru/function_methods.inc.
#include "naru/complex.h"
#include "naru/counting.h"
#include "naru/linalg.h"
#include "naru/other_names.h"
#include "naru/scattered_views.h"
#include "naru/selecting.h"
#include "naru/sparse.h"
#include "naru/special.h"

namespace naru {

#include "ops/function_methods.inc"

}  // namespace naru
