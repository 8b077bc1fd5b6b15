// MPSMatrixMultiplication of MetalPerformanceShaders, for the fake Metal (metal.cpp, whose buffers and command buffers it knows).
#pragma once

namespace {

constexpr unsigned kFloat16 = 0x10000010, kFloat32 = 0x10000020;
struct Laid {
  Word rows = 0, columns = 0, matrices = 0, row_bytes = 0, matrix_bytes = 0;
  unsigned type = 0;
  Word item() const { return type == kFloat32 ? 4 : 2; }
  Word bytes() const { return (matrices - 1) * matrix_bytes + (rows - 1) * row_bytes + columns * item(); }
};
struct MatrixDescriptor : Of<MatrixDescriptor>, Laid {
  static constexpr const char* kName = "MPSMatrixDescriptor";
};
struct Matrix : Of<Matrix> {
  static constexpr const char* kName = "MPSMatrix";
  Buffer* buffer = nullptr;
  Word offset = 0;
  MatrixDescriptor* descriptor = nullptr;
  void end() override {
    if (buffer) release(buffer);
    if (descriptor) release(descriptor);
  }
};
struct Multiplication : Of<Multiplication> {
  static constexpr const char* kName = "MPSMatrixMultiplication";
  bool left_transposed = false, right_transposed = false, made = false;
  Word rows = 0, columns = 0, interior = 0, batch = ~Word{0};
  double alpha = 0, beta = 0;
};

// The address of an element.
char* element(const char* memory, const Laid& d, Word matrix, Word row, Word column) {
  return const_cast<char*>(memory) + matrix * d.matrix_bytes + row * d.row_bytes + column * d.item();
}
double value_of(const char* p, unsigned type) {
  if (type == kFloat32) return *reinterpret_cast<const float*>(p);
  return from_half(*reinterpret_cast<const uint16_t*>(p));
}

void multiply(id self, id commands, id left, id right, id result) {
  auto* const k = static_cast<Multiplication*>(self);
  if (!k->made) fail("a product by a kernel that was not initialised");
  Commands* const b = unfinished(commands, "encodeToCommandBuffer:leftMatrix:rightMatrix:resultMatrix:");
  id const all[] = {left, right, result};
  Laid d[3];
  const char* memory[3];
  for (int i = 0; i < 3; ++i) {
    check(all[i], "encodeToCommandBuffer:leftMatrix:rightMatrix:resultMatrix:");
    const auto* const m = static_cast<Matrix*>(all[i]);
    const bool turned = i == 0 ? k->left_transposed : i == 1 && k->right_transposed;
    const Word rows = i == 1 ? k->interior : k->rows, columns = i == 0 ? k->interior : k->columns;
    const Laid& of = *m->descriptor;
    d[i] = of;
    memory[i] = m->buffer->memory + m->offset;
    if (of.rows != (turned ? columns : rows) || of.columns != (turned ? rows : columns)) fail("a product of matrices of other sizes");
    if (of.type != static_cast<Matrix*>(left)->descriptor->type) fail("a product of matrices of several types");
    if (of.matrices != k->batch) fail("a product of another number of matrices");
    b->keep(m->buffer);
  }
  if (const char* const log = getenv("NARU_FAKE_MPS_LOG"))
    if (FILE* const f = fopen(log, "a")) {
      fprintf(f, "%lu x %lu x %lu, %lu of them%s%s, %s\n", k->rows, k->interior, k->columns, k->batch,
              k->left_transposed ? ", left transposed" : "", k->right_transposed ? ", right transposed" : "",
              d[0].type == kFloat32 ? "float32" : "float16");
      fclose(f);
    }
  const Multiplication& of = *k;
  Command c{Command::Product};
  c.work = [=, lt = of.left_transposed, rt = of.right_transposed, m = of.rows, n = of.columns, inner = of.interior, batch = of.batch,
            alpha = of.alpha] {
    for (Word item = 0; item < batch; ++item)
      for (Word row = 0; row < m; ++row)
        for (Word column = 0; column < n; ++column) {
          double sum = 0;
          for (Word i = inner; i-- > 0;)
            sum += value_of(lt ? element(memory[0], d[0], item, i, row) : element(memory[0], d[0], item, row, i), d[0].type) *
                   value_of(rt ? element(memory[1], d[1], item, column, i) : element(memory[1], d[1], item, i, column), d[1].type);
          char* const to = element(memory[2], d[2], item, row, column);
          if (d[2].type == kFloat32)
            *reinterpret_cast<float*>(to) = static_cast<float>(sum * alpha);
          else
            *reinterpret_cast<uint16_t*>(to) = to_half(sum * alpha);
        }
  };
  b->list.push_back(std::move(c));
}

}  // namespace
