// Indexed: what x[{...}] and x[mask] give: to be read as a tensor, or to be assigned to. Included by naru/tensor.h.
//
//   x[mask] = 0;                    writes to x, as x[{Slice(), 0}] = y and x[{Ellipsis, positions}] += 1 do
//   Tensor y = x[mask];             the elements themselves
//   x[{Slice(), 0}].sum({0})        all methods of Tensor
//
// Without tensors in it an index gives a view at once. With a mask or positions nothing is read before it is asked for, so that an
// assignment alone gathers nothing and waits for no device. Keep such a one as a Tensor, not as `auto`: read after x has changed it would no
// longer be what it was, which is a RuntimeError.
#pragma once

#include "naru/tensor.h"

namespace naru {

class Indexed {
 public:
  // Throws IndexError where the indices don't fit x.
  Indexed(const Tensor& x, std::span<const Index> indices);

  const Tensor& read() const;
  operator Tensor() const& { return read(); }
  operator Tensor() &&;
  // Converted and broadcast into the indexed elements. Throws RuntimeError where the value doesn't broadcast.
  const Indexed& operator=(const Operand& value) &&;
  const Indexed& operator=(const Indexed& value) &&;
  // auto y = x[mask]; y = z: would it write to x, or is it another y? x[mask] = z writes; keep y as a Tensor otherwise.
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
  T item(Place where = NARU_CALLER) const {
    return read().item<T>(where);
  }
  template <class T>
  T* data(Place where = NARU_CALLER) const {
    return read().data<T>(where);
  }
  template <class T>
  T* data_ptr(Place where = NARU_CALLER) const {
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

  mutable Tensor read_;  // once it was asked for; of an index without tensors the view
  Tensor x_;             // of an index with tensors: what is read and written, and where
  std::vector<Index> parts_;
  uint64_t seen_ = 0;  // versions of x_ and of the tensors in parts_
};

inline Index::Index(const Indexed& t) : Index(t.read()) {}
inline Operand::Operand(const Indexed& t) : Operand(t.read()) {}
template <std::same_as<bool> T>
Indexed Tensor::operator[](T whole_or_nothing) const {
  return (*this)[{Index(whole_or_nothing)}];
}

}  // namespace naru
