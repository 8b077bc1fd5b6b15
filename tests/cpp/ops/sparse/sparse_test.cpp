// Sparse tensors: their parts, the operators with a sparse implementation, and the errors of the others.
#include <gtest/gtest.h>

#include <vector>

#include "naru/naru.h"
#include "naru/ops/sparse.h"
#include "naru/optim.h"

namespace naru {
namespace {

using Doubles = std::vector<double>;

// 0 0 3
// 4 0 5, of which 5 is 2 + 3.
Tensor example(const Tensor& values = tensor({3.0F, 4.0F, 2.0F, 3.0F})) {
  return sparse_coo_tensor(tensor(std::vector<int64_t>{0, 1, 1, 1, 2, 0, 2, 2}).view({2, 4}), values, Dims{2, 3});
}

TEST(Sparse, EqualCoordinatesAddUp) {
  const Tensor s = example();
  EXPECT_TRUE(is_sparse(s));
  EXPECT_FALSE(is_coalesced(s));
  EXPECT_EQ(stored_count(s), 4);
  EXPECT_EQ(to_dense(s).to_doubles(), (Doubles{0, 0, 3, 4, 0, 5}));
  const Tensor once = coalesce(s);
  EXPECT_EQ(stored_count(once), 3);
  EXPECT_EQ(sparse_values(once).to_doubles(), (Doubles{3, 4, 5}));
  EXPECT_EQ(sparse_indices(once).to_ints(), (std::vector<int64_t>{0, 1, 1, 2, 0, 2}));
  EXPECT_THROW(sparse_values(s), RuntimeError);
}

TEST(Sparse, RowsAndCoordinatesSayTheSame) {
  const Tensor rows = to_sparse_csr(example());
  EXPECT_EQ(crow_indices(rows).to_ints(), (std::vector<int64_t>{0, 1, 3}));
  EXPECT_EQ(col_indices(rows).to_ints(), (std::vector<int64_t>{2, 0, 2}));
  EXPECT_TRUE(equal(to_dense(rows), to_dense(example())));
  EXPECT_TRUE(equal(to_dense(to_sparse(rows)), to_dense(to_sparse(to_dense(rows)))));
}

TEST(Sparse, EveryLayoutHoldsTheSameElements) {
  const Tensor dense = tensor({1.0F, 0.0F, 2.0F, 0.0F, 0.0F, 3.0F, 0.0F, 4.0F}).view({2, 4}),
               by = arange(0, 8, 1, Options(DType::F32)).view({4, 2});
  for (const Layout l : {Layout::SparseCoo, Layout::SparseCsr, Layout::SparseCsc, Layout::SparseBsr, Layout::SparseBsc}) {
    const bool blocks = l >= Layout::SparseBsr;
    const auto sparse = [&](const Tensor& t) {
      return l == Layout::SparseCoo ? to_sparse(t) : to_sparse_compressed(t, l, blocks ? std::optional(Dims{2, 2}) : std::nullopt);
    };
    const Tensor s = sparse(dense);
    EXPECT_EQ(layout(s), l);
    EXPECT_TRUE(equal(to_dense(s), dense));
    EXPECT_TRUE(equal(to_dense(s.t()), dense.t()));
    EXPECT_TRUE(equal(to_dense(s * 2.0 + s), dense * 3.0));
    EXPECT_TRUE(equal(to_dense(s * dense.select(0, 1)), dense * dense.select(0, 1)));
    EXPECT_TRUE(equal(mm(s, by), mm(dense, by)));
    EXPECT_TRUE(equal(to_dense(to_sparse_csc(s)), dense));
    const Tensor leaf = dense.clone().requires_grad_();
    mm(sparse(leaf), by).sum().backward();
    EXPECT_EQ(leaf.grad().select(0, 0).select(0, 2).item().to_double(), 9);
  }
  const Tensor batches = to_sparse_csr(stack({dense, dense * 2.0}));
  EXPECT_TRUE(equal(bmm(batches, stack({by, by})).select(0, 1), mm(dense, by) * 2.0));
  EXPECT_EQ(stored_count(sparse_zeros({2, 3}, Layout::SparseCsc)), 0);
  EXPECT_THROW(to_sparse_bsr(dense, {3, 2}), RuntimeError);
}

TEST(Sparse, ColumnsThatDoNotRiseInTheirRowAreTakenAsTheyAre) {
  const Tensor s = sparse_csr_tensor(tensor({0, 2, 2}), tensor({1, 0}), tensor({1.0F, 2.0F}), Dims{2, 2});
  EXPECT_EQ(to_dense(s).to_doubles(), (Doubles{2, 1, 0, 0}));
  EXPECT_EQ(sparse_values(to_sparse_csc(s)).to_doubles(), (Doubles{2, 1}));
  EXPECT_THROW(sparse_compressed_tensor(tensor({0, 2, 2}), tensor({1, 0}), ones({2}), Dims{2, 2}, Layout::SparseCsr, true), RuntimeError);
}

TEST(Sparse, IndicesOutsideTheSizesAreRefused) {
  const auto at = [](std::vector<int64_t> indices) { return tensor(indices).view({1, 2}); };
  EXPECT_THROW(sparse_coo_tensor(at({0, 2}), ones({2}), Dims{2}), RuntimeError);
  EXPECT_THROW(sparse_coo_tensor(at({0, -1}), ones({2}), Dims{2}), RuntimeError);
  EXPECT_THROW(sparse_coo_tensor(at({0, 1}), ones({3}), Dims{2}), RuntimeError);
  EXPECT_THROW(sparse_csr_tensor(tensor({0, 1, 5}), tensor({0, 1}), ones({2}), Dims{2, 2}), RuntimeError);
}

TEST(Sparse, ProductsAreThoseOfTheDenseMatricesAndSoAreTheirGradients) {
  const Tensor values = tensor({3.0F, 4.0F, 2.0F, 3.0F}).requires_grad_(),
               d = arange(0, 6, 1, Options(DType::F32)).view({3, 2}).requires_grad_();
  const Tensor y = mm(example(values), d);
  EXPECT_EQ(y.to_doubles(), (Doubles{12, 15, 20, 29}));
  y.sum().backward();
  EXPECT_EQ(values.grad().to_doubles(), (Doubles{9, 1, 9, 9}));
  EXPECT_EQ(d.grad().to_doubles(), (Doubles{4, 4, 0, 0, 8, 8}));
  EXPECT_EQ(to_dense(mm(example(), to_sparse(d.detach()))).to_doubles(), (Doubles{12, 15, 20, 29}));
  EXPECT_EQ(matmul(example(), ones({3})).to_doubles(), (Doubles{3, 9}));
}

TEST(Sparse, AnOperatorWithoutASparseFormSaysSo) {
  const Tensor s = example();
  for (const auto& f :
       std::vector<std::function<void()>>{[&] { exp(s); }, [&] { s.view({6}); }, [&] { max(s); }, [&] { eq(s, s); }, [&] { sort(s); },
                                          [&] { s.item(); }, [&] { softmax(s, 1); }, [&] { cumsum(s, 0); }, [&] { bmm(s, s); }})
    EXPECT_THROW(f(), Error);
  try {
    exp(s);
  } catch (const NotImplementedError& e) {
    EXPECT_NE(std::string(e.what()).find("Could not run 'aten::exp' with arguments from the 'SparseCPU' backend"), std::string::npos);
  }
}

TEST(Sparse, AnEmbeddingMayHaveASparseGradientThatMovesItsRowsOnly) {
  const Tensor table = ones({5, 2}).requires_grad_();
  embedding(table, tensor(std::vector<int64_t>{1, 3, 1}), -1, false, true).sum().backward();
  ASSERT_TRUE(is_sparse(table.grad()));
  EXPECT_EQ(to_dense(table.grad()).to_doubles(), (Doubles{0, 0, 2, 2, 0, 0, 1, 1, 0, 0}));
  const NoGrad off;
  table.add_(table.grad(), -0.5);
  EXPECT_EQ(table.detach().to_doubles(), (Doubles{1, 1, 0, 0, 1, 1, 0.5, 0.5, 1, 1}));
  const Tensor first = zeros({5, 2}), second = zeros({5, 2});
  optim::sparse_adam_step(table, table.grad(), first, second, 1, {.lr = 0.25});
  EXPECT_EQ(table.detach().select(0, 0).to_doubles(), (Doubles{1, 1}));
  EXPECT_NEAR(table.detach().select(0, 1).to_doubles()[0], -0.25, 1e-6);
  optim::SparseAdam again({table}, {.lr = 0.25});
  again.step();
  EXPECT_NEAR(table.detach().select(0, 1).to_doubles()[0], -0.5, 1e-6);
}

}  // namespace
}  // namespace naru
