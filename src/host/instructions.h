// One function per kind of instruction; execute() dispatches to them.
#pragma once

#include <memory>

#include "ir/instruction.h"

namespace naru::host {

void run(const ir::Map&);
void run(const ir::Reduce&);
void run(const ir::ArgReduce&);
void run(const ir::Scan&);
void run(const ir::Gather&);
void run(const ir::Scatter&);
void run(const ir::MatMul&);
void run(const ir::Sort&);
void run(const ir::CopyBytes&);
void run(const ir::RowFused&);
void run(const ir::UserKernel&);

// Compiles it, if it has not been yet; throws what the compiler says.
void prepare(const ir::UserKernel&);

// An instruction with all that follows from it worked out, to be done again and again. It must stay where it is; its parameters may change.
class Prepared {
 public:
  virtual ~Prepared() = default;
  virtual void run() = 0;
};
// Null: there is nothing to work out.
std::unique_ptr<Prepared> prepared(const ir::Map&);
std::unique_ptr<Prepared> prepared(const ir::Reduce&);
std::unique_ptr<Prepared> prepared(const ir::MatMul&);

// A part of an ir::RowFused, laid out once, to be run for some rows at a time: by several threads, each row once.
class RowPart {
 public:
  virtual ~RowPart() = default;
  // Rows [begin, end). kept: where values are kept from part to part, those of row `begin` first.
  virtual void run(int64_t begin, int64_t end, char* kept) const = 0;
  // After all rows.
  virtual void finish() {}
  virtual double nanoseconds() const = 0;
  virtual bool reduces_rows() const { return false; }
};
// The instruction must outlive it. kept: the address that stands for the values kept; keeps: it is this part that keeps them.
std::unique_ptr<RowPart> row_part(const ir::Map&, const void* kept, int64_t rows);
std::unique_ptr<RowPart> row_part(const ir::Reduce&, bool keeps, int64_t rows);

}  // namespace naru::host
