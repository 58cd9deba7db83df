#include "analysis/ablation/run_ablation.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <tuple>
#include <utility>

#include "analysis/ablation/arm_plans.h"
#include "analysis/ablation/child_program.h"
#include "analysis/ablation/control_masks.h"
#include "analysis/ablation/control_origin.h"
#include "analysis/ablation/folder_lock.h"
#include "analysis/ablation/pair_order.h"
#include "analysis/ablation/predict/run_predictions.h"
#include "analysis/ablation/time_to_come.h"
#include "analysis/ablation/train_program.h"
#include "planner/freezing/run_shape.h"
#include "planner/plan/plan_json.h"
#include "profiles/error.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

std::string name_of(const ArmSeed& pair) {
  return fmt::format("{}, seed {}", facts_of(pair.arm).name, pair.seed);
}

// Returns the last line that a failed program has said.
std::string last_line(const fs::path& file) {
  std::string text = read_text_file(file);
  text.erase(text.find_last_not_of(" \n\r\t") + 1);
  const std::size_t begin = text.rfind('\n');
  return to_one_line(begin == std::string::npos ? text : text.substr(begin + 1));
}

[[noreturn]] void fail_pair(const PairFiles& files, const ChildEnd& end) {
  const std::string said = last_line(files.errors());
  const std::string how = end.signal != 0 ? fmt::format("signal {}", end.signal)
                                          : fmt::format("exit code {}", end.code);
  throw InputError(files.trained().string(), 0,
                   said.empty() ? how : fmt::format("{} (\"{}\")", how, said),
                   "a run that ends well",
                   end.signal != 0 ? ExitCode::kFailure : static_cast<ExitCode>(end.code));
}

class AblationRunner {
 public:
  AblationRunner(const AblationRequest& request, const TellAblation& tell)
      : request_(request), tell_(tell), lock_(request.out) {}

  AblationRuns run() {
    read_results();
    find_plans();
    find_pairs();
    predict();
    if (!pending_.empty()) run_pending();
    predict();
    find_limits();
    std::sort(runs_.results.begin(), runs_.results.end(),
              [](const PairResult& a, const PairResult& b) {
                return std::tie(a.pair.seed, a.pair.arm) < std::tie(b.pair.seed, b.pair.arm);
              });
    return std::move(runs_);
  }

 private:
  void read_results() {
    for (const ArmSeed& pair : order_pairs(request_.arms, request_.seeds)) {
      std::optional<PairResult> result =
          find_pair_result(files_of(request_.out, pair).result(), pair, request_.inputs);
      if (!result) continue;
      refuse_other_length(request_, *result);
      runs_.results.push_back(std::move(*result));
    }
    const std::size_t orphans = drop_orphans(runs_.results);
    if (orphans == 0) return;
    tell_(
        fmt::format("{} of the results that are there are of controls made from other runs than "
                    "those that are there, and are made anew",
                    orphans));
  }

  void find_plans() {
    const SearchOptions question = question_of(request_.base, request_.profile);
    std::map<std::pair<ArmFacts::First, ArmFacts::Masks>, ArmPlan> known;
    for (const Arm arm : request_.arms) {
      const auto& [first, masks] = std::pair(facts_of(arm).first, facts_of(arm).masks);
      if (known.count({first, masks}) == 0) {
        const ModelProfile profile = profile_for(request_.base, masks, request_.profile);
        known[{first, masks}] =
            find_first_plan(first, {profile, request_.cluster}, question, kNoisePpm);
      }
      const ArmPlan& found = known[{first, masks}];
      if (found.plan) {
        plans_[arm] = *found.plan;
      } else {
        runs_.unfit[arm] = found.reason;
      }
    }
    for (const Arm arm : request_.arms) {
      for (const Arm need : needs_of(arm)) {
        if (runs_.unfit.count(need) > 0) runs_.unfit.emplace(arm, runs_.unfit[need]);
      }
    }
  }

  void find_pairs() {
    for (const ArmSeed& pair : order_pairs(request_.arms, request_.seeds)) {
      if (runs_.unfit.count(pair.arm) > 0) continue;
      ++runs_.pairs;
      if (find_result(runs_.results, pair) == nullptr) pending_.push_back(pair);
    }
  }

  const PairResult& result_of(Arm arm, std::int64_t seed) const {
    const PairResult* const result = find_result(runs_.results, {arm, seed});
    ENSURE(result != nullptr, "a pair comes after those that it needs");
    return *result;
  }

  void tell_predictions() const {
    const auto tell = [&](PredictionBasis basis, const std::string& from) {
      const std::string told = tell_predicted(runs_.predicted, basis);
      if (!told.empty()) tell_(fmt::format("predicted from {}: {}", from, told));
    };
    tell(PredictionBasis::kForecast, request_.samples
                                         ? "the run configuration"
                                         : "the run configuration and the length of its runs");
    tell(PredictionBasis::kRecordedMasks, "recorded masks");
    if (!runs_.predicted.empty() || request_.samples) return;
    tell_("nothing is predicted before a run has ended: --samples N would say how long they are");
  }

