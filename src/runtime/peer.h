// Copies from one device's memory unit_stride to another's: tried once for each pair before they are relied on.
#pragma once

#include "naru/device.h"

namespace naru::runtime {

// Whether bytes copied from `from` to `to` arrive as they were; found out by a copy at the first question. False too where the driver does
// not offer it. Whoever gets false copies through the host's memory.
bool peer_works(Device from, Device to);
// Forgets what was found out: devices were replaced.
void forget_peers();
// Whether this thread is just finding out: such copies are nobody's.
bool checking_peers() noexcept;

}  // namespace naru::runtime
