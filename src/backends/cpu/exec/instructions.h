// One function per kind of instruction, chosen by overload: run() for all, others for those kinds that have them.
#pragma once

#include <memory>
#include <thread>

#include "ir/instruction.h"

namespace naru::cpu {

void run(const ir::Map&);
void run(const ir::Reduce&);
void run(const ir::ArgReduce&);
void run(const ir::Scan&);
void run(const ir::Gather&);
void run(const ir::Scatter&);
void run(const ir::MatMul&);
void run(const ir::Convolution&);
void run(const ir::Windows&);
void run(const ir::Sort&);
void run(const ir::Nonzero&);
void run(const ir::Lapack&);
void run(const ir::Fft&);
void run(const ir::Attention&);
void run(const ir::CopyBytes&);
void run(const ir::RowFused&);
void run(const ir::MapEach&);
void run(const ir::UserKernel&);
void run(const ir::Exchange&);

// For kinds that a compiler must see first: compiles it, if it has not been yet; throws what the compiler says.
void compile(const ir::UserKernel&);
// Ends the kernel with loops, if there is one, that runs on behalf of that thread.
void cancel_kernels_of(std::thread::id owner);

// An instruction with all that follows from it worked out, to be done again and again. It must stay where it is; its parameters may change.
class Prepared {
 public:
  virtual ~Prepared() = default;
  virtual void run() = 0;
};
// For kinds that are worth it; the others are executed each time. Null: there is nothing to work out.
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
// The instruction must outlive it.
struct PartRows {
  int64_t count = 0;
  const void* kept = nullptr;  // the address that stands for the values that an earlier part has kept
  bool keeps = false;          // it is this part that keeps them
};
std::unique_ptr<RowPart> row_part(const ir::Map&, const PartRows& rows);
std::unique_ptr<RowPart> row_part(const ir::Reduce&, const PartRows& rows);

}  // namespace naru::cpu
