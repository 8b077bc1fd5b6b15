// How the dialect of users' kernels (docs/kernels.md) is spelled in a language of devices.
#pragma once

#include "render/c/dialect.h"

namespace naru::render::c {

struct UserDialect {
  const char* prelude;                    // in front of the source
  const char* entry;                      // of a kernel in groups of {} items: "kernel __attribute__((...)) void"
  const char* any_entry;                  // in groups of any size
  const char *global, *shared, *barrier;  // what these words of the dialect mean, shared for an array
  const char *shared_pointer, *private_pointer;
  const char *constant, *constant_pointer;
  const char *group, *item;  // numbers of the group and of the item in it
};

const UserDialect& user_dialect(const Dialect& dialect) noexcept;
// Plain C, for the machine's compiler.
const UserDialect& user_c() noexcept;
// The renderer's own words in plain C, behind user_c()'s prelude.
const Dialect& plain_c() noexcept;

// What follows each prelude: the place of an item in the grid, and the words that ask for it. Needs naru_i.
extern const char* const kPlace;

}  // namespace naru::render::c
