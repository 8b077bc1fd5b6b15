// Code compiled for several instruction sets. wide_level() selects among the namespaces plain, avx2 and avx512. NARU_WIDE compiles a plain
// loop several times, and the loader picks one. IEEE operations are the same on all of them and are never contracted, so the bits are the
// same too.
#pragma once

// Function multiversioning uses ifuncs, which run before a sanitizer has initialised.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define NARU_WIDE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define NARU_WIDE
#endif

namespace naru::cpu {

// 2: AVX-512 (F, BW, DQ, VL); 1: AVX2 with FMA, or NARU_LOOP_ISA=avx2; 0: neither.
int wide_level() noexcept;

}  // namespace naru::cpu
