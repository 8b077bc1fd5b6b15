// Reads and writes zip archives with uncompressed records, as torch.save writes them. The writer aligns the records.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace naru::data {

uint32_t crc32(std::string_view bytes, uint32_t before = 0) noexcept;

// The records of an archive by name. Throws RuntimeError if the file is not a zip archive or is damaged, or if records are outside the file,
// overlap or are compressed.
class ZipReader {
 public:
  struct Record {
    uint64_t begin = 0, size = 0;
    uint32_t crc = 0;
  };
  explicit ZipReader(std::string_view archive);
  const std::map<std::string, Record>& records() const noexcept { return records_; }
  // A record's bytes. Throws RuntimeError if there is no such record or its checksum is wrong.
  std::string_view read(const std::string& name) const;

 private:
  std::string_view archive_;
  std::map<std::string, Record> records_;
};

// Passes the archive to `out` piece by piece.
class ZipWriter {
 public:
  using Out = std::function<void(std::string_view)>;
  static constexpr uint64_t kAlignment = 64;  // of the records' data, so that tensors of a mapped file are aligned
  explicit ZipWriter(Out out) : out_(std::move(out)) {}
  void add(const std::string& name, std::string_view bytes);
  // Writes the directory. No record may be added afterwards.
  void finish();

 private:
  struct Entry {
    std::string name;
    uint64_t at, size;
    uint32_t crc;
  };
  void write(std::string_view bytes);
  Out out_;
  uint64_t at_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace naru::data
