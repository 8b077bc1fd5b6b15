// Blocks of transposed matrices, made unit_stride.
#pragma once

#include <cstdint>

namespace naru::host {

// target[i * target_step + j * item] = source[j * source_step + i * item] for i < rows, j < cols (steps in bytes; item
// 1, 2, 4 or 8). streaming: past the caches; the target's lines must be 64-byte aligned, and the caller fences
// (stream_fence) before others read.
void transpose(const char* source, int64_t source_step, int64_t item, int64_t rows, int64_t cols, char* target, int64_t target_step,
               bool streaming = false) noexcept;

// Makes streamed stores visible before what follows.
void stream_fence() noexcept;

}  // namespace naru::host
