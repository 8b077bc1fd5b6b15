// The loader with threads: the same batches, errors that name the worker, and no thread left running.
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "naru/data.h"
#include "naru/device/virtual.h"
#include "naru/error.h"
#include "naru/ops.h"

namespace naru::data {
namespace {

struct Squares : Dataset {
  int64_t n;
  int64_t bad = -1;
  explicit Squares(int64_t count) : n(count) {}
  int64_t size() const override { return n; }
  Sample get(int64_t i) const override {
    if (i == bad) throw ValueError("sample {} is broken", i);
    return {full({3}, static_cast<double>(i * i)), full({}, static_cast<double>(i))};
  }
};

std::vector<std::vector<double>> all_of(const DataLoader& loader) {
  std::vector<std::vector<double>> out;
  for (const Sample& batch : loader) out.push_back(batch[1].to_doubles());
  return out;
}

TEST(LoaderThreads, GiveTheBatchesOfTheLoopItselfInTheirOrder) {
  for (const bool shuffle : {false, true})
    for (const bool drop : {false, true}) {
      Generator a(5), b(5);
      const auto data = std::make_shared<Squares>(103);
      const DataLoader plain(data, {.batch_size = 4, .shuffle = shuffle, .drop_last = drop, .generator = &a});
      const DataLoader ahead(data, {.batch_size = 4, .shuffle = shuffle, .drop_last = drop, .generator = &b, .num_workers = 3});
      for (int pass = 0; pass < 3; ++pass) EXPECT_EQ(all_of(plain), all_of(ahead));
    }
}

TEST(LoaderThreads, GiveTensorsOfASetInMemory) {
  const Tensor x = arange(0, 64 * 10, 1).reshape({64, 10}), y = arange(0, 64, 1);
  int64_t seen = 0;
  for (const Sample& batch : DataLoader(std::make_shared<TensorDataset>(x, y), {.batch_size = 8, .num_workers = 2})) {
    EXPECT_TRUE(equal(batch[0], x.slice(0, seen, seen + 8)));
    seen += 8;
  }
  EXPECT_EQ(seen, 64);
}

TEST(LoaderThreads, AnErrorIsThrownWhereItsBatchIsDueAndEndsThePass) {
  for (const int workers : {0, 2}) {
    const auto data = std::make_shared<Squares>(40);
    data->bad = 17;
    const DataLoader loader(data, {.batch_size = 5, .num_workers = workers});
    int batches = 0;
    try {
      for (const Sample& batch : loader) batches += batch[0].size(0) == 5;
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::Value);
      EXPECT_NE(std::string(e.what()).find("sample 17 is broken"), std::string::npos);
      EXPECT_EQ(std::string(e.what()).find("in DataLoader worker thread") != std::string::npos, workers > 0);
    }
    EXPECT_EQ(batches, 3);
  }
}

TEST(LoaderThreads, AnExceptionOfTheStandardLibraryNamesItsWorkerAndOneOfTheProgramsOwnKeepsItsClass) {
  struct OwnError : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  struct Broken : Dataset {
    bool own = false;
    int64_t size() const override { return 4; }
    Sample get(int64_t i) const override {
      if (i == 2 && own) throw OwnError("sample 2");
      if (i == 2) throw std::runtime_error("sample 2");
      return {ones({1})};
    }
  };
  const auto data = std::make_shared<Broken>();
  const DataLoader loader(data, {.num_workers = 2});
  try {
    for ([[maybe_unused]] const Sample& batch : loader) {
    }
    FAIL();
  } catch (const RuntimeError& e) {
    EXPECT_NE(std::string(e.what()).find("in DataLoader worker thread"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("sample 2"), std::string::npos);
  }
  data->own = true;
  EXPECT_THROW(for ([[maybe_unused]] const Sample& batch : loader){}, OwnError);
}

TEST(LoaderThreads, APassMayBeLeftEarly) {
  const DataLoader loader(std::make_shared<Squares>(100000), {.batch_size = 2, .num_workers = 4, .prefetch_factor = 4});
  for (int i = 0; i < 20; ++i)
    for (const Sample& batch : loader) {
      EXPECT_EQ(batch[1].to_doubles()[1], 1);
      break;
    }
}

TEST(LoaderThreads, PinBatchesForDevices) {
  const VirtualDevices devices(DeviceType::Cuda, {});
  for (const int workers : {0, 2})
    for (const Sample& batch : DataLoader(std::make_shared<Squares>(10), {.batch_size = 5, .num_workers = workers, .pin_memory = true})) {
      EXPECT_TRUE(batch[0].is_pinned());
      EXPECT_TRUE(equal(batch[0].to(Device("cuda:0"), true).cpu(), batch[0]));
    }
}

struct Counting : IterableDataset {
  int64_t n, bad = -1;
  explicit Counting(int64_t count) : n(count) {}
  std::function<Sample()> begin() const override {
    return [this, i = int64_t{0}]() mutable -> Sample {
      if (i == bad) throw RuntimeError("the source is dry");
      return i == n ? Sample{} : Sample{full({}, 0.0), full({}, static_cast<double>(i++))};
    };
  }
};

TEST(LoaderThreads, IterableSetsComeInOrder) {
  for (const int workers : {0, 1, 3}) {
    const DataLoader loader(std::make_shared<Counting>(11), {.batch_size = 4, .num_workers = workers});
    for (int pass = 0; pass < 2; ++pass)
      EXPECT_EQ(all_of(loader), (std::vector<std::vector<double>>{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10}}));
    const auto dry = std::make_shared<Counting>(100);
    dry->bad = 9;
    EXPECT_THROW(all_of(DataLoader(dry, {.batch_size = 4, .num_workers = workers})), RuntimeError);
    EXPECT_EQ(all_of(DataLoader(std::make_shared<Counting>(11), {.batch_size = 4, .drop_last = true, .num_workers = workers})).size(), 2u);
  }
}

TEST(LoaderThreads, OptionsThatMeanNothingAreErrors) {
  const auto data = std::make_shared<Squares>(3);
  EXPECT_THROW(DataLoader(data, {.num_workers = -1}), ValueError);
  EXPECT_THROW(DataLoader(data, {.prefetch_factor = 0}), ValueError);
  EXPECT_THROW(DataLoader(std::make_shared<Counting>(3), {.shuffle = true}), ValueError);
  EXPECT_THROW(DataLoader(std::make_shared<Counting>(3)).size(), RuntimeError);
}

}  // namespace
}  // namespace naru::data
