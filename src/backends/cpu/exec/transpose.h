// Cache-blocked transpose.
#pragma once

#include <cstdint>

namespace naru::cpu {

// target[i * target_step + j * item] = source[j * source_step + i * item] for i < rows, j < cols. Steps are in bytes; item is 1, 2, 4 or 8.
// streaming: uses non-temporal stores; the target's rows must be 64-byte aligned, and the caller must call stream_fence() before other
// threads read.
void transpose(const char* source, int64_t source_step, int64_t item, int64_t rows, int64_t cols, char* target, int64_t target_step,
               bool streaming = false) noexcept;

// Makes streamed stores visible before later stores.
void stream_fence() noexcept;

}  // namespace naru::cpu