  // Has `frazil train` read the inputs as they were given, before anything is told or runs: what is
  // wrong with them is told by the file and line in which it stands.
  void check_inputs(const fs::path& program, ChildPrograms& children) const {
    const fs::path answer = request_.out / "check.json";
    const fs::path errors = request_.out / "check.txt";
    const ChildEnd end = children.run({program, check_arguments(request_), answer, errors});
    const std::string said = read_text_file(answer);
    fs::remove(answer);
    fs::remove(errors);
    if (children.stopped_by() != 0 || (end.code == 0 && end.signal == 0)) return;
    throw_refusal(said, end.signal != 0 ? ExitCode::kFailure : static_cast<ExitCode>(end.code));
  }

  void run_pending() {
    const fs::path program = find_sibling("frazil-train");
    ChildPrograms children;
    check_inputs(program, children);
    tell_predictions();
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      if ((runs_.stopped_by = children.stopped_by()) != 0) return;
      tell_(fmt::format("{} of {} runs to go, {}", pending_.size() - i, runs_.pairs,
                        tell_time(estimate_time(
                            {pending_.begin() + static_cast<std::ptrdiff_t>(i), pending_.end()},
                            runs_.results, runs_.predicted))));
      run_pair(pending_[i], program, children);
      if (runs_.stopped_by != 0) return;
    }
  }

  void run_pair(const ArmSeed& pair, const fs::path& program, ChildPrograms& children) {
    const PairFiles files = files_of(request_.out, pair);
    const ArmRun run = prepare(pair, files);
    const auto start = std::chrono::steady_clock::now();
    ++runs_.begun;
    const ChildEnd end =
        children.run({program,
                      train_arguments(run, files, plans_.at(pair.arm), request_.profile_file,
                                      request_.cluster_file, request_.inputs),
                      files.answer(), files.errors()});
    runs_.stopped_by = children.stopped_by();
    if (end.code != 0 || end.signal != 0) {
      if (runs_.stopped_by != 0) return;
      fail_pair(files, end);
    }
    PairResult result =
        read_trained(pair, files, static_cast<int>(request_.cluster.devices.size()));
    result.inputs = request_.inputs;
    result.frazil_version = FRAZIL_VERSION;
    result.epochs = request_.base.epochs;
    result.process = std::chrono::steady_clock::now() - start;
    result.made_from = find_origin(pair, runs_.results).value();
    if (run.shorter) {
      result.epochs *=
          static_cast<double>(run.shorter->steps) / static_cast<double>(run.shorter->of_steps);
    }
    write_pair_result(result, files.result());
    tell_(fmt::format("{}: {:.2f} s, accuracy {:.2f} %", name_of(pair),
                      std::chrono::duration<double>(result.wall).count(), 100 * result.accuracy));
    refuse_other_length(request_, result);
    runs_.results.push_back(std::move(result));
    predict_what_has_come();
  }

  void predict() {
    const std::optional<MaskCourse> course = find_course(request_, runs_.results);
    if (!course) return;
    predicted_by_ = course->source;
    runs_.predicted = predict_runs(request_, runs_, *course);
  }

  // Predicts once more where a run that has ended tells more than was known.
  void predict_what_has_come() {
    const std::optional<MaskCourse> course = find_course(request_, runs_.results);
    if (!course || course->source == predicted_by_) return;
    predict();
    tell_predictions();
  }

  void find_limits() {
    const std::optional<MaskCourse> course = find_course(request_, runs_.results);
    if (course) runs_.limit = find_limit(request_, runs_, *course);
    runs_.other_masks = find_other_masks(request_, runs_.results);
  }

  // Writes the inputs of a pair.
  ArmRun prepare(const ArmSeed& pair, const PairFiles& files) const {
    ArmRun run{.arm = pair.arm, .seed = pair.seed};
    if (pair.arm == Arm::kShorter) {
      const PairResult& unfrozen = result_of(Arm::kUnfrozen, pair.seed);
      run.shorter = shorten(unfrozen.steps, unfrozen.wall, result_of(Arm::kAll, pair.seed).wall);
    }
    const ArmFacts::Masks masks = facts_of(pair.arm).masks;
    if (masks == ArmFacts::Masks::kReversed || masks == ArmFacts::Masks::kDrawn) {
      run.masks = files.masks();
      const fs::path of_all = files_of(request_.out, {Arm::kAll, pair.seed}).trained();
      FreezeTrace trace = read_freeze_trace(of_all / "trace.jsonl");
      trace.events =
          make_control_events(trace, find_head(request_.profile), masks,
                              static_cast<std::uint64_t>(pair.seed), facts_of(pair.arm).name);
      write_text_file(run.masks, to_jsonl(trace));
    }
    write_text_file(files.run(), configure(request_.base, run));
    if (!facts_of(pair.arm).changes_plans) write_plan(plans_.at(pair.arm), files.plan());
    return run;
  }

  const AblationRequest& request_;
  const TellAblation& tell_;
  FolderLock lock_;
  std::map<Arm, Plan> plans_;
  std::vector<ArmSeed> pending_;
  std::optional<MaskCourse::Source> predicted_by_;
  AblationRuns runs_;
};

}  // namespace

AblationRuns run_ablation(const AblationRequest& request, const TellAblation& tell) {
  return AblationRunner(request, tell).run();
}

}  // namespace frazil
