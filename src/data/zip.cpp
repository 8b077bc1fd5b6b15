#include "data/zip.h"

#include <array>
#include <cstring>
#include <utility>

#include "naru/error.h"

namespace naru::data {
namespace {

// table[k][b]: the CRC of the byte b followed by k zero bytes.
constexpr auto kTables = [] {
  std::array<std::array<uint32_t, 256>, 8> t{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t c = b;
    for (int bit = 0; bit < 8; ++bit) c = c & 1 ? c >> 1 ^ 0xEDB88320u : c >> 1;
    t[0][b] = c;
  }
  for (size_t k = 1; k < 8; ++k)
    for (size_t b = 0; b < 256; ++b) t[k][b] = t[k - 1][b] >> 8 ^ t[0][t[k - 1][b] & 255];
  return t;
}();

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr uint32_t kFull32 = 0xFFFFFFFF;
constexpr uint16_t kFull16 = 0xFFFF, kZip64 = 1, kPadding = 0x4246;  // "FB": PyTorch's id for padding

[[noreturn]] void damaged(const std::string& why) {
  throw RuntimeError("PytorchStreamReader failed reading zip archive: the file is damaged: {}", why);
}

// Reads and writes little-endian numbers, independent of the host's byte order.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes, uint64_t at = 0) : bytes_(bytes), at_(at) {}
  template <class T>
  T get() {
    const std::string_view part = take(sizeof(T));
    uint64_t v = 0;
    for (size_t i = sizeof(T); i-- > 0;) v = v << 8 | static_cast<uint8_t>(part[i]);
    return static_cast<T>(v);
  }
  std::string_view take(uint64_t n) {
    if (at_ > bytes_.size() || n > bytes_.size() - at_) damaged("it is cut short");
    at_ += n;
    return bytes_.substr(at_ - n, n);
  }
  uint64_t at() const { return at_; }
  bool ended() const { return at_ >= bytes_.size(); }

 private:
  std::string_view bytes_;
  uint64_t at_;
};

template <class... T>
std::string packed(T... numbers) {
  std::string s;
  const auto put = [&](auto v) {
    for (size_t i = 0; i < sizeof v; ++i) s += static_cast<char>(static_cast<uint64_t>(v) >> 8 * i);
  };
  (put(numbers), ...);
  return s;
}

struct Directory {
  uint64_t at, size, count;
};

Directory find_directory(std::string_view archive) {
  // The end record may be followed by a comment of up to 64 KiB.
  const std::string end = packed(kEnd);
  const size_t from = archive.size() < 22 ? 0 : archive.size() - 22;
  const size_t at = archive.rfind(end, from);
  if (archive.size() < 22 || at == std::string_view::npos || from - at > kFull16)
    throw RuntimeError(
        "PytorchStreamReader failed reading zip archive: failed finding central directory (no file written by torch.save, or cut short)");
  Bytes b(archive, at + 4);
  b.take(4);  // disk numbers
  b.get<uint16_t>();
  Directory d{};
  d.count = b.get<uint16_t>(), d.size = b.get<uint32_t>(), d.at = b.get<uint32_t>();
  if (d.count != kFull16 && d.size != kFull32 && d.at != kFull32) return d;
  if (at < 20) damaged("its directory is not where it says");
  Bytes locator(archive, at - 20);
  if (locator.get<uint32_t>() != kLocator64) return d;
  locator.get<uint32_t>();
  Bytes end64(archive, locator.get<uint64_t>());
  if (end64.get<uint32_t>() != kEnd64) damaged("its directory is not where it says");
  end64.take(28);
  d.count = end64.get<uint64_t>(), d.size = end64.get<uint64_t>(), d.at = end64.get<uint64_t>();
  return d;
}

// Sizes that do not fit into 32 bits are in an extra field, in this order.
void read_extra(std::string_view extra, uint64_t& size, uint64_t& packed_size, uint64_t& at) {
  for (Bytes b(extra); !b.ended();) {
    const uint16_t kind = b.get<uint16_t>();
    Bytes field(b.take(b.get<uint16_t>()));
    if (kind != kZip64) continue;
    for (uint64_t* v : {&size, &packed_size, &at})
      if (*v == kFull32) *v = field.get<uint64_t>();
  }
}

}  // namespace

uint32_t crc32(std::string_view bytes, uint32_t before) noexcept {
  uint32_t c = ~before;
  const auto* p = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t n = bytes.size();
  const auto& t = kTables;
  for (; n >= 8; p += 8, n -= 8) {
    c ^= uint32_t{p[0]} | uint32_t{p[1]} << 8 | uint32_t{p[2]} << 16 | uint32_t{p[3]} << 24;
    c = t[7][c & 255] ^ t[6][c >> 8 & 255] ^ t[5][c >> 16 & 255] ^ t[4][c >> 24] ^ t[3][p[4]] ^ t[2][p[5]] ^ t[1][p[6]] ^ t[0][p[7]];
  }
  for (; n > 0; ++p, --n) c = c >> 8 ^ t[0][(c ^ *p) & 255];
  return ~c;
}

