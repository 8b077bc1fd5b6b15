// The first few elements of long rows in the order of a stable sort, by one kernel, for devices whose neighbouring items process neighbouring
// elements: a sort of the whole rows takes a dozen kernels and more.
#pragma once

#include "render/c/launch.h"

namespace naru::render::c {

struct Selection {
  const ir::Sort& op;
  const ir::Space& kept;  // the rows, in three operands: in, values, indices
  bool wide;
};
// Whether a group can select the first op.k elements of a row. False also if what is written overlaps the input: a group may write a row that
// another has yet to read.
bool can_select(const ir::Sort& op, const Target& target);
void select_first(const Selection& selection, Launcher& launcher);

}  // namespace naru::render::c
