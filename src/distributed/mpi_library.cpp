#include "distributed/mpi_library.h"

#include <vector>

#include "naru/distributed/group.h"
#include "runtime/os/library.h"

namespace naru::distributed {
namespace {

constexpr const char* kMpiFile = "libmpi_abi.so.1";

MpiLibrary opened_mpi() {
  // .../lib/python3.12/site-packages: packages put libraries into lib.
  std::vector<std::string> paths{kMpiFile};
  for (const std::string& folder : runtime::Library::package_folders()) paths.push_back(folder + "/../../" + kMpiFile);
  std::vector<const char*> names;
  for (const std::string& path : paths) names.push_back(path.c_str());
  runtime::Library library = runtime::Library::open("NARU_MPI", names);
  MpiLibrary mpi;
  if (library) {
    mpi.path = library.path();
#define NARU_FIND(name, parameters) library.find(mpi.name, #name);
    NARU_MPI(NARU_FIND)
#undef NARU_FIND
  }
  mpi.trouble = library.trouble();
  if (!mpi.trouble.empty()) return mpi;
  int major = 0, minor = 0;
  if (mpi.MPI_Abi_get_version(&major, &minor) != kMpiSuccess || major != 1)
    mpi.trouble = mpi.path + " has version " + std::to_string(major) + "." + std::to_string(minor) + " of MPI's ABI, and naru knows 1";
  return mpi;
}

}  // namespace

const MpiLibrary& mpi_library() {
  static const auto& mpi = *new MpiLibrary(opened_mpi());
  return mpi;
}

std::string MpiLibrary::error_text(int error) const {
  char text[kMpiMostErrorText + 1] = {};
  int length = 0;
  if (MPI_Error_string(error, text, &length) != kMpiSuccess) return "error " + std::to_string(error);
  return text;
}

std::string MpiLibrary::version() const {
  std::vector<char> text(kMpiMostVersionText + 1);
  int length = 0;
  if (MPI_Get_library_version(text.data(), &length) != kMpiSuccess) return "";
  std::string all(text.data());
  all = all.substr(0, all.find('\n'));
  for (char& c : all)
    if (c == '\t') c = ' ';
  return all;
}

std::string mpi_path() { return mpi_library().trouble.empty() ? mpi_library().path : ""; }

}  // namespace naru::distributed
