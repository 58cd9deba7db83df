#include "planner/verbs/what_if_flags.h"

#include <fmt/format.h>

#include "profiles/quantity_text.h"

namespace frazil {

void describe_what_if(boost::program_options::options_description& flags) {
  const auto text = [] { return boost::program_options::value<std::string>(); };
  flags.add_options()                                                                        //
      ("stages", text(), "what-if: devices p of the pipeline")                               //
      ("micro-batches", text(), "micro-batches of a step")                                   //
      ("schedule", text(), "a schedule's name, as frazil simulate --schedule help lists")    //
      ("forward", text(), "what-if: time of F, one or a comma list by device")               //
      ("backward-input", text(), "what-if: time of I, one or a comma list by device")        //
      ("backward-weight", text(), "what-if: time of W, one or a comma list by device")       //
      ("hop", text(), "what-if: latency between different devices, default 0ns")             //
      ("chunks", text(), "what-if: chunks of the model per device, default the schedule's")  //
      ("in-flight", text(), "micro-batches in flight, default the schedule's")               //
      ("objective", text(), "with --schedule search: makespan (default) or span")            //
      ("budget", text(), "with --schedule search: moves to try, default 1500000");
}

ScheduleKind read_schedule(const Flags& flags) {
  const std::string name = required_text(flags, "schedule");
  const auto kind = find_schedule(name);
  if (!kind && find_policy(name)) refuse_flags("--schedule " + name + " with --stages", "--plan");
  if (!kind)
    refuse_flags("--schedule " + name, "a name that frazil simulate --schedule help lists");
  return *kind;
}

std::optional<OrderSearchOptions> read_search(const Flags& flags) {
  if (optional_text(flags, "schedule") != "search") {
    for (const char* flag : {"objective", "budget"}) {
      if (flags.count(flag) == 0) continue;
      refuse_flags(fmt::format("--{} without --schedule search", flag), "both");
    }
    return std::nullopt;
  }
  OrderSearchOptions options;
  const std::string objective = optional_text(flags, "objective").value_or("makespan");
  if (objective != "makespan" && objective != "span") {
    refuse_flags("--objective " + objective, "makespan or span");
  }
  if (objective == "span") options.objective = Objective::kSpan;
  if (const auto budget = optional_integer(flags, "budget", 0, kMostMoves)) {
    options.budget = *budget;
  }
  return options;
}

WhatIf read_what_if(const Flags& flags, std::optional<Duration> otherwise, bool any_schedule) {
  WhatIf what_if;
  what_if.stages = required_integer(flags, "stages", 1, kMostCounted);
  what_if.micro_batches = required_integer(flags, "micro-batches", 1, kMostCounted);
  what_if.search = read_search(flags);
  if (what_if.search) {
    what_if.schedule = kSearchedWithin;
  } else if (!any_schedule) {
    what_if.schedule = read_schedule(flags);
  }
  const auto times = [&](const char* flag) {
    const bool given = flags.count(flag) > 0 || !otherwise;
    return given ? parse_durations(required_text(flags, flag), std::string("--") + flag)
                 : std::vector{*otherwise};
  };
  what_if.forward = times("forward");
  what_if.backward_input = times("backward-input");
  what_if.backward_weight = times("backward-weight");
  what_if.hop = duration_or(flags, "hop", what_if.hop);
  what_if.chunks = optional_integer(flags, "chunks", 1, kMostCounted);
  what_if.in_flight = optional_integer(flags, "in-flight", 1, kMostCounted);
  return what_if;
}

}  // namespace frazil
