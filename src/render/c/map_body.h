// What the kernels of elementwise work share: the text that loads, computes and stores elements.
#pragma once

#include <functional>
#include <string>

#include "ir/program.h"
#include "render/c/dialect.h"

namespace naru::render::c {

// The operands of the program, inputs before outputs, are the pointers m0, m1 ...
struct MapBody {
  const ir::Program& program;
  const Target& target;
  std::function<std::string(int)> place;  // the offset of operand k: of its element, the first of four, or the one that is repeated

  // For one element, whose number is `index`; read(k) is the name of an operand that has been read, "" if it has not.
  std::string of_one(const std::string& index, const std::string& indent, const std::function<std::string(int)>& read = {}) const;
  // For four elements, read at once except for operands that repeat one; `index` is a multiple of four.
  std::string of_four(const std::string& index, const std::function<bool(int)>& repeats) const;
};

}  // namespace naru::render::c
