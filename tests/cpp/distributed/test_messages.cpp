#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "distributed/messages.h"

namespace naru::distributed {
namespace {

// Two ranks of one process, joined by a pair of sockets.
struct Pair {
  Pair() {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) throw RuntimeError("no pair of sockets");
    for (int rank = 0; rank < 2; ++rank) {
      std::vector<Descriptor> sockets(2);
      sockets[static_cast<size_t>(1 - rank)] = Descriptor(pair[rank]);
      ranks[rank] = std::make_unique<Messages>(socket_channels(std::move(sockets), kMessageBuffer), rank, 2, [] {});
    }
  }
  std::unique_ptr<Messages> ranks[2];
};

using Bytes = std::vector<char>;
Parcel parcel(Bytes& bytes) { return {bytes.data(), bytes.size(), 0, {}}; }
WorkRef send(Messages& m, int to, int tag, Bytes& bytes) {
  auto work = std::make_shared<Work>();
  m.send(to, tag, parcel(bytes), work);
  return work;
}
WorkRef receive(Messages& m, int from, int tag, Bytes& bytes) {
  auto work = std::make_shared<Work>();
  m.receive(from, tag, parcel(bytes), work);
  return work;
}
std::string error_of(const WorkRef& work) {
  try {
    work->wait();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}
constexpr size_t kMiB = size_t{1} << 20;

TEST(Messages, TheReceiverStoresAFewMiBOfWhatItHasNotAskedFor) {
  Pair pair;
  Bytes large(64 * kMiB), small(1000, 's');
  for (size_t i = 0; i < large.size(); i += 4096) large[i] = static_cast<char>(i >> 12);
  std::vector<WorkRef> sent;
  for (int i = 0; i < 16; ++i) sent.push_back(send(*pair.ranks[0], 1, i, large));
  for (int i = 0; i < 100; ++i) sent.push_back(send(*pair.ranks[0], 1, 100, small));
  // The last small message has come, so all that was to be stored has come.
  Bytes small_got(small.size());
  for (int i = 0; i < 100; ++i) receive(*pair.ranks[1], 0, 100, small_got)->wait();
  EXPECT_TRUE(small_got == small);
  EXPECT_EQ(pair.ranks[1]->held(), 0u);  // each large message is larger than what may be stored
  for (int i = 0; i < 16; ++i) EXPECT_FALSE(sent[static_cast<size_t>(i)]->is_completed());
  for (int i = 15; i >= 0; --i) {
    Bytes got(large.size());
    receive(*pair.ranks[1], i % 2 ? 0 : kAnyRank, i, got)->wait();
    EXPECT_TRUE(got == large) << i;
    EXPECT_TRUE(sent[static_cast<size_t>(i)]->wait());
  }
}

TEST(Messages, SmallOnesAreStoredUpToTheBound) {
  Pair pair;
  std::vector<Bytes> mine(200, Bytes(100'000));
  std::vector<WorkRef> sent;
  for (size_t i = 0; i < mine.size(); ++i) {
    std::ranges::fill(mine[i], static_cast<char>(i));
    sent.push_back(send(*pair.ranks[0], 1, 7, mine[i]));
  }
  Bytes last(1, 'x'), got(1);
  const WorkRef end = send(*pair.ranks[0], 1, 8, last);
  receive(*pair.ranks[1], 0, 8, got)->wait();  // everything before it has come
  EXPECT_GT(pair.ranks[1]->held(), 2 * kMiB);
  EXPECT_LE(pair.ranks[1]->held(), Messages::kUnasked);
  // They are received in the order in which they were sent, stored or not.
  for (size_t i = 0; i < mine.size(); ++i) {
    Bytes each(100'000);
    receive(*pair.ranks[1], 0, 7, each)->wait();
    EXPECT_TRUE(each == mine[i]) << i;
    EXPECT_TRUE(sent[i]->wait());
    EXPECT_LE(pair.ranks[1]->held(), Messages::kUnasked);
  }
  EXPECT_EQ(pair.ranks[1]->held(), 0u);
  // The sender knows that there is room again: what fits needs no recv.
  for (int i = 0; i < 20; ++i) {
    const WorkRef work = send(*pair.ranks[0], 1, 9, mine[0]);
    EXPECT_TRUE(work->wait(Milliseconds(20'000)));
  }
}

TEST(Messages, BothSidesMaySendMuchBeforeTheyReceive) {
  Pair pair;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      Messages& m = *pair.ranks[rank];
      std::vector<Bytes> mine(8, Bytes(5 * kMiB, static_cast<char>(rank))), theirs(8, Bytes(5 * kMiB));
      std::vector<WorkRef> works;
      for (int i = 0; i < 8; ++i) works.push_back(send(m, 1 - rank, i, mine[static_cast<size_t>(i)]));
      for (int i = 7; i >= 0; --i) works.push_back(receive(m, 1 - rank, i, theirs[static_cast<size_t>(i)]));
      for (const WorkRef& work : works) EXPECT_TRUE(work->wait(Milliseconds(30'000)));
      for (const Bytes& each : theirs) EXPECT_TRUE(each == Bytes(5 * kMiB, static_cast<char>(1 - rank)));
    });
  for (std::thread& t : threads) t.join();
}

TEST(Messages, ALargeOneOfAnotherSizeIsRefusedOnBothSides) {
  Pair pair;
  Bytes large(5 * kMiB), other(6 * kMiB);
  const WorkRef sent = send(*pair.ranks[0], 1, 3, large), got = receive(*pair.ranks[1], 0, 3, other);
  for (const WorkRef& work : {sent, got})
    EXPECT_NE(error_of(work).find("both sides must name tensors of one type and size"), std::string::npos);
  // The connection is as good as before.
  const WorkRef again = send(*pair.ranks[0], 1, 3, large);
  Bytes fits(5 * kMiB);
  EXPECT_TRUE(receive(*pair.ranks[1], 0, 3, fits)->wait(Milliseconds(20'000)));
  EXPECT_TRUE(again->wait(Milliseconds(20'000)));
}

TEST(Messages, ALargeOneThatIsNotReceivedTimesOut) {
  Pair pair;
  pair.ranks[0]->set_timeout(Milliseconds(200));
  Bytes large(5 * kMiB);
  const WorkRef sent = send(*pair.ranks[0], 1, 3, large);
  const std::string text = error_of(sent);
  EXPECT_NE(text.find("has called no recv for it"), std::string::npos) << text;
  // A recv that comes too late is told.
  const std::string late = error_of(receive(*pair.ranks[1], 0, 3, large));
  EXPECT_NE(late.find("has given up the send"), std::string::npos) << late;
}

TEST(Messages, ARankThatLeavesEndsTheSendsThatWaitForIt) {
  Pair pair;
  Bytes large(5 * kMiB);
  const WorkRef sent = send(*pair.ranks[0], 1, 3, large);
  pair.ranks[1].reset();
  const std::string text = error_of(sent);
  EXPECT_NE(text.find("rank 1 has left the group"), std::string::npos) << text;
}

TEST(Messages, ARankThatLeavesStillSendsWhatItHasOffered) {
  Pair pair;
  Bytes large(5 * kMiB, 'x'), got(5 * kMiB);
  const WorkRef sent = send(*pair.ranks[0], 1, 3, large);
  std::thread leaving([&] { pair.ranks[0].reset(); });
  // It is past its last message when it leaves: only then does this rank ask.
  Bytes none(1);
  EXPECT_FALSE(receive(*pair.ranks[1], 0, 4, none)->wait(Milliseconds(100)));
  EXPECT_EQ(error_of(receive(*pair.ranks[1], 0, 3, got)), "");
  EXPECT_TRUE(got == large);
  leaving.join();
  EXPECT_TRUE(sent->wait());
}

TEST(Messages, AFailureEndsWhatIsOfferedAndAskedFor) {
  Pair pair;
  Bytes large(64 * kMiB), got(64 * kMiB), other(5 * kMiB);
  const WorkRef sent = send(*pair.ranks[0], 1, 3, large), waits = send(*pair.ranks[0], 1, 4, other);
  const WorkRef received = receive(*pair.ranks[1], 0, 3, got), never = receive(*pair.ranks[1], 0, 5, other);
  pair.ranks[1]->fail("it is over");
  EXPECT_NE(error_of(waits).find("it is over"), std::string::npos);
  EXPECT_NE(error_of(never).find("it is over"), std::string::npos);
  error_of(sent), error_of(received);  // may have been done before
  EXPECT_THROW(send(*pair.ranks[1], 0, 3, other), DistBackendError);
}

}  // namespace
}  // namespace naru::distributed
