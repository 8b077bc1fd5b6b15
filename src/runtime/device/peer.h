// Direct (peer-to-peer) copies between devices: tested once for each pair before they are relied on.
#pragma once

#include "naru/device.h"

namespace naru::runtime {

// True if bytes copied from `from` to `to` arrive unchanged; the first call tests this by a copy. False also if the driver does not support
// it. If false, copy through host memory.
bool peer_works(Device from, Device to);
// Forgets all results, because devices were replaced.
void forget_peers();
// True while this thread runs the test copy; such copies are internal and not attributed to the user.
bool checking_peers() noexcept;

}  // namespace naru::runtime
