#pragma once

namespace naru::render::c {

// float64's type and functions, as a dialect's `doubles` and `functions` have them, and those for its operators: add_f64 ... (soft_float64.cpp).
extern const char* const kSoftFloat64;

}  // namespace naru::render::c
