// Questions to a driver whose answering leaves traces: a process that has asked can't fork children that use the driver
// any more. So a child is asked, and only its words are kept.
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

// Whether this system has such children; without them a driver can only be asked here.
extern const bool kChildren;

// Runs `ask` in a forked child of this process. `ask` must not touch threads, locks or devices of the parent.
ChildAnswer ask_in_child(const std::function<std::string()>& ask, std::chrono::milliseconds limit);

}  // namespace naru::runtime
