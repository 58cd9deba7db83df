#include "planner/verbs/what_if_flags.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "planner/plan/schedule_facts.h"
#include "planner/verbs/known_words.h"
#include "planner/verbs/what_if_memory_flags.h"
#include "profiles/known_names.h"
#include "profiles/quantity_text.h"

namespace frazil {

namespace {

// Returns what --schedule takes; policies go with a plan alone.
std::vector<std::string_view> list_order_words() {
  std::vector<std::string_view> words;
  for (const ScheduleFacts& facts : all_schedules()) words.push_back(facts.name);
  words.insert(words.end(), {kSearchWord, "fifo", "priority", "lrtf"});
  return words;
}

}  // namespace

void describe_what_if(boost::program_options::options_description& flags) {
  flags.add_options()                                                    //
      ("stages", text_value("N"), "what-if: devices p of the pipeline")  //
      ("micro-batches", text_value("N"), "micro-batches of a step")      //
      ("schedule", known_value("NAME", list_order_words()),
       "a schedule's name, as frazil simulate --schedule help lists")                       //
      ("forward", text_value("TIME"), "what-if: time of F, one or a comma list by device")  //
      ("backward-input", text_value("TIME"),
       "what-if: time of I, one or a comma list by device")  //
      ("backward-weight", text_value("TIME"),
       "what-if: time of W, one or a comma list by device")  //
      ("backward", text_value("TIME"),
       "what-if: time of B instead of I and W, which are then half of it each")               //
      ("hop", text_value("TIME"), "what-if: latency between different devices, default 0ns")  //
      ("chunks", text_value("N"),
       "what-if: chunks of the model per device, default the schedule's")                //
      ("in-flight", text_value("N"), "micro-batches in flight, default the schedule's")  //
      ("objective", known_value("NAME", kObjectiveWords),
       "with --schedule search: makespan (default) or span")  //
      ("budget", text_value("N"), "with --schedule search: moves to try, default 1500000");
}

void refuse_schedule(const std::string& flag, const std::string& name, const char* verb) {
  std::vector<std::string_view> names = all_schedule_names();
  names.insert(names.end(), {"search", "fifo", "priority", "lrtf"});
  refuse_flags(
      fmt::format("{} {}", flag, name),
      fmt::format("a name that frazil {} {} help lists{}", verb, flag, did_you_mean(name, names)));
}

ScheduleKind read_schedule(const Flags& flags) {
  const std::string name = required_text(flags, "schedule");
  const auto kind = find_schedule(name);
  if (!kind && find_policy(name)) refuse_flags("--schedule " + name + " with --stages", "--plan");
  if (!kind) refuse_schedule("--schedule", name, "simulate");
  return *kind;
}

bool asks_search(const Flags& flags) {
  return is_same_name(optional_text(flags, "schedule").value_or(""), "search");
}

std::optional<OrderSearchOptions> read_search(const Flags& flags) {
  if (!asks_search(flags)) {
    for (const char* flag : {"objective", "budget"}) {
      if (flags.count(flag) == 0) continue;
      refuse_flags(fmt::format("--{} without --schedule search", flag), "both");
    }
    return std::nullopt;
  }
  OrderSearchOptions options;
  const std::string objective = optional_text(flags, "objective").value_or("makespan");
  if (known_name("--objective", objective, kObjectiveWords) == "span") {
    options.objective = Objective::kSpan;
  }
  if (const auto budget = optional_integer(flags, "budget", 0, kMostMoves)) {
    options.budget = *budget;
  }
  return options;
}

namespace {

// Reads the times of I and W. One time of B is halved; an odd nanosecond goes to W.
template <class Times>
void read_backward(const Flags& flags, bool is_required, const Times& times, WhatIf& what_if) {
  if (flags.count("backward") == 0) {
    if (is_required && flags.count("backward-input") + flags.count("backward-weight") == 0) {
      refuse_flags("no time of the backward",
                   "--backward, or --backward-input and --backward-weight");
    }
    what_if.backward_input = times("backward-input");
    what_if.backward_weight = times("backward-weight");
    return;
  }
  refuse_together(flags, "--backward", {"backward-input", "backward-weight"});
  what_if.backward_was_split = true;
  for (const Duration time : times("backward")) {
    what_if.backward_input.push_back(time / 2);
    what_if.backward_weight.push_back(time - time / 2);
  }
}

}  // namespace

WhatIf read_what_if(const Flags& flags, std::optional<Duration> otherwise, bool any_schedule) {
  WhatIf what_if;
  what_if.stages = required_integer(flags, "stages", 1, kMostWhatIfStages);
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
  read_backward(flags, !otherwise, times, what_if);
  what_if.memory = read_what_if_memory(flags);
  const bool has_input = what_if.memory && !what_if.memory->input.empty();
  if (has_input && !any_schedule && !facts_of(what_if.schedule).recomputes_itself) {
    refuse_flags("--stage-input with a schedule whose stages keep all of --activation",
                 "varuna, or --compare");
  }
  what_if.hop = duration_or(flags, "hop", what_if.hop);
  what_if.chunks = optional_integer(flags, "chunks", 1, kMostCounted);
  what_if.in_flight = optional_integer(flags, "in-flight", 1, kMostCounted);
  return what_if;
}

}  // namespace frazil
