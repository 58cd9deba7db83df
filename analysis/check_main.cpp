// frazil check: reads the folder of a run and says whether its parts hold and agree.

#include <string>
#include <vector>

#include "analysis/check/check_run.h"
#include "analysis/check/print_check.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/flags.h"
#include "profiles/error.h"

namespace {

namespace po = boost::program_options;
using frazil::ExitCode;

ExitCode check(const po::variables_map& values) {
  const std::vector<std::string> folders = frazil::text_list(values, "folder");
  if (folders.size() != 1) {
    frazil::refuse_flags(folders.empty() ? "no folder" : "`" + folders[1] + "`",
                         "the folder of one run");
  }
  const frazil::RunCheck found = frazil::check_run(folders[0]);
  frazil::print_answer(values.count("json") > 0 ? frazil::check_json(found)
                                                : frazil::print_check(found));
  return found.agrees() ? ExitCode::kOk : ExitCode::kVerifyFailed;
}

}  // namespace

int main(int argc, char** argv) {
  po::options_description options("flags");
  options.add_options()("folder", po::value<std::vector<std::string>>()->value_name("FOLDER"),
                        "what a training run left; the word --folder may be dropped")(
      "json", "print one JSON answer instead of a table");
  return frazil::run_verb(
      {.name = "check",
       .purpose = "Reads the folder of a run by itself and says whether journal, checkpoints, "
                  "events and weights hold and agree.",
       .usage = "frazil check FOLDER [--json]",
       .words = "folder"},
      argc, argv, options, check);
}
