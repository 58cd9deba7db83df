#include "planner/reproduce/sailor/sailor.h"

#include "planner/reproduce/sailor/sailor_report.h"
#include "planner/verbs/command_line.h"
#include "profiles/import/sailor_folder.h"

namespace frazil {

void describe_sailor_flags(boost::program_options::options_description&) {}

ExitCode reproduce_sailor(const Flags& values) {
  const SailorReport report = make_sailor_report(read_sailor_folder(required_text(values, "data")));
  print_answer(is_set(values, "json") ? sailor_report_json(report) : print_sailor_report(report));
  return ExitCode::kOk;
}

}  // namespace frazil
