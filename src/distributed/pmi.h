// Pmi: starts MPI without mpiexec. An MPI library asks whoever has started its process for the other ranks' addresses, by the text protocol
// PMI-1 on a socket. Here each rank answers its own library from the group's store.
#pragma once

#include <string>
#include <vector>

#include "distributed/socket.h"

namespace naru::distributed {

class Pmi {
 public:
  // hosts: of all ranks; equal texts are equal hosts. name: of this start of MPI, unique, because libraries name files by it. The store's keys
  // must be used by this start only.
  Pmi(Store& store, int rank, const std::vector<std::string>& hosts, std::string name);
  // Sets the variables by which the library finds its end of the socket. Call before MPI's start, and clear_environment() after it.
  void set_environment() const;
  static void clear_environment();
  // Answers what the library asks; waits for at most about `milliseconds`.
  void serve(int milliseconds);

 private:
  void answer(const std::string& line);
  void tell(const std::string& text);
  void pass_barrier(int milliseconds);

  Store& store_;
  const int rank_, size_;
  std::string mapping_, name_, heard_;
  Descriptor mine_, librarys_;
  int barriers_ = 0;
  bool in_barrier_ = false;
};

// "(vector,(0,2,4))": 2 hosts from number 0 on, with 4 consecutive ranks each.
std::string pmi_mapping(const std::vector<std::string>& hosts);

}  // namespace naru::distributed
