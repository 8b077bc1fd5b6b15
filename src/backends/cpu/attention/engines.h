// The products of attention, by vectors of float32 or by tiles of bfloat16. An engine packs right operands (k rows by n columns) once, in
// panels of 32 columns, and multiplies them by left operands of up to some rows. Rows and columns of results go up to the next multiple of 32.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "backends/cpu/exec/transpose.h"
#include "backends/cpu/gemm/bfloat_product.h"
#include "backends/cpu/gemm/builtin_gemm.h"

namespace naru::cpu {

struct FloatEngine {
  using Item = float;
  struct Left {
    const float* data;
    int64_t row;
  };
  struct Session {  // of a thread that multiplies
    Session() {}
  };
  static constexpr DType kItem = DType::F32;

  static int64_t panel_bytes(int64_t k) { return k * kPanelColumns * static_cast<int64_t>(sizeof(float)); }
  // b[i * row + j * col] for i < k, j < n.
  static void pack_right(const Item* b, int64_t row, int64_t col, int64_t k, int64_t n, char* to) {
    for (int64_t j = 0; j < n; j += kPanelColumns, to += panel_bytes(k))
      pack_panel(b + j * col, row, col, k, std::min(kPanelColumns, n - j), reinterpret_cast<float*>(to));
  }

  // Left operands: of items, of float32, and of float32 whose rows are the columns of the product. `room` has left_bytes(m, k).
  static int64_t left_bytes(int64_t m, int64_t k) { return m * k * static_cast<int64_t>(sizeof(float)); }
  static Left left_of_items(const Item* a, int64_t row, int64_t, int64_t, char*) { return {a, row}; }
  static Left left(const float* a, int64_t row, int64_t, int64_t, char*) { return {a, row}; }
  static Left left_turned(const float* a, int64_t row, int64_t m, int64_t k, char* room) {
    constexpr int64_t kSize = sizeof(float);
    transpose(reinterpret_cast<const char*>(a), row * kSize, kSize, m, k, room, k * kSize);
    return {reinterpret_cast<const float*>(room), k};
  }

  // c (m, n) = or += a b over the first k of the `packed` rows of b.
  static void multiply(Left a, const char* b, int64_t packed, int64_t m, int64_t n, int64_t k, float* c, int64_t c_row, bool add) {
    own_panel_product<float>(
        {m, whole_panels(n), k, a.data, a.row, reinterpret_cast<const float*>(b), c, c_row, packed * kPanelColumns, add});
  }
};

// Requires has_bfloat_tiles(). Weights and their gradients are rounded to bfloat16 for the products.
struct TileEngine {
  using Item = uint16_t;
  struct Left {
    const char* packed;
  };
  using Session = TileSession;
  static constexpr DType kItem = DType::BF16;

  static int64_t panel_bytes(int64_t k) { return tile_panel_bytes(k); }
  static void pack_right(const Item* b, int64_t row, int64_t col, int64_t k, int64_t n, char* to) {
    pack_tiles(false, b, col, row, n, k, to);
  }
  static int64_t left_bytes(int64_t m, int64_t k) {  // and the operand in bfloat16 before it is packed
    return whole_panels(m) / kPanelColumns * tile_panel_bytes(k) + whole_panels(m) * whole_panels(k) * static_cast<int64_t>(sizeof(Item));
  }
  static Left left_of_items(const Item* a, int64_t row, int64_t m, int64_t k, char* room) {
    pack_tiles(true, a, row, 1, m, k, room);
    return {room};
  }
  static Left left(const float* a, int64_t row, int64_t m, int64_t k, char* room) {
    Item* const narrow = reinterpret_cast<Item*>(room + whole_panels(m) / kPanelColumns * tile_panel_bytes(k));
    round_rows(a, row, m, k, narrow, whole_panels(k));
    return left_of_items(narrow, whole_panels(k), m, k, room);
  }
  static Left left_turned(const float* a, int64_t row, int64_t m, int64_t k, char* room) {
    Item* const narrow = reinterpret_cast<Item*>(room + whole_panels(m) / kPanelColumns * tile_panel_bytes(k));
    round_rows(a, row, k, m, narrow, whole_panels(m));
    pack_tiles(true, narrow, 1, whole_panels(m), m, k, room);
    return {room};
  }
  static void multiply(Left a, const char* b, int64_t packed, int64_t m, int64_t n, int64_t k, float* c, int64_t c_row, bool add) {
    multiply_tiles(a.packed, b, tile_panel_bytes(packed), m, n, k, c, c_row, add);
  }
};

}  // namespace naru::cpu
