// Filling of uninitialized memory (from `empty` and growing storages) when deterministic algorithms are on.
#pragma once

namespace naru {

// True if such memory is filled in deterministic mode; this is the default.
bool fills_uninitialized_memory() noexcept;
void fill_uninitialized_memory(bool on) noexcept;

}  // namespace naru
