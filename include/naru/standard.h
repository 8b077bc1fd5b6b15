// std::function and std::shared_ptr for public headers, without the rest of <functional> and <memory>: hash tables, searchers, parallel algorithms and
// streams, which no declaration of naru's needs and which would be a sixth of what naru.h costs to include. libstdc++ keeps each in a file of its own;
// elsewhere, and for the library's own sources, the headers are included as they are. Programs that use more of them include them, as always.
#pragma once

#include <string>  // says whose library it is

#if defined(__GLIBCXX__) && !defined(NARU_LIBRARY) && __has_include(<bits/shared_ptr.h>) && __has_include(<bits/std_function.h>)
#include <bits/shared_ptr.h>
#include <bits/std_function.h>
#else
#include <functional>
#include <memory>
#endif
