// Zip archives of stored records, as torch.save writes them: what a record's bytes are, and a writer that aligns them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace naru::data {

uint32_t crc32(std::string_view bytes, uint32_t before = 0) noexcept;

// The records of an archive by name. Throws RuntimeError for what is no archive, is damaged, or has records that reach beyond it, overlap or are
// compressed.
class ZipReader {
 public:
  struct Record {
    uint64_t begin = 0, size = 0;
    uint32_t crc = 0;
  };
  explicit ZipReader(std::string_view archive);
  const std::map<std::string, Record>& records() const noexcept { return records_; }
  // A record's bytes, checked. RuntimeError where there is none of that name, or its bytes are not those that were written.
  std::string_view read(const std::string& name) const;

 private:
  std::string_view archive_;
  std::map<std::string, Record> records_;
};

// Hands the archive to `out` piece by piece.
class ZipWriter {
 public:
  using Out = std::function<void(std::string_view)>;
  static constexpr uint64_t kAlignment = 64;  // of records' bytes, so that a mapped file's tensors are aligned
  explicit ZipWriter(Out out) : out_(std::move(out)) {}
  void add(const std::string& name, std::string_view bytes);
  // The directory. Nothing may be added after it.
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
