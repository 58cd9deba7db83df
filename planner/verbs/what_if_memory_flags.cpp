#include "planner/verbs/what_if_memory_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "profiles/quantity_text.h"

namespace frazil {
namespace {

// Reads a comma list of sizes.
std::vector<Bytes> read_sizes(const Flags& flags, const std::string& name) {
  const std::string list = required_text(flags, name);
  std::vector<Bytes> sizes;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    sizes.push_back(parse_bytes(list.substr(begin, end - begin), "--" + name));
    begin = end + 1;
  }
  return sizes;
}

}  // namespace

void describe_what_if_memory(boost::program_options::options_description& flags) {
  flags.add_options()  //
      ("activation", text_value("SIZE"),
       "what-if: what a micro-batch keeps on a device until its backward, one or a comma list by "
       "device")  //
      ("stage-input", text_value("SIZE"),
       "with --activation: what of it a stage that recomputes (varuna) keeps until it does, its "
       "input; one or a comma list by device; default: all of it, an upper bound")  //
      ("state", text_value("SIZE"),
       "with --activation: parameters, gradients and optimizer state of a device, one or "
       "a comma list; default 0B")  //
      ("memory-limit", text_value("SIZE"),
       "with --activation: what a device can hold; says whether it fits");
}

std::optional<WhatIfMemory> read_what_if_memory(const Flags& flags) {
  if (flags.count("activation") == 0) {
    for (const char* flag : {"stage-input", "state", "memory-limit"}) {
      if (flags.count(flag) > 0) {
        refuse_flags(fmt::format("--{} without --activation", flag), "both");
      }
    }
    return std::nullopt;
  }
  WhatIfMemory memory{.activation = read_sizes(flags, "activation")};
  if (flags.count("stage-input") > 0) memory.input = read_sizes(flags, "stage-input");
  if (flags.count("state") > 0) memory.state = read_sizes(flags, "state");
  if (const auto limit = optional_text(flags, "memory-limit")) {
    memory.limit = parse_bytes(*limit, "--memory-limit");
  }
  return memory;
}

}  // namespace frazil
