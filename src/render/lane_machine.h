// A lane machine emits the code of one primitive for a step of L lanes (AVX-512: 16, AVX2: 8, NEON: 4). Each instruction set has one. Planning,
// walking and loops use only this interface.
#pragma once

#include <cstdint>
#include <span>

#include "ir/expr.h"
#include "render/assembler.h"

namespace naru::render {

using ir::Prim;
using ir::VType;

constexpr int parts_of(VType t) noexcept { return t == VType::I64 || t == VType::F64 ? 2 : 1; }
// The element type with the same values as a VType.
constexpr DType dtype_of(VType t) noexcept {
  constexpr DType kOf[] = {DType::Bool, DType::I32, DType::I64, DType::F32, DType::F64};
  return kOf[static_cast<int>(t)];
}

// One step (L lanes) of values in virtual registers. 32-bit types: one vector. 64-bit types: two, the lower lanes first. Bool: a mask register,
// or, if the machine has none, a vector of 32-bit lanes, all ones or all zeros.
struct Value {
  asmjit::Operand part[2];
  // A broadcast 64-bit value: one register is both parts.
  bool shares_register() const noexcept { return part[1].isReg() && part[0] == part[1]; }
};

// An operand of a primitive: registers; or memory, on machines whose instructions have memory operands; or, on other machines, a constant that is
// not in a register yet. Only machines create the last two.
struct Arg {
  VType type = VType::F32;
  asmjit::Operand part[2];
  bool dying = false;  // these registers are not read again: the result may overwrite them
  bool constant = false;
  uint64_t bits = 0;  // of a constant

  Arg() = default;
  // Registers as an operand. A register that is both parts is never overwritten: the first part's result would be read as the second part.
  Arg(VType t, const Value& v, bool last_use) : type(t), part{v.part[0], v.part[1]}, dying(last_use && !v.shares_register()) {}
  // Memory, or registers that must not change.
  Arg(VType t, const asmjit::Operand& low, const asmjit::Operand& high) : type(t), part{low, high} {}
};

enum class StoreMode : uint8_t { Full, Streaming, Tail };

class LaneMachine {
 public:
  virtual ~LaneMachine() = default;

  int lanes() const noexcept { return lanes_; }
  // The number of vector registers, and of mask registers that hold a Bool (0: Bools are vectors).
  int registers() const noexcept { return registers_; }
  int masks() const noexcept { return masks_; }
  // The vector registers of a step of values; and of `vectors` numeric parts and `bools` Bools.
  int registers_of(VType type) const noexcept { return registers_of(type == VType::Bool ? 0 : parts_of(type), type == VType::Bool); }
  int registers_of(int vectors, int bools) const noexcept { return vectors + (masks_ == 0 ? bools : 0); }
  // The bytes of a step of `type` when spilled to memory.
  int bytes_of(VType type) const noexcept { return lanes_ * 4 * parts_of(type); }

  // Loads and stores consecutive elements. In the tail, only the lanes given by set_tail exist; the others are zero.
  virtual Value load(DType dtype, const Address& at, bool tail) = 0;
  virtual void store(DType dtype, const Value& value, const Address& at, StoreMode mode) = 0;
  // The tail step has min(count, lanes) lanes; count >= 1.
  virtual void set_tail(const Register& count) = 0;
  // `yes` in the lanes of the tail, `no` in the others.
  virtual Value blend_tail(VType type, const Value& yes, const Value& no) = 0;

  // The same value in every lane: an element in memory, or a constant.
  virtual Value broadcast(DType dtype, const Address& at) = 0;
  virtual Value constant(VType type, uint64_t bits) = 0;
  // The same as operands (not of Bool), and consecutive elements (of four or eight bytes) that are read once: not in a register if instructions
  // can use them from memory.
  virtual Arg broadcast_arg(VType type, const Address& at) = 0;
  virtual Arg constant_arg(VType type, uint64_t bits) = 0;
  virtual Arg load_arg(VType type, const Address& at) = 0;
  // base + offset + lane, as I64.
  virtual Value index(const Register& base, int offset) = 0;

  virtual Value eval(const ir::Node& node, const Arg* args) = 0;
  // Branches to the label if all lanes of all these Bools are true. Only if asks_all_lanes().
  virtual bool asks_all_lanes() const noexcept { return false; }
  virtual void branch_where_all(std::span<const Value>, const Label&) {}
  // The registers of an operand; loads it first if it is in none.
  virtual Value in_registers(const Arg& arg) = 0;
  virtual void move(VType type, const Value& to, const Value& from) = 0;
  virtual Value copy(VType type, const Value& from) = 0;

  // Whole registers to and from memory of bytes_of(type) bytes.
  virtual void spill(VType type, const Value& value, const Address& to) = 0;
  virtual Value fill(VType type, const Address& from) = 0;
  // Lane l becomes lane l + by, for l < by (by: half the lanes, or a quarter ... 1); the other lanes are undefined.
  virtual Value shift_down(VType type, const Value& value, int by) = 0;
  // Writes lane 0 as an element of `type` (Bool as a byte).
  virtual void store_first(VType type, const Value& value, const Address& at) = 0;

 protected:
  LaneMachine(int lanes, int registers, int masks) : lanes_(lanes), registers_(registers), masks_(masks) {}

 private:
  int lanes_, registers_, masks_;
};

// Primitives without vector code: their lanes are passed through memory to a function, so unrolling does not help. The operands of `lanes` lanes
// are at scratch and at scratch + kSecondOperand bytes; the results overwrite the first. Null: the primitive is not such a call.
using LaneFunction = void (*)(void* scratch, int64_t lanes);
constexpr int kSecondOperand = 128;
LaneFunction lane_function(Prim prim, VType type) noexcept;
inline bool is_called(const ir::Node& node) noexcept { return lane_function(node.prim, node.type) != nullptr; }

}  // namespace naru::render
