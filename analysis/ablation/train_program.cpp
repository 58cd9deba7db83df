#include "analysis/ablation/train_program.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "planner/prediction/plan_notation.h"
#include "profiles/error.h"
#include "profiles/json.h"
#include "profiles/text_file.h"
#include "traces/freeze_trace.h"

namespace frazil {
namespace {

using TrainJson = nlohmann::json;

PairPhase phase_of(const TrainJson& phase) {
  return {.first_step = phase.at("first_step"),
          .mask = phase.at("mask"),
          .plan = phase.at("plan"),
          .stages = phase.at("stages"),
          .pipelines = phase.at("pipelines"),
          .devices = phase.at("devices"),
          .steps = phase.at("steps"),
          .wall = Duration{phase.at("wall_time_ns").get<std::int64_t>()}};
}

void take_answer(const TrainJson& answer, PairResult& result) {
  result.accuracy = answer.at("accuracy");
  result.loss = answer.at("loss");
  result.test_samples = answer.at("test_samples");
  result.wall = Duration{answer.at("wall_time_ns").get<std::int64_t>()};
  result.state_hash = answer.at("state_hash");
  if (answer.contains("cache")) result.cached = answer.at("cache").at("stored");
  if (answer.contains("foreign_cores")) result.foreign_cores = answer.at("foreign_cores");
  for (const TrainJson& phase : answer.at("phases")) {
    result.phases.push_back(phase_of(phase));
    const PairPhase& last = result.phases.back();
    result.device += last.wall * last.devices;
  }
}

// Returns the cost of a transition besides moving state, as the run predicted it from its own
// measurement: the largest of its transitions. Zero where there was none.
TransitionOverhead find_overhead(const FreezeTrace& log) {
  TransitionOverhead overhead;
  for (const FreezeEvent& event : log.events) {
    const auto* const transition = std::get_if<TransitionEvent>(&event.what);
    if (transition == nullptr || !transition->predicted) continue;
    overhead.plan = std::max(overhead.plan, transition->predicted->plan);
    overhead.start = std::max(overhead.start, transition->predicted->start);
  }
  return overhead;
}

// Follows the events of a run from step to step. The first plan was in force before the first step.
class LogReader {
 public:
  explicit LogReader(PairResult& result) : result_(result) {}

  void read(const FreezeTrace& log) {
    for (const FreezeEvent& event : log.events) {
      if (std::holds_alternative<PlanEvent>(event.what)) ++plans_;
      if (const auto* to = std::get_if<TransitionEvent>(&event.what)) add(*to);
      if (const auto* step = std::get_if<StepEvent>(&event.what)) add(step->time);
      if (const auto* eval = std::get_if<EvalEvent>(&event.what)) {
        result_.curve.push_back(
            {eval->epoch, point_.wall, point_.device, eval->accuracy.value_or(0)});
      }
    }
  }

 private:
  void add(Duration time) {
    const std::size_t phase = std::min(std::max<std::size_t>(plans_, 1), result_.phases.size()) - 1;
    point_.wall += time;
    point_.device += time * result_.phases.at(phase).devices;
  }
  void add(const TransitionEvent& to) {
    if (plans_ < 2) return;
    const Duration time = to.plan_time + to.move_time + to.start_time;
    ++result_.transitions;
    result_.transition_time += time;
    add(time);
  }

  PairResult& result_;
  PairPoint point_;
  std::size_t plans_ = 0;
};

}  // namespace

PairFiles files_of(const std::filesystem::path& out, const ArmSeed& pair) {
  return {out / std::string(facts_of(pair.arm).name) / fmt::format("seed-{}", pair.seed)};
}

std::vector<std::string> train_arguments(const ArmRun& run, const PairFiles& files,
                                         const Plan& first, const std::filesystem::path& profile,
                                         const std::filesystem::path& cluster,
                                         const AblationInputs& inputs) {
  const ArmFacts& arm = facts_of(run.arm);
  std::vector<std::string> arguments{"--run",     files.run().string(),
                                     "--profile", profile.string(),
                                     "--cluster", cluster.string(),
                                     "--out",     files.trained().string(),
                                     "--force",   "--quiet",
                                     "--json"};
  const auto add = [&](std::initializer_list<std::string> words) {
    arguments.insert(arguments.end(), words);
  };
  if (!arm.changes_plans) add({"--plan", files.plan().string(), "--keep-plan"});
  if (arm.changes_plans && !arm.adds_replicas) {
    add({"--max-replicas", std::to_string(count_replicas(first))});
  }
  if (arm.first == ArmFacts::First::kPipeTransformer) add({"--planner", "pipetransformer"});
  if (run.shorter) add({"--steps", std::to_string(run.shorter->steps)});
  if (inputs.processes > 1) add({"--procs", std::to_string(inputs.processes)});
  add({"--device", inputs.device});
  if (!inputs.gpus.empty()) add({"--gpus", inputs.gpus});
  return arguments;
}

std::vector<std::string> check_arguments(const AblationRequest& request) {
  std::vector<std::string> arguments{"--run",     request.base.file.string(),
                                     "--profile", request.profile_file.string(),
                                     "--cluster", request.cluster_file.string(),
                                     "--device",  request.inputs.device,
                                     "--check",   "--quiet",
                                     "--json"};
  if (request.inputs.gpus.empty()) return arguments;
  arguments.insert(arguments.end(), {"--gpus", request.inputs.gpus});
  return arguments;
}

void throw_refusal(const std::string& answer, ExitCode code) {
  const TrainJson said = TrainJson::parse(answer, nullptr, /*allow_exceptions=*/false);
  const TrainJson error = said.is_object() ? said.value("error", TrainJson::object()) : TrainJson();
  if (!error.is_object() || !error.contains("found")) {
    throw InputError("frazil train --check", 0,
                     fmt::format("exit code {} without a reason", static_cast<int>(code)),
                     "inputs that it takes", code);
  }
  throw InputError(error.value("file", ""), error.value("line", 0), error.value("found", ""),
                   error.value("expected", ""), code);
}

PairResult read_trained(const ArmSeed& pair, const PairFiles& files, int devices) {
  PairResult result;
  result.pair = pair;
  const std::string name = files.answer().string();
  const std::string text = read_text_file(files.answer());
  (void)parse_json(text, name);
  try {
    const TrainJson answer = TrainJson::parse(text);
    if (!answer.contains("accuracy")) {
      throw InputError(name, 0, "a model without an accuracy",
                       "one that classifies, for arms are judged by theirs");
    }
    take_answer(answer, result);
  } catch (const TrainJson::exception& error) {
    throw InputError(name, 0, fmt::format("an answer of `frazil train` with {}", error.what()),
                     "one of this version");
  }
  if (result.phases.empty()) throw InputError(name, 0, "a run without phases", "at least one");
  const FreezeTrace log = read_freeze_trace(files.trained() / "events.jsonl");
  result.steps = log.steps;
  result.overhead = find_overhead(log);
  LogReader(result).read(log);
  result.cluster = result.wall * devices;
  return result;
}

}  // namespace frazil
