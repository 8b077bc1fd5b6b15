// own_product.h for any processor. Without a fused multiply-add of its own the library's is called: slow, with the same bits.
#include "host/own_product.h"

namespace naru::host::plain {

constexpr int kVectorBytes = 16, kTileRows = 4;
#include "host/own_product.inc"

}  // namespace naru::host::plain
