#pragma once
// Hands a run of an ablation to `frazil train` and reads what that left: its answer, and the log of
// its events.

#include <filesystem>
#include <string>
#include <vector>

#include "analysis/ablation/ablation_request.h"
#include "analysis/ablation/arm.h"
#include "analysis/ablation/arm_run.h"
#include "analysis/ablation/pair_result.h"
#include "planner/plan/plan.h"
#include "profiles/error.h"

namespace frazil {

// The files of a pair, under FOLDER/ARM/seed-N.
struct PairFiles {
  std::filesystem::path folder;

  std::filesystem::path run() const { return folder / "run.json"; }
  std::filesystem::path plan() const { return folder / "plan.json"; }
  std::filesystem::path masks() const { return folder / "masks.jsonl"; }  // if they are derived
  std::filesystem::path trained() const { return folder / "run"; }        // --out of `train`
  std::filesystem::path answer() const { return folder / "answer.json"; }
  std::filesystem::path errors() const { return folder / "errors.txt"; }
  std::filesystem::path result() const { return folder / "result.json"; }
};
PairFiles files_of(const std::filesystem::path& out, const ArmSeed& pair);

// Returns the arguments of `frazil train` for an arm whose first plan (arm_plans.h) this is. An arm
// that changes plans chooses the one that it begins with by itself, as the planner predicts it.
// `inputs` say where the devices are.
std::vector<std::string> train_arguments(const ArmRun& run, const PairFiles& files,
                                         const Plan& first, const std::filesystem::path& profile,
                                         const std::filesystem::path& cluster,
                                         const AblationInputs& inputs);

// Returns the arguments of `frazil train` that have it read and check the request's inputs alone.
std::vector<std::string> check_arguments(const AblationRequest& request);

// Throws what `frazil train --check --json` has said against the inputs: its answer, and the code
// that it ended with.
[[noreturn]] void throw_refusal(const std::string& answer, ExitCode code);

// Reads the answer and the log of a run that has ended well into a result, all but the members
// `inputs`, `frazil_version`, `process`, `epochs` and `made_from`. `devices`: of the cluster.
// Throws InputError for an answer that lacks something.
PairResult read_trained(const ArmSeed& pair, const PairFiles& files, int devices);

}  // namespace frazil
