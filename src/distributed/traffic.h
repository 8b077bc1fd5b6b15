// Traffic: what one collective sends and receives, and the loop that does it. Every collective is a list for each peer of what goes out and what comes in.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "distributed/channels.h"
#include "distributed/reduction.h"

namespace naru::distributed {

// What ranks tell each other before a collective's elements, so that they can compare what they are doing.
struct Header {
  uint64_t magic = 0x6e6172752d636f6c;
  uint64_t number = 0;  // of the collective, in its group
  uint64_t elements = 0;
  uint8_t what = 0, op = 0, type = 0, dims = 0;
  int32_t root = -1;
  int64_t sizes[4] = {};  // the first ones, to be shown
};
static_assert(sizeof(Header) == 64);

class Traffic {
 public:
  Traffic(int rank, int ranks);

  // Empties it; all lists begin with the headers that this rank sends and expects.
  void begin(const Header& mine);
  // With that peer something is exchanged: headers at least. `expected` of him, where that is not what this rank sends.
  void meet(int peer, const Header* sent = nullptr, const Header* expected = nullptr);
  void hear(int peer);  // only a header comes
  void tell(int peer);  // only a header goes
  void send(int peer, const char* data, size_t bytes) { lane(peer).out.push_back({data, bytes, nullptr}); }
  void receive(int peer, char* into, size_t bytes) { lane(peer).in.push_back({into, bytes, false}); }
  // `into` holds this rank's elements; those of all others are folded in, in the order rank + 1, ..., 0, ..., rank - 1. Once in a Traffic.
  void fold(char* into, size_t bytes, size_t element, const Reduction& reduction);
  // What has been folded goes to all others.
  void send_folded();

  // In each turn that brought nothing, before it waits: throws where it is no use to wait.
  using Look = std::function<void(std::span<const uint8_t> wanted)>;
  // Where a header is not what was expected.
  using Complain = std::function<void(int peer, const Header& theirs, const Header& expected)>;
  void run(Channels& channels, const Look& look, const Complain& complain);
  // Of whom nothing of what is wanted has come yet.
  std::vector<int> absent() const;

 private:
  static constexpr size_t kAlignment = 16;
  struct Out {
    const char* data;
    size_t bytes;
    const size_t* ready;  // how much of it may go; null: all
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
    size_t folded = 0;  // of this peer's elements
    bool hears = false;
    Header sent, expected, theirs;
  };
  Lane& lane(int peer) { return lanes_[static_cast<size_t>(peer)]; }
  bool send_some(Channels& channels, int peer, bool& done);
  bool receive_some(Channels& channels, int peer, const Complain& complain, bool& done);
  size_t take(Channels& channels, int peer, const In& item);
  // How much of a peer's elements may be folded: as much as of the peer before him.
  size_t fold_limit(int peer) const;

  int rank_, ranks_;
  std::vector<Lane> lanes_;
  std::vector<uint8_t> wanted_;
  Header mine_;
  Reduction reduction_;
  char* fold_into_ = nullptr;
  size_t fold_bytes_ = 0, fold_element_ = 1, folded_ = 0;  // folded_: of the last peer's
};

}  // namespace naru::distributed
