// Kernels' texts as libraries, made by the machine's own C++ compiler. A text is compiled once: libraries are kept in
//   NARU_FAKE_KERNELS  a folder (default: "kernels" beside this library)
// with the texts as the driver under test wrote them.
#pragma once

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

inline std::string kernels_folder() {
  if (const char* named = getenv("NARU_FAKE_KERNELS"); named && *named) return named;
  static const char here = 0;
  Dl_info info;
  dladdr(&here, &info);
  const std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/')) + "/kernels";
}

inline unsigned long long hash_of(const std::string& text) {
  unsigned long long h = 0xcbf29ce484222325u;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return h;
}

// The library of `all`, from the folder or newly compiled with the options; `text` is kept beside it in a file with that extension. "" and the compiler's
// log on failure.
inline std::string host_library(const std::string& all, const std::string& text, const std::string& extension, const std::string& options,
                                std::string& log) {
  const std::string place = kernels_folder();
  char name[40];
  snprintf(name, sizeof name, "/%016llx", hash_of(all));
  const std::string path = place + name + ".so", kept = place + name + extension;
  const auto exists = [](const std::string& file) { return access(file.c_str(), F_OK) == 0; };
  if (exists(path) && exists(kept)) return path;
  for (size_t slash = place.find('/', 1); slash != std::string::npos; slash = place.find('/', slash + 1))
    mkdir(place.substr(0, slash).c_str(), 0777);
  mkdir(place.c_str(), 0777);
  const std::string mine = place + name + "." + std::to_string(getpid());
  const auto keep = [&] {
    std::ofstream(mine + extension) << text;
    rename((mine + extension).c_str(), kept.c_str());
    return path;
  };
  if (exists(path)) return keep();
  std::ofstream(mine + ".cpp") << all;
  const char* compiler = getenv("NARU_FAKE_CXX");
  // -Og compiles faster than -O1, and the kernels run as fast.
  const std::string command = std::string(compiler ? compiler : "c++") +
                              " -Og -pipe -w -fPIC -shared -nostartfiles -nodefaultlibs -Wl,-z,defs -fno-strict-aliasing -fwrapv " +
                              options + " -o '" + mine + ".so' '" + mine + ".cpp' -lm -lc >'" + mine + ".log' 2>&1 9>&-";
  const int status = system(command.c_str());
  std::stringstream words;
  words << std::ifstream(mine + ".log").rdbuf();
  log = words.str();
  unlink((mine + ".cpp").c_str()), unlink((mine + ".log").c_str());
  if (status != 0) return {};
  keep();
  rename((mine + ".so").c_str(), path.c_str());
  return path;
}
