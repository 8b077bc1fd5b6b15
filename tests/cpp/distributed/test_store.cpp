#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include "distributed/tcp_server.h"
#include "naru/distributed/store.h"

namespace naru::distributed {
namespace {

using StoreRef = std::shared_ptr<Store>;

// Two clients of one store.
struct Two {
  StoreRef a, b;
};

void behaves(const Two& two) {
  Store &a = *two.a, &b = *two.b;
  const int64_t before = a.num_keys();
  a.set("name", std::string("va\0lue", 6));
  EXPECT_EQ(b.get("name"), std::string("va\0lue", 6));
  EXPECT_EQ(a.num_keys(), before + 1);
  EXPECT_TRUE(b.check({"name"}));
  EXPECT_FALSE(b.check({"name", "none"}));
  EXPECT_EQ(a.add("count", 3), 3);
  EXPECT_EQ(b.add("count", -1), 2);
  EXPECT_EQ(b.get("count"), "2");
  EXPECT_THROW(a.add("name", 1), DistStoreError);
  EXPECT_EQ(a.compare_set("cas", "old", "new"), "old");
  EXPECT_EQ(a.compare_set("cas", "", "first"), "first");
  EXPECT_EQ(b.compare_set("cas", "first", "second"), "second");
  EXPECT_EQ(b.compare_set("cas", "first", "third"), "second");
  EXPECT_EQ(b.multi_get({"count", "name"}), (std::vector<std::string>{"2", std::string("va\0lue", 6)}));
  a.set("two", "error");  // as the first word of an answer that reports an error
  EXPECT_EQ(b.multi_get({"two", "count"}), (std::vector<std::string>{"error", "2"}));
  a.append("two", " of two");
  b.append("three", "new");
  EXPECT_EQ(b.multi_get({"two", "three"}), (std::vector<std::string>{"error of two", "new"}));
  EXPECT_EQ(b.list_keys(), (std::vector<std::string>{"cas", "count", "name", "three", "two"}));
  EXPECT_TRUE(a.delete_key("three"));
  EXPECT_TRUE(a.delete_key("two"));
  EXPECT_TRUE(a.delete_key("cas"));
  EXPECT_FALSE(b.delete_key("cas"));
  try {
    b.wait({"never", "name"}, Milliseconds(20));
    FAIL();
  } catch (const DistStoreError& e) {
    EXPECT_NE(std::string(e.what()).find("wait timeout after 20ms, keys: "), std::string::npos) << e.what();
  }
  std::thread later([&] {
    std::this_thread::sleep_for(Milliseconds(30));
    a.set("late", std::string(100'000, 'x'));
  });
  EXPECT_EQ(b.get("late").size(), 100'000u);
  later.join();
  a.set_timeout(Milliseconds(10));
  EXPECT_THROW(a.get("never"), DistStoreError);
  a.set_timeout(kDefaultStoreTimeout);
}

TEST(Store, InOneProcessBehaves) {
  const auto store = std::make_shared<HashStore>();
  behaves({store, store});
}

TEST(Store, WithAPrefixKeepsToItsOwnKeys) {
  const auto store = std::make_shared<HashStore>();
  const auto one = std::make_shared<PrefixStore>("one", store), other = std::make_shared<PrefixStore>("other", store);
  behaves({one, one});
  EXPECT_FALSE(other->check({"name"}));
  EXPECT_TRUE(store->check({"one/name"}));
}

TEST(Store, InAFileBehavesAndIsDeletedByItsLastUser) {
  const std::string path = testing::TempDir() + "/naru-store-" + std::to_string(getpid());
  {
    const auto a = std::make_shared<FileStore>(path, 2), b = std::make_shared<FileStore>(path, 2);
    behaves({a, b});
    EXPECT_EQ(access(path.c_str(), F_OK), 0);
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0);
  EXPECT_THROW(FileStore("/no/such/folder/file"), DistStoreError);
}

TEST(Store, ByTcpBehaves) {
  auto server = std::make_shared<TCPStore>("127.0.0.1", uint16_t{0}, true);
  const auto client = std::make_shared<TCPStore>("localhost", server->port(), false);
  behaves({client, server});
  EXPECT_EQ(client->own_address(), "127.0.0.1");
  EXPECT_THROW(TCPStore("127.0.0.1", server->port(), true), DistNetworkError);
  const TCPStore second("127.0.0.1", server->port(), true, -1, kDefaultStoreTimeout, true, true);
  EXPECT_EQ(second.port(), server->port());
}

TEST(Store, ByTcpWaitsForItsWorkersAndSaysWhatDoesNotAnswer) {
  auto server = std::make_shared<TCPStore>("127.0.0.1", uint16_t{0}, true);
  const uint16_t port = server->port();
  server.reset();
  std::thread late([&] {
    std::this_thread::sleep_for(Milliseconds(30));
    const TCPStore client("127.0.0.1", port, false, 2);
    client.timeout();
  });
  const TCPStore again("127.0.0.1", port, true, 2);
  late.join();
  EXPECT_THROW(TCPStore("127.0.0.1", port, true, 9, Milliseconds(50), true, true), DistStoreError);
  EXPECT_THROW(TCPStore("127.0.0.1", uint16_t{1}, false, -1, Milliseconds(50)), DistNetworkError);
  EXPECT_THROW(TCPStore("127.0.0.1", uint16_t{0}, false), ValueError);
}

// Each of n clients sets its key, waits for the keys of all and reads them. The server must look for each key of a wait once, so n x n
// times for the waits and as often for the values, and not for all keys of all waiting clients at each new key (n x n x n).
TEST(TCPServer, LooksForEachKeyOfAWaitOnce) {
  constexpr int kClients = 48;
  const TCPServer server("127.0.0.1", 0);
  std::vector<std::string> keys;
  for (int i = 0; i < kClients; ++i) keys.push_back("group/0/rank/" + std::to_string(i));
  std::vector<std::thread> clients;
  for (int i = 0; i < kClients; ++i)
    clients.emplace_back([&, i] {
      TCPStore store("127.0.0.1", server.port(), false);
      store.set(keys[static_cast<size_t>(i)], std::to_string(i));
      store.wait(keys, Milliseconds(30'000));
      const std::vector<std::string> values = store.multi_get(keys);
      for (int k = 0; k < kClients; ++k) EXPECT_EQ(values[static_cast<size_t>(k)], std::to_string(k));
    });
  for (std::thread& client : clients) client.join();
  // A key that is missing is looked for once more when it comes.
  const uint64_t least = 2 * kClients * kClients;
  EXPECT_GE(server.lookups(), least);
  EXPECT_LE(server.lookups(), least + kClients * kClients);
}

TEST(TCPServer, AWaitEndsWhenAllItsKeysAreThereAtOnce) {
  const TCPServer server("127.0.0.1", 0);
  TCPStore a("127.0.0.1", server.port(), false), b("127.0.0.1", server.port(), false);
  a.set("first", "");
  std::atomic<bool> done{false};
  std::thread waiting([&] {
    b.wait({"first", "second"}, Milliseconds(30'000));
    done = true;
  });
  while (!server.lookups()) std::this_thread::yield();
  while (server.lookups() < 2) std::this_thread::yield();
  a.delete_key("first");
  a.set("second", "");
  std::this_thread::sleep_for(Milliseconds(50));
  EXPECT_FALSE(done);
  a.set("first", "");
  waiting.join();
  EXPECT_TRUE(done);
}

TEST(TCPServer, ValuesThatAreTooLargeForOneAnswerComeOneByOne) {
  const TCPServer server("127.0.0.1", 0);
  TCPStore store("127.0.0.1", server.port(), false);
  const std::string large(6u << 20, 'x');
  store.set("a", large), store.set("b", large);
  EXPECT_EQ(store.multi_get({"a", "b"}), (std::vector<std::string>{large, large}));
}

}  // namespace
}  // namespace naru::distributed
