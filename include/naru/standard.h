// std::function and std::shared_ptr for public headers, without the rest of <functional> and <memory> (hash tables, searchers, parallel
// algorithms, streams), which no declaration of naru needs and which would be a sixth of the cost of including naru.h. libstdc++ has each
// in a separate header; with other libraries, and in naru's own sources, the full headers are included. Programs that use more of
// <functional> or <memory> must include them.
#pragma once

#include <string>  // defines the library's identification macros

#if defined(__GLIBCXX__) && !defined(NARU_LIBRARY) && __has_include(<bits/shared_ptr.h>) && __has_include(<bits/std_function.h>)
#include <bits/shared_ptr.h>
#include <bits/std_function.h>
#else
#include <functional>
#include <memory>
#endif
