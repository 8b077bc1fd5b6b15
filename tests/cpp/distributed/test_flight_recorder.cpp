#include "distributed/flight_recorder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "data/pickle.h"
#include "groups.h"
#include "naru/ops.h"

namespace naru::distributed {
namespace {

class Recorder : public ::testing::Test {
 protected:
  Recorder() : folder_(std::filesystem::path(::testing::TempDir()) / ("calls_" + std::to_string(FlightRecorder::now()))) {
    ::setenv("TORCH_FR_DUMP_TEMP_FILE", (folder_ / "rank_").c_str(), 1);
  }
  ~Recorder() override {
    ::unsetenv("TORCH_FR_DUMP_TEMP_FILE");
    std::filesystem::remove_all(folder_);
  }
  // The file of a rank.
  Value read(int rank) const {
    std::ifstream in(folder_ / ("rank_" + std::to_string(rank)), std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return data::unpickle(text.str(), [](const data::StorageId&) { return Tensor(); });
  }
  const std::filesystem::path folder_;
};

TEST_F(Recorder, EveryRankWritesItsCallsWhereRanksDoNotCallTheSame) {
  const std::vector<std::string> thrown = as_ranks(2, [](ProcessGroup& group) {
    group.all_gather({zeros({2, 3}), zeros({2, 3})}, ones({2, 3}));
    if (group.rank() == 0)
      group.send(ones({4}), 1);
    else
      group.recv(zeros({4}), 0);
    group.all_reduce(ones({5 + group.rank()}));
  });
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_NE(thrown[static_cast<size_t>(rank)].find("rank_" + std::to_string(rank)), std::string::npos) << thrown[0];
    const Value file = read(rank);
    EXPECT_EQ(file["rank"].to_int(), rank);
    EXPECT_NE(file["reason"].text().find("ranks do not call the same"), std::string::npos);
    // Both ranks are threads of this process, and so in one ring.
    std::vector<Value> mine;
    for (const Value& e : file["entries"].values())
      if (e["process_group"][0].text() == file["failed_group"].text()) mine.push_back(e);
    ASSERT_EQ(mine.size(), 3U);
    EXPECT_EQ(mine[0]["profiling_name"].text(), "gloo:all_gather");
    EXPECT_EQ(mine[0]["input_sizes"][0][1].to_int(), 3);
    EXPECT_EQ(mine[0]["output_sizes"][0][0].to_int(), 12);
    EXPECT_EQ(mine[0]["state"].text(), "completed");
    EXPECT_EQ(mine[1]["profiling_name"].text(), rank == 0 ? "gloo:send 0->1" : "gloo:recv 1<-0");
    EXPECT_EQ(mine[2]["profiling_name"].text(), "gloo:all_reduce");
    EXPECT_EQ(mine[2]["input_sizes"][0][0].to_int(), 5 + rank);
    EXPECT_EQ(mine[2]["input_dtypes"][0].text(), "float32");
    EXPECT_EQ(mine[2]["collective_seq_id"].to_int(), 2);
    EXPECT_EQ(mine[2]["state"].text(), "started");
    EXPECT_TRUE(mine[2]["duration_ms"].is_none());
  }
}

TEST_F(Recorder, ARankThatIsBusyElsewhereWritesItsCallsToo) {
  as_ranks(2, [this](ProcessGroup& group) {
    if (group.rank() == 0) {
      group.set_timeout(Milliseconds(100));
      EXPECT_THROW(group.barrier(), DistBackendError);
      return;
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!std::filesystem::exists(folder_ / "rank_1") && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(Milliseconds(5));
  });
  EXPECT_NE(read(1)["reason"].text().find("rank 0 failed: barrier"), std::string::npos);
}

TEST_F(Recorder, TheOldestCallsGiveWay) {
  FlightRecorder& recorder = FlightRecorder::of_process();
  const size_t group = recorder.add_group(0, 1, "gloo");
  recorder.name_group(group, "ring", "a test", {7});
  RecordedCall call;
  call.what = "barrier";
  uint64_t first = 0;
  for (call.number = 1; call.number <= 1500; ++call.number) {
    const uint64_t id = recorder.begin(group, call);
    if (call.number == 1) first = id;
    recorder.complete(id);
  }
  recorder.complete(first);  // its place has another call by now
  EXPECT_EQ(recorder.write(group, "why"), (folder_ / "rank_7").string());
  const Value file = read(7);
  ASSERT_EQ(file["entries"].size(), 1000U);
  EXPECT_EQ(file["entries"][0]["collective_seq_id"].to_int(), 501);
  EXPECT_EQ(file["entries"][999]["collective_seq_id"].to_int(), 1500);
  EXPECT_EQ(file["pg_config"]["ring"]["ranks"].text(), "[7]");
  EXPECT_EQ(file["pg_status"]["ring"]["last_completed_collective"].to_int(), 1500);
}

TEST_F(Recorder, AFolderThatCannotBeWrittenHidesNoError) {
  ::setenv("TORCH_FR_DUMP_TEMP_FILE", "/proc/nowhere/rank_", 1);
  FlightRecorder& recorder = FlightRecorder::of_process();
  EXPECT_EQ(recorder.write(recorder.add_group(0, 1, "gloo"), "why"), "");
}

}  // namespace
}  // namespace naru::distributed
