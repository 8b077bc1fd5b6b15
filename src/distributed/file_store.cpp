// FileStore: a log of writes. Each process reads the log to its end before every operation.
// Format: records of a byte (the type), two lengths of 4 bytes, the key, the value. The file is locked while it is read or appended to.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <thread>

#include "distributed/keys.h"
#include "distributed/socket.h"
#include "runtime/os/fork.h"
#include "runtime/os/interrupt.h"

namespace naru::distributed {
namespace {

enum class Record : char { Set = 's', Erase = 'e' };
constexpr size_t kHead = 9;
// Counts the stores that were closed; user keys never start with this prefix byte.
const char* const kClosed = "\1closed";

}  // namespace

struct FileStore::State {
  const int generation = runtime::fork_generation();
  std::mutex mutex;
  Keys keys;
  off_t read = 0;
};

// The file, opened and locked, with all its records read.
class FileStore::Locked {
 public:
  explicit Locked(FileStore& store) : store_(store), lock_(store.state_->mutex) {
    for (;;) {
      file_ = Descriptor(::open(store.path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
      if (!file_) throw DistStoreError("FileStore: {} can't be opened: {}", store.path_, words_for(errno));
      while (::flock(file_.get(), LOCK_EX) != 0)
        if (errno != EINTR) throw DistStoreError("FileStore: {} can't be locked: {}", store.path_, words_for(errno));
      struct stat here {
      }, there{};
      // The last user of an earlier run may have deleted the file between open and lock; then open it again.
      if (::fstat(file_.get(), &here) == 0 && ::stat(store.path_.c_str(), &there) == 0 && here.st_ino == there.st_ino) break;
    }
    read();
  }
  Keys& keys() noexcept { return store_.state_->keys; }
  void write(Record what, const std::string& key, const std::string& value) {
    std::string record(kHead, '\0');
    record[0] = static_cast<char>(what);
    const auto n = static_cast<uint32_t>(key.size()), m = static_cast<uint32_t>(value.size());
    std::memcpy(&record[1], &n, 4);
    std::memcpy(&record[5], &m, 4);
    record += key + value;
    if (::pwrite(file_.get(), record.data(), record.size(), store_.state_->read) != static_cast<ssize_t>(record.size()))
      throw DistStoreError("FileStore: {} can't be written: {}", store_.path_, words_for(errno));
    store_.state_->read += static_cast<off_t>(record.size());
  }

 private:
  void read() {
    State& state = *store_.state_;
    struct stat now {};
    ::fstat(file_.get(), &now);
    std::string text(static_cast<size_t>(std::max<off_t>(now.st_size - state.read, 0)), '\0');
    const ssize_t got = ::pread(file_.get(), text.data(), text.size(), state.read);
    text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    size_t at = 0;
    while (text.size() - at >= kHead) {
      uint32_t n = 0, m = 0;
      std::memcpy(&n, &text[at + 1], 4);
      std::memcpy(&m, &text[at + 5], 4);
      if (text.size() - at - kHead < size_t{n} + m) break;
      const std::string key = text.substr(at + kHead, n);
      if (text[at] == static_cast<char>(Record::Erase))
        state.keys.erase(key);
      else
        state.keys.set(key, text.substr(at + kHead + n, m));
      at += kHead + n + m;
    }
    state.read += static_cast<off_t>(at);
  }
  FileStore& store_;
  std::lock_guard<std::mutex> lock_;
  Descriptor file_;  // closing it releases the lock
};

FileStore::FileStore(std::string path, int users, Milliseconds timeout)
    : Store(timeout), path_(std::move(path)), users_(users), state_(std::make_unique<State>()) {
  if (path_.empty()) throw ValueError("FileStore: the file's name must not be empty");
  const Locked file(*this);
}

FileStore::~FileStore() {
  // A forked child's copy does not count as a user.
  if (users_ <= 0 || state_->generation != runtime::fork_generation()) return;
  try {
    Locked file(*this);
    const int64_t closed = file.keys().add(kClosed, 1);
    if (closed >= users_)
      ::unlink(path_.c_str());
    else
      file.write(Record::Set, kClosed, std::to_string(closed));
  } catch (const Error&) {
    // The folder may have been deleted.
  }
}

void FileStore::set(const std::string& key, const std::string& value) {
  Locked file(*this);
  file.write(Record::Set, key, value);
  file.keys().set(key, value);
}

std::string FileStore::get(const std::string& key) {
  wait({key}, timeout());
  Locked file(*this);
  const std::string* const value = file.keys().find(key);
  return value ? *value : "";
}

int64_t FileStore::add(const std::string& key, int64_t amount) {
  Locked file(*this);
  const int64_t sum = file.keys().add(key, amount);
  file.write(Record::Set, key, std::to_string(sum));
  return sum;
}

bool FileStore::check(const std::vector<std::string>& keys) { return Locked(*this).keys().has_all(keys); }

void FileStore::wait(const std::vector<std::string>& keys, Milliseconds timeout) {
  const runtime::InterruptWatch watch;
  const Deadline deadline = after(timeout);
  while (!check(keys)) {
    if (Clock::now() >= deadline) throw_timed_out(keys, timeout);
    if (watch.interrupted()) throw runtime::Interrupted("waiting for a key of a store was interrupted");
    std::this_thread::sleep_for(Milliseconds(5));
  }
}

std::string FileStore::compare_set(const std::string& key, const std::string& expected, const std::string& desired) {
  Locked file(*this);
  std::string now = file.keys().compare_set(key, expected, desired);
  if (const std::string* const value = file.keys().find(key); value && *value == desired) file.write(Record::Set, key, desired);
  return now;
}

void FileStore::append(const std::string& key, const std::string& value) {
  Locked file(*this);
  file.keys().append(key, value);
  file.write(Record::Set, key, *file.keys().find(key));
}

std::vector<std::string> FileStore::list_keys() { return Locked(*this).keys().list(); }

bool FileStore::delete_key(const std::string& key) {
  Locked file(*this);
  if (!file.keys().erase(key)) return false;
  file.write(Record::Erase, key, "");
  return true;
}

int64_t FileStore::num_keys() {
  Locked file(*this);
  return file.keys().size() - (file.keys().find(kClosed) ? 1 : 0);
}

}  // namespace naru::distributed
