// The part of MPI that naru uses, opened at run time, so building needs no MPI. Types and numbers are those of the standard's ABI
// (MPI 5.0, chapter 20), which is the same in every library that calls itself libmpi_abi.so.1.
#pragma once

#include <cstdint>
#include <string>

namespace naru::distributed {

// Handles are pointers, and predefined ones are small numbers.
using MpiHandle = void*;

struct MpiStatus {
  int source, tag, error;
  int internal[5];
};

inline constexpr int kMpiSuccess = 0, kMpiAnySource = -1, kMpiAnyTag = -2, kMpiUndefined = -32766, kMpiErrorInStatus = 19;
inline constexpr int kMpiThreadFunneled = 1024, kMpiMostErrorText = 512, kMpiMostVersionText = 8192;
inline MpiHandle mpi_handle(uintptr_t number) noexcept { return reinterpret_cast<MpiHandle>(number); }
inline MpiHandle mpi_world() noexcept { return mpi_handle(0x101); }
inline MpiHandle mpi_self() noexcept { return mpi_handle(0x102); }
inline MpiHandle mpi_info_null() noexcept { return mpi_handle(0x130); }
inline MpiHandle mpi_errors_return() noexcept { return mpi_handle(0x143); }
inline MpiHandle mpi_no_request() noexcept { return mpi_handle(0x180); }
inline MpiHandle mpi_byte() noexcept { return mpi_handle(0x247); }

#define NARU_MPI(F)                                                                                                           \
  F(MPI_Abi_get_version, (int* major, int* minor))                                                                            \
  F(MPI_Get_library_version, (char* text, int* length))                                                                       \
  F(MPI_Session_init, (MpiHandle info, MpiHandle error_handler, MpiHandle * session))                                         \
  F(MPI_Group_from_session_pset, (MpiHandle session, const char* name, MpiHandle* group))                                     \
  F(MPI_Comm_create_from_group, (MpiHandle group, const char* tag, MpiHandle info, MpiHandle error_handler, MpiHandle* comm)) \
  F(MPI_Init_thread, (int* argc, char*** argv, int wanted, int* given))                                                       \
  F(MPI_Comm_set_errhandler, (MpiHandle comm, MpiHandle error_handler))                                                       \
  F(MPI_Comm_rank, (MpiHandle comm, int* rank))                                                                               \
  F(MPI_Comm_size, (MpiHandle comm, int* size))                                                                               \
  F(MPI_Isend, (const void* data, int count, MpiHandle type, int to, int tag, MpiHandle comm, MpiHandle* request))            \
  F(MPI_Irecv, (void* data, int count, MpiHandle type, int from, int tag, MpiHandle comm, MpiHandle* request))                \
  F(MPI_Testsome, (int count, MpiHandle* requests, int* completed, int* indices, MpiStatus* statuses))                        \
  F(MPI_Get_count, (const MpiStatus* status, MpiHandle type, int* count))                                                     \
  F(MPI_Error_string, (int error, char* text, int* length))

struct MpiLibrary {
#define NARU_DECLARE(name, parameters) int(*name) parameters = nullptr;
  NARU_MPI(NARU_DECLARE)
#undef NARU_DECLARE
  std::string path, trouble;  // trouble: why it can't be used; "" if it can
  std::string error_text(int error) const;
  // "MPICH Version: 5.0.2"
  std::string version() const;
};

// Opens it at the first call: the file that NARU_MPI names, else the system's libmpi_abi.so.1, else that of a Python package (`pip install
// mpich` puts it into the environment's lib folder).
const MpiLibrary& mpi_library();

}  // namespace naru::distributed
