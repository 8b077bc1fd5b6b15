// Of process groups, the errors alone: on systems without the layer that does the work (src/CMakeLists.txt). python/naru/distributed says so at use.
#include "device/distributed.h"

namespace naru::py {

void define_distributed(nb::module_& m) { static_cast<void>(define_dist_errors(m)); }

}  // namespace naru::py
