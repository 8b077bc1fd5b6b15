#include <gtest/gtest.h>
#include <sys/socket.h>

#include <condition_variable>
#include <mutex>

#include "distributed/pmi.h"
#include "distributed/roll_call.h"
#include "distributed/watch.h"

namespace naru::distributed {
namespace {

TEST(Pmi, HostsAreToldInRunsOfEqualRanks) {
  EXPECT_EQ(pmi_mapping({"a"}), "(vector,(0,1,1))");
  EXPECT_EQ(pmi_mapping({"a", "a", "a"}), "(vector,(0,1,3))");
  EXPECT_EQ(pmi_mapping({"a", "a", "b", "b"}), "(vector,(0,2,2))");
  EXPECT_EQ(pmi_mapping({"a", "a", "b"}), "(vector,(0,1,2),(1,1,1))");
  EXPECT_EQ(pmi_mapping({"a", "b", "a", "b"}), "(vector,(0,2,1),(0,2,1))");
  EXPECT_EQ(pmi_mapping({"b", "a", "a", "c", "c"}), "(vector,(0,1,1),(1,2,2))");
}

// Watches of ranks that are all in this process, joined by pairs of sockets as ranks are by connections.
class Watched {
 public:
  Watched(int size, Milliseconds patience) : told_(static_cast<size_t>(size)) {
    std::vector<std::vector<Descriptor>> sockets(static_cast<size_t>(size));
    for (auto& row : sockets) row.resize(static_cast<size_t>(size));
    for (size_t r = 1; r < sockets.size(); ++r) {
      int pair[2];
      if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) throw RuntimeError("no pair of sockets");
      sockets[0][r] = Descriptor(pair[0]), sockets[r][0] = Descriptor(pair[1]);
    }
    for (int r = 0; r < size; ++r)
      watches_.push_back(std::make_unique<Watch>(
          std::move(sockets[static_cast<size_t>(r)]), r, patience,
          [this, r](int lost, const std::string& why, bool in_order) {
            const std::lock_guard lock(mutex_);
            told_[static_cast<size_t>(r)].push_back({lost, (in_order ? "in order: " : "") + why});
            changed_.notify_all();
          },
          [] {}));
  }
  void end(int rank) { watches_[static_cast<size_t>(rank)].reset(); }
  Watch& watch(int rank) { return *watches_[static_cast<size_t>(rank)]; }
  using Told = std::vector<std::pair<int, std::string>>;
  // What a rank was told, when that is `count` losses.
  Told told(int rank, size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(60), [&] { return told_[static_cast<size_t>(rank)].size() >= count; });
    return told_[static_cast<size_t>(rank)];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Told> told_;
  std::vector<std::unique_ptr<Watch>> watches_;
};

constexpr const char* kClosedText = "its connection was closed; its process ended or was killed";

TEST(Watch, AnEndIsToldToAllOthers) {
  Watched ranks(4, Milliseconds(0));
  ranks.end(2);
  const Watched::Told wanted{{2, kClosedText}};
  for (const int rank : {0, 1, 3}) EXPECT_EQ(ranks.told(rank, 1), wanted) << rank;
}

TEST(Watch, SoIsThatOfTheFirst) {
  Watched ranks(3, Milliseconds(0));
  ranks.end(0);
  const Watched::Told wanted{{0, kClosedText}};
  for (const int rank : {1, 2}) EXPECT_EQ(ranks.told(rank, 1), wanted) << rank;
}

TEST(Watch, WhoHasLeftItsGroupsEndsInOrder) {
  Watched ranks(3, Milliseconds(0));
  ranks.watch(1).say_whether_in_a_group(false);
  ranks.end(1);
  const Watched::Told wanted{{1, std::string("in order: ") + kClosedText}};
  for (const int rank : {0, 2}) EXPECT_EQ(ranks.told(rank, 1), wanted) << rank;
  ranks.watch(0).say_whether_in_a_group(false);
  ranks.watch(0).say_whether_in_a_group(true);
  ranks.end(0);
  EXPECT_EQ(ranks.told(2, 2).back(), std::make_pair(0, std::string(kClosedText)));
}

TEST(Watch, SilenceIsToldAsSuch) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  std::vector<Descriptor> sockets(2);
  sockets[1] = Descriptor(pair[0]);
  const Descriptor silent(pair[1]);
  std::mutex mutex;
  std::condition_variable changed;
  std::string told;
  const Watch watch(
      std::move(sockets), 0, Milliseconds(500),
      [&](int rank, const std::string& why, bool) {
        const std::lock_guard lock(mutex);
        told = std::to_string(rank) + ": " + why;
        changed.notify_all();
      },
      [] {});
  const char alive[8] = {'h'};
  send_all(silent, alive, after(Milliseconds(10'000)));
  std::unique_lock lock(mutex);
  changed.wait_for(lock, std::chrono::seconds(60), [&] { return !told.empty(); });
  EXPECT_EQ(told, "1: nothing has come from it for 0.5 s; it was stopped, or its host or the network is down");
}

TEST(RollCall, DoesNotWaitForThoseThatWontCome) {
  HashStore store;
  RollCall roll(store, 0, 2, after(Milliseconds(60'000)));
  roll.set_look([] { throw DistBackendError("rank 1 is gone"); });
  EXPECT_THROW(roll.all("name", "a"), DistBackendError);
  store.set("name/1", "b");  // it has said it before it left
  EXPECT_EQ(roll.all("name", "a"), (std::vector<std::string>{"a", "b"}));
  RollCall late(store, 0, 2, after(Milliseconds(0)));
  EXPECT_THROW(late.all("other", "a"), DistStoreError);
}

}  // namespace
}  // namespace naru::distributed
