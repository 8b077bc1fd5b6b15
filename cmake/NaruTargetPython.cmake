# The Python of another system for which the extension is cross-compiled: headers by tools/python_headers.py, the names of the file, how it is linked.
# NARU_TARGET_PYTHON is a Python of this machine with the same version, or a folder of its headers. This machine's own Python runs nanobind's scripts.
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)  # nanobind comes from it
if(WIN32)
  set(target windows-x64)
else()
  set(target macos-${CMAKE_SYSTEM_PROCESSOR})
endif()
string(MD5 place "${NARU_TARGET_PYTHON}")
set(place "${CMAKE_BINARY_DIR}/target-python/${place}")
execute_process(COMMAND "${Python_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tools/python_headers.py" ${target} "${NARU_TARGET_PYTHON}" "${place}" "${CMAKE_C_COMPILER}"
  OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_VARIABLE error RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${error}")
endif()
string(REPLACE "." "" version "${version}")

set(Python_INCLUDE_DIRS "${place}/include")
add_library(Python::Module INTERFACE IMPORTED)
target_include_directories(Python::Module INTERFACE "${place}/include")
set(NB_SUFFIX_S ".abi3.so")  # not used
if(WIN32)
  set(NB_SUFFIX ".cp${version}-win_amd64.pyd")
  execute_process(COMMAND "${tools}/dlltool" -m i386:x86-64 -d "${place}/python.def" -l "${place}/libpython.a"
    RESULT_VARIABLE status ERROR_VARIABLE error)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "The import library of python${version}.dll could not be made: ${error}")
  endif()
  target_link_libraries(Python::Module INTERFACE "${place}/libpython.a")
else()
  set(NB_SUFFIX ".cpython-${version}-darwin.so")
  # A library, not a bundle, which Python's loader opens as well: the bundles of zig's linker are damaged.
  set(CMAKE_SHARED_MODULE_CREATE_CXX_FLAGS "-shared")
endif()

# naru_link_for_target_python(TARGET): in place of nanobind's options, which are for Apple's linker.
function(naru_link_for_target_python target)
  set_target_properties(${target} PROPERTIES LINK_OPTIONS "")
  if(WIN32)
    target_link_options(${target} PRIVATE LINKER:-s)
  else()
    target_link_options(${target} PRIVATE LINKER:-undefined,dynamic_lookup LINKER:-dead_strip LINKER:-s LINKER:-install_name,@loader_path/_C${NB_SUFFIX})
  endif()
endfunction()
