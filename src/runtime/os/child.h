// Queries to a driver that leave traces in the process: after such a query, forked children can't use the driver any more. Therefore a
// forked child runs the query, and the parent reads its text.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace naru::runtime {

struct ChildAnswer {
  std::optional<std::string> text;
  std::string trouble;  // why there is no text: "signal 11 (Segmentation fault)", "no answer within 60 s"
};

// True if this system can fork; otherwise a driver can only be queried in this process.
extern const bool kChildren;

// Runs `ask` in a forked child of this process, or in this process where there is no fork (then the limit does not hold). `ask` must not touch
// threads, locks or devices of the parent.
ChildAnswer ask_in_child(const std::function<std::string()>& ask, std::chrono::milliseconds limit);

}  // namespace naru::runtime