ZipReader::ZipReader(std::string_view archive) : archive_(archive) {
  const Directory d = find_directory(archive);
  if (d.at > archive.size() || d.size > archive.size() - d.at) damaged("its directory reaches beyond its end");
  Bytes b(archive.substr(0, d.at + d.size), d.at);
  uint64_t held = 0;
  for (uint64_t i = 0; i < d.count; ++i) {
    if (b.get<uint32_t>() != kCentral) damaged("its directory has an entry that is none");
    b.take(4);  // versions
    const uint16_t flags = b.get<uint16_t>(), method = b.get<uint16_t>();
    b.take(4);  // time
    Record r;
    r.crc = b.get<uint32_t>();
    uint64_t packed_size = b.get<uint32_t>();
    r.size = b.get<uint32_t>();
    const uint16_t name_size = b.get<uint16_t>(), extra_size = b.get<uint16_t>(), comment_size = b.get<uint16_t>();
    b.take(8);  // disk, attributes
    uint64_t at = b.get<uint32_t>();
    const std::string name(b.take(name_size));
    read_extra(b.take(extra_size), r.size, packed_size, at);
    b.take(comment_size);
    if (method != 0 || flags & 1)
      throw RuntimeError("load: the record '{}' is {}; wanted one as torch.save writes it, stored", name,
                         flags & 1 ? "encrypted" : "compressed");
    if (packed_size != r.size) damaged("'" + name + "' has another number of bytes than it should");
    Bytes local(archive, at);
    if (local.get<uint32_t>() != kLocal) damaged("'" + name + "' is not where it should be");
    local.take(22);
    const uint16_t local_name = local.get<uint16_t>(), local_extra = local.get<uint16_t>();
    local.take(uint64_t{local_name} + local_extra);
    r.begin = local.at();
    if (r.size > archive.size() - r.begin) damaged("'" + name + "' reaches beyond its end");
    held += r.size;
    if (!records_.emplace(name, r).second) damaged("'" + name + "' is there twice");
  }
  if (held > archive.size()) damaged("its records overlap");
}

std::string_view ZipReader::read(const std::string& name) const {
  const auto at = records_.find(name);
  if (at == records_.end())
    throw RuntimeError("PytorchStreamReader failed locating file {}: file not found", name.substr(name.find('/') + 1));
  const std::string_view bytes = archive_.substr(at->second.begin, at->second.size);
  if (crc32(bytes) != at->second.crc) damaged("the bytes of '" + name + "' are not those that were written");
  return bytes;
}

void ZipWriter::write(std::string_view bytes) {
  out_(bytes);
  at_ += bytes.size();
}

void ZipWriter::add(const std::string& name, std::string_view bytes) {
  const bool wide = bytes.size() >= kFull32;
  const uint32_t size = wide ? kFull32 : static_cast<uint32_t>(bytes.size());
  std::string extra = wide ? packed(kZip64, uint16_t{16}, uint64_t{bytes.size()}, uint64_t{bytes.size()}) : std::string();
  const uint64_t begin = at_ + 30 + name.size() + extra.size() + 4;
  const auto fill = static_cast<uint16_t>((kAlignment - begin % kAlignment) % kAlignment);
  extra += packed(kPadding, fill) + std::string(fill, 'Z');
  entries_.push_back({name, at_, bytes.size(), crc32(bytes)});
  write(packed(kLocal, uint16_t{45}, uint16_t{0x800}, uint16_t{0}, uint16_t{0}, uint16_t{0x21}, entries_.back().crc, size, size,
               static_cast<uint16_t>(name.size()), static_cast<uint16_t>(extra.size())) +
        name + extra);
  write(bytes);
}

void ZipWriter::finish() {
  const uint64_t begin = at_;
  for (const Entry& e : entries_) {
    std::string wide;
    for (const uint64_t v : {e.size, e.size, e.at})
      if (v >= kFull32) wide += packed(v);
    const auto narrow = [](uint64_t v) { return v >= kFull32 ? kFull32 : static_cast<uint32_t>(v); };
    const std::string extra = wide.empty() ? wide : packed(kZip64, static_cast<uint16_t>(wide.size())) + wide;
    write(packed(kCentral, uint16_t{45}, uint16_t{45}, uint16_t{0x800}, uint16_t{0}, uint16_t{0}, uint16_t{0x21}, e.crc, narrow(e.size),
                 narrow(e.size), static_cast<uint16_t>(e.name.size()), static_cast<uint16_t>(extra.size()), uint16_t{0}, uint16_t{0},
                 uint16_t{0}, uint32_t{0}, narrow(e.at)) +
          e.name + extra);
  }
  const uint64_t size = at_ - begin, count = entries_.size(), end = at_;
  if (count >= kFull16 || begin >= kFull32 || size >= kFull32) {
    write(packed(kEnd64, uint64_t{44}, uint16_t{45}, uint16_t{45}, uint32_t{0}, uint32_t{0}, count, count, size, begin));
    write(packed(kLocator64, uint32_t{0}, end, uint32_t{1}));
  }
  const auto n = count >= kFull16 ? kFull16 : static_cast<uint16_t>(count);
  write(packed(kEnd, uint16_t{0}, uint16_t{0}, n, n, size >= kFull32 ? kFull32 : static_cast<uint32_t>(size),
               begin >= kFull32 ? kFull32 : static_cast<uint32_t>(begin), uint16_t{0}));
}

}  // namespace naru::data
