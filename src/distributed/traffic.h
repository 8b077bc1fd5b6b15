// Traffic: what one collective sends and receives, and the loop that does it. A collective is, for each peer, a list of outgoing and a list
// of incoming items.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "distributed/channels.h"
#include "distributed/ordered.h"

namespace naru::distributed {

// Sent before a collective's elements, so that ranks can check that they run the same collective.
struct Header {
  uint64_t magic = 0x6e6172752d636f6c;
  uint64_t number = 0;  // sequence number of the collective in its group
  uint64_t elements = 0;
  uint8_t what = 0, op = 0, type = 0, dims = 0;
  int32_t root = -1;
  int64_t sizes[4] = {};  // the first ones, for error messages
};
static_assert(sizeof(Header) == 64);

class Traffic {
 public:
  Traffic(int rank, int ranks);

  // Clears all lists; each starts with the header that this rank sends and expects.
  void begin(const Header& mine);
  // Exchanges at least headers with a peer. `expected`: the peer's header, if it differs from the one that this rank sends.
  void meet(int peer, const Header* sent = nullptr, const Header* expected = nullptr);
  void hear(int peer);  // only receives a header
  void tell(int peer);  // only sends a header
  void send(int peer, const char* data, size_t bytes) { lane(peer).out.push_back({data, bytes, nullptr}); }
  void receive(int peer, char* into, size_t bytes) { lane(peer).in.push_back({into, bytes, false}); }
  // `into` holds this rank's elements, and gets the tree over those of all ranks. Averages are divided by `shards`. At most once per
  // Traffic.
  void fold(char* into, size_t bytes, size_t element, const Reduction& reduction, int shards);
  // Sends the folded elements to all others.
  void send_folded();

  // Called in each iteration without progress, before waiting: throws if waiting is useless.
  using Look = std::function<void(std::span<const uint8_t> wanted)>;
  // Called when a header differs from the expected one.
  using Complain = std::function<void(int peer, const Header& theirs, const Header& expected)>;
  void run(Channels& channels, const Look& look, const Complain& complain);
  // Peers from which nothing has arrived although something is expected.
  std::vector<int> absent() const;

 private:
  static constexpr size_t kAlignment = 16;
  struct Out {
    const char* data;
    size_t bytes;
    const size_t* ready;  // how many bytes may be sent by now; null: all
  };
  struct In {
    char* into;
    size_t bytes;
    bool folded;
  };
  struct Lane {
    std::vector<Out> out;
    std::vector<In> in;
    size_t out_index = 0, out_at = 0, in_index = 0, in_at = 0;
    bool hears = false;
    Header sent, expected, theirs;
  };
  Lane& lane(int peer) { return lanes_[static_cast<size_t>(peer)]; }
  bool send_some(Channels& channels, int peer, bool& done);
  bool receive_some(Channels& channels, int peer, const Complain& complain, bool& done);
  size_t take(Channels& channels, int peer, const In& item);
  bool fold_some(Channels& channels, bool& done);

  int rank_, ranks_;
  std::vector<Lane> lanes_;
  std::vector<uint8_t> wanted_;
  Header mine_;
  Reduction reduction_;
  TreeFold tree_;
  std::vector<Shards> leaves_;        // one for each rank
  std::vector<const char*> arrived_;  // each rank's elements that are folded next
  char* fold_into_ = nullptr;
  size_t fold_bytes_ = 0, fold_element_ = 1, folded_ = 0;  // folded_: how many bytes of the result are there
  int fold_shards_ = 1;
};

}  // namespace naru::distributed
