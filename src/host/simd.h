// Functions compiled several times, for processors with and without wide vectors; the loader picks. IEEE operations are the same on all of
// them and are never contracted, so the bits are too.
#pragma once

// Function multiversioning goes through ifuncs, which run before a sanitizer's own start-up.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define NARU_WIDE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define NARU_WIDE
#endif
