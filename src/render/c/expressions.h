// Expressions as text: the nodes of a graph as C constants, one a line.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "ir/expr.h"
#include "ir/reduce.h"
#include "render/c/dialect.h"

namespace naru::render::c {

// "i32" for I32; "bool" for Bool.
const char* name_of(ir::VType type) noexcept;
// The type in which products and sums are computed: integers as unsigned ones, which wrap around.
const char* arithmetic(ir::VType type) noexcept;
// The type of an element in memory: "u8" for Bool, "u16" for F16.
const char* stored(DType type) noexcept;
// An element of memory as a value, and a value as an element.
std::string loaded(DType type, const std::string& element);
std::string to_store(DType type, const std::string& value);
// The value that has these bits.
std::string literal(ir::VType type, uint64_t bits);

// What stands for the leaves of a graph.
struct Leaves {
  std::function<std::string(uint64_t slot, DType type)> input;
  std::function<std::string(uint64_t slot, ir::VType type)> param;
  std::string index;
};

// Lines that define every node that `results` need, by the names node(prefix, id).
std::string expressions(const ir::Graph& graph, std::span<const uint32_t> results, const Leaves& leaves, const Target& target,
                        const std::string& prefix, const std::string& indent);
std::string node(const std::string& prefix, uint32_t id);

// FUNCTION T combine(T a, T b) of ir/reduce.h, by that name.
std::string combine_function(ir::ReduceOp op, ir::VType type, const Target& target, const std::string& name = "combine");
// Accumulators in memory: their type there (a Bool takes a byte), a stored one as a value, and a value as it is stored.
std::string stored_value(ir::VType type);
std::string got(ir::VType type, const std::string& x);
std::string put(ir::VType type, const std::string& x);
// One value converted to an element type, as Prim::Convert does, and made ready to be stored there.
std::string converted(ir::VType from, DType to, const std::string& value, const Target& target);
// Whether values of these types or nodes need float64.
bool uses_f64(const ir::Graph& graph) noexcept;

}  // namespace naru::render::c
