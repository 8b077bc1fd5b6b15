// What `empty` and growing storages put into memory that nobody has written, while deterministic algorithms are asked for.
#pragma once

namespace naru {

// Whether such memory is filled in deterministic mode: at first it is.
bool fills_uninitialized_memory() noexcept;
void fill_uninitialized_memory(bool on) noexcept;

}  // namespace naru
