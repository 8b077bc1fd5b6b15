# Builds naru's dependencies from source (tools/sources.py), for systems without packages of them. NARU_SOURCES is the folder of the sources.
# Defines the same targets that a surrounding project could define (NaruDependencies.cmake).
add_library(naru_fmt STATIC "${NARU_SOURCES}/fmt/src/format.cc")
target_include_directories(naru_fmt SYSTEM PUBLIC "${NARU_SOURCES}/fmt/include")
target_compile_features(naru_fmt PUBLIC cxx_std_20)
add_library(fmt::fmt ALIAS naru_fmt)

file(GLOB_RECURSE sources "${NARU_SOURCES}/asmjit/src/asmjit/*.cpp")
add_library(naru_asmjit STATIC ${sources})
target_include_directories(naru_asmjit SYSTEM PUBLIC "${NARU_SOURCES}/asmjit/src")
target_compile_definitions(naru_asmjit PUBLIC ASMJIT_STATIC)
target_compile_options(naru_asmjit PRIVATE -w -fno-math-errno)
add_library(asmjit::asmjit ALIAS naru_asmjit)

# Header-only.
set(NARU_HIGHWAY "${NARU_SOURCES}/highway")
set(NARU_JSON "${NARU_SOURCES}/json/include")
target_include_directories(naru_flags SYSTEM INTERFACE "${NARU_HIGHWAY}" "${NARU_JSON}")
