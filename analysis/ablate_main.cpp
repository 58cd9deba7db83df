// frazil ablate: tells what freezing, changing stages, adding replicas and caching bring over the
// best plan without them, arm by arm.

#include "analysis/ablation/predict/simulate_arms.h"
#include "planner/verbs/command_line.h"

namespace {

frazil::ExitCode ablate(const frazil::Flags& values) {
  if (frazil::is_set(values, "simulate")) return frazil::simulate_arms(values);
  frazil::refuse_flags("no --simulate", "it, for arms are predicted");
}

}  // namespace

int main(int argc, char** argv) {
  boost::program_options::options_description flags("flags", 100);
  frazil::add_simulate_arms_flags(flags);
  return frazil::run_verb(
      {.name = "ablate",
       .purpose = "Says what freezing, AutoPipe, AutoDP and AutoCache bring over the best plan "
                  "without them.",
       .usage = "frazil ablate --simulate --profile FILE --cluster FILE --forecast FILE --batch N"},
      argc, argv, flags, ablate);
}
