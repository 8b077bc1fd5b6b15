# What the library is made with, as it is installed, or as targets (fmt::fmt, asmjit::asmjit) that a project around naru has made already.
foreach(package IN ITEMS fmt asmjit)
  if(NOT TARGET ${package}::${package})
    find_package(${package} QUIET)
    if(NOT ${package}_FOUND)
      message(FATAL_ERROR "naru needs ${package} (Debian: lib${package}-dev): install it, say where it is (${package}_DIR), or make the target "
        "${package}::${package} before naru is added")
    endif()
  endif()
endforeach()
find_path(NARU_HIGHWAY hwy/contrib/sort/vqsort-inl.h REQUIRED DOC "Headers of Highway (Debian: libhwy-dev)")
find_path(NARU_JSON nlohmann/json.hpp REQUIRED DOC "JSON for Modern C++ (Debian: nlohmann-json3-dev)")
