// The subcommand `frazil reproduce TARGET` recomputes a published result and prints it beside the
// published values.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "planner/reproduce/headlines/headlines.h"
#include "planner/reproduce/pipe_bd/pipe_bd.h"
#include "planner/reproduce/pipetransformer.h"
#include "planner/reproduce/sailor/sailor.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/flags.h"

namespace frazil {
namespace {

namespace po = boost::program_options;

// A target is the word after `reproduce`. It has flags of its own, and may read --data and --json.
struct Target {
  std::string_view name;
  std::string_view does;
  void (*describe_flags)(po::options_description&);
  ExitCode (*run)(const Flags&);
};

constexpr std::array kTargets = {
    Target{"pipetransformer", "simulate PipeTransformer's published runs and plan them anew",
           describe_pipetransformer_flags, reproduce_pipetransformer},
    Target{"pipe-bd", "simulate the speed-ups, breakdown and schedules of Pipe-BD",
           describe_pipe_bd_flags, reproduce_pipe_bd},
    Target{"headlines", "simulate what papers about pipelines claim on their first page",
           describe_headlines_flags, reproduce_headlines},
    Target{"sailor", "predict measured plans in Sailor's form, such as the 15 that came with it",
           describe_sailor_flags, reproduce_sailor},
};

void describe_common_flags(po::options_description& flags) {
  flags.add_options()                                                //
      ("data", text_value("FOLDER"), "folder with the public data")  //
      ("json", po::bool_switch(), "answer in JSON");
}

po::options_description describe_flags() {
  po::options_description flags("flags", 100);
  describe_common_flags(flags);
  for (const Target& target : kTargets) target.describe_flags(flags);
  return flags;
}

std::vector<std::string_view> target_names() {
  std::vector<std::string_view> names;
  for (const Target& target : kTargets) names.push_back(target.name);
  return names;
}

// Refuses flags of another target, which would be ignored without a word.
void refuse_foreign_flags(const Target& target, const Flags& values) {
  po::options_description own;
  describe_common_flags(own);
  target.describe_flags(own);
  for (const auto& [name, value] : values) {
    if (value.defaulted() || name == "word" || own.find_nothrow(name, false) != nullptr) continue;
    refuse_flags(fmt::format("--{} with reproduce {}", name, target.name), "a flag of its own");
  }
}

ExitCode reproduce(const Flags& values) {
  const std::vector<std::string> words = text_list(values, "word");
  if (words.empty()) refuse_flags("nothing to reproduce", list_names(target_names()));
  const std::string name = known_name("", words.front(), target_names());
  const auto* const target = std::find_if(kTargets.begin(), kTargets.end(),
                                          [&](const Target& known) { return known.name == name; });
  if (words.size() > 1) refuse_flags(fmt::format("`{}`", words[1]), "one target");
  refuse_foreign_flags(*target, values);
  return target->run(values);
}

int run_reproduce_verb(int argc, char** argv) {
  std::string purpose = "Redoes a published result and lays it beside what was published.\n";
  for (const Target& target : kTargets) {
    std::string name(target.name);
    name.resize(std::max<std::size_t>(name.size(), 16), ' ');
    purpose += "\n  " + name + " " + std::string(target.does);
  }
  const Verb verb{.name = "reproduce",
                  .purpose = purpose,
                  .usage = "frazil reproduce TARGET [--data FOLDER] [--json]",
                  .words = "word",
                  .has_help_word = true};
  return run_verb(verb, argc, argv, describe_flags(), reproduce);
}

}  // namespace
}  // namespace frazil

int main(int argc, char** argv) { return frazil::run_reproduce_verb(argc, argv); }
