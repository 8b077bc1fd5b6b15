// Indexed: the result of x[{...}] and x[mask], which can be read as a tensor or assigned to. Included by naru/tensor.h.
//
//   x[mask] = 0;                    writes to x; so do x[{Slice(), 0}] = y and x[{Ellipsis, positions}] += 1
//   Tensor y = x[mask];             the elements themselves
//   x[{Slice(), 0}].sum({0})        all methods of Tensor
//
// An index without tensors makes a view at once. With a mask or positions, the read is lazy, so that an assignment alone gathers nothing
// and waits for no device. Store such a result as a Tensor, not as `auto`: reading it after x has changed throws RuntimeError.
#pragma once

#include "naru/tensor.h"

namespace naru {

class Indexed {
 public:
  // Throws IndexError if the indices don't fit x.
  Indexed(const Tensor& x, std::span<const Index> indices);

  const Tensor& read() const;
  operator Tensor() const& { return read(); }
  operator Tensor() &&;
  // Writes the value, converted and broadcast, to the indexed elements. Throws RuntimeError if it doesn't broadcast.
  const Indexed& operator=(const Operand& value) &&;
  const Indexed& operator=(const Indexed& value) &&;
  // Deleted because it is ambiguous: after auto y = x[mask], would y = z write to x or rebind y? Write x[mask] = z, or declare y as a
  // Tensor.
  Indexed& operator=(const Operand& value) & = delete;
  Indexed& operator=(const Indexed& value) & = delete;
  Indexed(const Indexed&);
  ~Indexed();

  const Indexed& operator+=(const Operand& value) const;
  const Indexed& operator-=(const Operand& value) const;
  const Indexed& operator*=(const Operand& value) const;
  const Indexed& operator/=(const Operand& value) const;

  template <class I>
  decltype(auto) operator[](const I& index) const {
    return read()[index];
  }
  Indexed operator[](IndexList indices) const;
  template <class T>
  T item(SourceLocation where = NARU_CURRENT_LOCATION) const {
    return read().item<T>(where);
  }
  template <class T>
  T* data(SourceLocation where = NARU_CURRENT_LOCATION) const {
    return read().data<T>(where);
  }
  template <class T>
  T* data_ptr(SourceLocation where = NARU_CURRENT_LOCATION) const {
    return read().data_ptr<T>(where);
  }
#define NARU_OP1(name, rule, lo, hi, expr, da, doc) \
  Tensor name() const;                              \
  Tensor name##_() const;
#define NARU_OP2(name, rule, lo, hi, expr, da, db, doc) \
  Tensor name(const Operand& b) const;                  \
  Tensor name##_(const Operand& b) const;
#define NARU_OP3(name, rule, lo, hi, expr, da, db, dc, doc) \
  Tensor name(const Operand& b, const Operand& c) const;    \
  Tensor name##_(const Operand& b, const Operand& c) const;
#include "naru/elementwise.inc"
#undef NARU_OP1
#undef NARU_OP2
#undef NARU_OP3
#include "naru/indexed_methods.inc"

 private:
  const Indexed& write(const Operand& value) const;
  const Indexed& update(const Tensor& (Tensor::*in_place)(const Operand&) const, const Operand& value) const;
  uint64_t versions() const;

  mutable Tensor read_;  // the result, once read; for an index without tensors, the view
  Tensor x_;             // for an index with tensors: the indexed tensor
  std::vector<Index> parts_;
  uint64_t seen_ = 0;  // versions of x_ and of the tensors in parts_ at creation
};

inline Index::Index(const Indexed& t) : Index(t.read()) {}
inline Operand::Operand(const Indexed& t) : Operand(t.read()) {}
template <std::same_as<bool> T>
Indexed Tensor::operator[](T whole_or_nothing) const {
  return (*this)[{Index(whole_or_nothing)}];
}

}  // namespace naru
