// Files that are written completely or not at all.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "runtime/os/atomic_file.h"

namespace naru::runtime {
namespace {

namespace fs = std::filesystem;

struct Folder {
  Folder() {
    path = (fs::temp_directory_path() / "naru-atomic-XXXXXX").string();
    if (!mkdtemp(path.data())) path.clear();
  }
  ~Folder() { fs::remove_all(path); }
  std::string file(const char* name) const { return path + "/" + name; }
  size_t count() const { return static_cast<size_t>(std::distance(fs::directory_iterator(path), fs::directory_iterator())); }
  std::string path;
};

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(in)), {});
}
void write(const std::string& path, std::string_view text) {
  AtomicFile f(path);
  f.write(text);
  f.commit();
}

TEST(AtomicFile, IsThereOnlyWhenItIsComplete) {
  const Folder folder;
  write(folder.file("x"), "old");
  {
    AtomicFile f(folder.file("x"));
    f.write("new");
    EXPECT_EQ(content(folder.file("x")), "old");
  }
  EXPECT_EQ(content(folder.file("x")), "old");
  write(folder.file("x"), "new");
  EXPECT_EQ(content(folder.file("x")), "new");
  EXPECT_EQ(folder.count(), 1u);
}

TEST(AtomicFile, FollowsLinksAndKeepsTheMode) {
  const Folder folder;
  write(folder.file("x"), "old");
  chmod(folder.file("x").c_str(), 0600);
  ASSERT_EQ(symlink("x", folder.file("link").c_str()), 0);
  write(folder.file("link"), "new");
  struct stat s {};
  ASSERT_EQ(lstat(folder.file("x").c_str(), &s), 0);
  EXPECT_TRUE(S_ISREG(s.st_mode));
  EXPECT_EQ(s.st_mode & 07777, 0600u);
  EXPECT_TRUE(fs::is_symlink(folder.file("link")));
  EXPECT_EQ(content(folder.file("x")), "new");
}

TEST(AtomicFile, SaysWhatTheSystemSays) {
  const Folder folder;
  const auto number_of = [](const std::string& path) {
    try {
      write(path, "text");
    } catch (const FileError& e) {
      return e.number();
    }
    return 0;
  };
  EXPECT_EQ(number_of(folder.path), EISDIR);
  EXPECT_EQ(number_of(folder.file("none") + "/x"), ENOENT);
  EXPECT_EQ(number_of("/dev/full"), ENOSPC);
  EXPECT_EQ(number_of(folder.file("x") + std::string(1, '\0') + "y"), EINVAL);
  EXPECT_EQ(folder.count(), 0u);
}

}  // namespace
}  // namespace naru::runtime
