#include "planner/what_if_flags.h"

#include "profiles/quantity_text.h"

namespace frazil {

void describe_what_if(boost::program_options::options_description& flags) {
  const auto text = [] { return boost::program_options::value<std::string>(); };
  flags.add_options()                                                                        //
      ("stages", text(), "what-if: devices, one stage each")                                 //
      ("micro-batches", text(), "micro-batches of a step")                                   //
      ("schedule", text(), "a schedule's name, as frazil simulate --schedule help lists")    //
      ("forward", text(), "what-if: time of F, one or a comma list by device")               //
      ("backward-input", text(), "what-if: time of I, likewise")                             //
      ("backward-weight", text(), "what-if: time of W, likewise")                            //
      ("hop", text(), "what-if: latency between different devices, default 0ns")             //
      ("chunks", text(), "what-if: chunks of the model per device, default the schedule's")  //
      ("in-flight", text(), "micro-batches in flight, default the schedule's");
}

ScheduleKind read_schedule(const Flags& flags) {
  const std::string name = required_text(flags, "schedule");
  const auto kind = find_schedule(name);
  if (!kind)
    refuse_flags("--schedule " + name, "a name that frazil simulate --schedule help lists");
  return *kind;
}

WhatIf read_what_if(const Flags& flags, std::optional<Duration> otherwise, bool any_schedule) {
  WhatIf what_if;
  what_if.stages = required_integer(flags, "stages", 1, kMostCounted);
  what_if.micro_batches = required_integer(flags, "micro-batches", 1, kMostCounted);
  if (!any_schedule) what_if.schedule = read_schedule(flags);
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
