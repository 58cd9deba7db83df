#include "analysis/ablation/pair_result.h"

#include <fmt/format.h>

#include "profiles/error.h"
#include "profiles/json.h"
#include "profiles/text_file.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace frazil {
namespace {

constexpr const char* kResultFormat = "frazil.ablation_result";
constexpr int kResultVersion = 1;
constexpr std::int64_t kMostNumber = std::int64_t{1} << 53;
constexpr int kMostDevices = 1'000'000;
constexpr int kMostSmall = 2 * kMostDevices;
constexpr double kAnyReal = 1e300;

Duration take_time(JsonFields& fields, const char* key) {
  return Duration{fields.required(key).integer(0, kMostNumber)};
}

std::int64_t take_count(JsonFields& fields, const char* key) {
  return fields.required(key).integer(0, kMostNumber);
}

int take_small(JsonFields& fields, const char* key) {
  return static_cast<int>(fields.required(key).integer(0, kMostSmall));
}

// What is as without the flags of `frazil train` is not written.
std::string place_text(const AblationInputs& inputs) {
  const AblationInputs usual;
  std::string text;
  if (inputs.processes != usual.processes) {
    text += fmt::format("  \"processes\": {},\n", inputs.processes);
  }
  if (inputs.device != usual.device) {
    text += fmt::format("  \"device\": {},\n", json_string(inputs.device));
  }
  if (inputs.gpus != usual.gpus) {
    text += fmt::format("  \"gpus\": {},\n", json_string(inputs.gpus));
  }
  return text;
}

void parse_place(JsonFields& fields, AblationInputs& inputs) {
  if (const auto processes = fields.optional("processes")) {
    inputs.processes = static_cast<int>(processes->integer(1, kMostDevices));
  }
  if (const auto device = fields.optional("device")) inputs.device = device->text();
  if (const auto gpus = fields.optional("gpus")) inputs.gpus = gpus->text();
}

// Returns the flags of `frazil train`, all of them, so that two places can be told apart.
std::string tell_place(const AblationInputs& inputs) {
  return fmt::format("--procs {} --device {}{}", inputs.processes, inputs.device,
                     inputs.gpus.empty() ? "" : " --gpus " + inputs.gpus);
}

std::string take_mask(const JsonCursor& mask) {
  std::string text = mask.text();
  if (text.empty() || text.find_first_not_of("01") != std::string::npos) {
    mask.fail(mask.describe(), "a bit for each block");
  }
  return text;
}

PairPhase parse_phase(const JsonCursor& object) {
  JsonFields fields(object);
  PairPhase phase{.first_step = take_count(fields, "first_step"),
                  .mask = take_mask(fields.required("mask")),
                  .plan = fields.required("plan").text(),
                  .stages = take_small(fields, "stages"),
                  .pipelines = take_small(fields, "pipelines"),
                  .devices = take_small(fields, "devices"),
                  .steps = take_count(fields, "steps"),
                  .wall = take_time(fields, "wall_time_ns")};
  fields.finish();
  return phase;
}

// The phases of a run follow each other from its first step to its last, and its wall time is
// theirs.
void refuse_odd_phases(const JsonCursor& list, const PairResult& result) {
  Duration sum{0};
  Step next = 0;
  for (const PairPhase& phase : result.phases) {
    sum += phase.wall;
    if (phase.first_step < next || (next == 0 && phase.first_step != 0)) {
      list.fail("a phase that begins at step " + std::to_string(phase.first_step),
                next == 0 ? "one at step 0 first" : "phases one after another");
    }
    next = phase.first_step + 1;
  }
  if (next == 0 || next > result.steps) {
    list.fail(next == 0 ? "no phases" : "a phase behind the last step",
              fmt::format("those of {} steps", result.steps));
  }
  if (sum != result.wall) {
    list.fail(fmt::format("phases of {} ns", sum.count()),
              fmt::format("the wall time of the run, {} ns", result.wall.count()));
  }
}

PairPoint parse_point(const JsonCursor& object) {
  JsonFields fields(object);
  PairPoint point{.epoch = take_small(fields, "epoch"),
                  .wall = take_time(fields, "wall_time_ns"),
                  .device = take_time(fields, "device_time_ns"),
                  .accuracy = fields.required("accuracy").real(0, 1)};
  fields.finish();
  return point;
}

std::string phase_text(const PairPhase& phase) {
  return fmt::format(
      R"({{"first_step": {}, "mask": {}, "plan": {}, "stages": {}, "pipelines": {}, "devices": {}, )"
      R"("steps": {}, "wall_time_ns": {}}})",
      phase.first_step, json_string(phase.mask), json_string(phase.plan), phase.stages,
      phase.pipelines, phase.devices, phase.steps, phase.wall.count());
}

std::string point_text(const PairPoint& point) {
  return fmt::format(R"({{"epoch": {}, "wall_time_ns": {}, "device_time_ns": {}, "accuracy": {}}})",
                     point.epoch, point.wall.count(), point.device.count(), point.accuracy);
}

template <class T, class Text>
std::string list_text(const std::vector<T>& items, const Text& text) {
  std::string list;
  for (const T& item : items) list += (list.empty() ? "\n    " : ",\n    ") + text(item);
  return "[" + list + (list.empty() ? "]" : "\n  ]");
}

void refuse_other(const std::string& file, const char* what, const std::string& found,
                  const std::string& expected) {
  if (found == expected) return;
  throw InputError(file, 0, fmt::format("the result of another {} ({})", what, found),
                   fmt::format("that of this one ({}), or another folder for --out", expected));
}

}  // namespace

std::string hash_of(std::string_view text) {
  return fmt::format("{:016x}", XXH64(text.data(), text.size(), 0));
}

bool is_disturbed(const PairResult& result) {
  return result.foreign_cores.value_or(0) > kMostForeignCoresOfPair;
}

std::string to_json(const PairResult& result) {
  std::string given = place_text(result.inputs);
  if (!result.frazil_version.empty()) {
    given += fmt::format("  \"frazil_version\": {},\n", json_string(result.frazil_version));
  }
  std::string text = fmt::format(
      "{{\n  \"format\": \"{}\",\n  \"version\": {},\n  \"arm\": \"{}\",\n  \"seed\": {},\n"
      "  \"run_hash\": \"{}\",\n  \"profile_hash\": \"{}\",\n  \"cluster_hash\": \"{}\",\n{}"
      "  \"wall_time_ns\": {},\n  \"device_time_ns\": {},\n  \"cluster_time_ns\": {},\n"
      "  \"process_time_ns\": {},\n",
      kResultFormat, kResultVersion, facts_of(result.pair.arm).name, result.pair.seed,
      result.inputs.run_hash, result.inputs.profile_hash, result.inputs.cluster_hash, given,
      result.wall.count(), result.device.count(), result.cluster.count(), result.process.count());
  text += fmt::format(
      "  \"accuracy\": {},\n  \"loss\": {},\n  \"test_samples\": {},\n  \"steps\": {},\n"
      "  \"epochs\": {},\n  \"state_hash\": {},\n",
      result.accuracy, result.loss, result.test_samples, result.steps, result.epochs,
      json_string(result.state_hash));
  if (result.foreign_cores)
    text += fmt::format("  \"foreign_cores\": {},\n", *result.foreign_cores);
  if (!result.made_from.empty()) {
    text += fmt::format("  \"made_from\": {},\n", json_string(result.made_from));
  }
  return text + fmt::format(
                    "  \"transitions\": {},\n  \"transition_time_ns\": {},\n"
                    "  \"overhead_plan_ns\": {},\n  \"overhead_start_ns\": {},\n"
                    "  \"cached\": {},\n  \"phases\": {},\n  \"curve\": {}\n}}\n",
                    result.transitions, result.transition_time.count(),
                    result.overhead.plan.count(), result.overhead.start.count(), result.cached,
                    list_text(result.phases, phase_text), list_text(result.curve, point_text));
}

PairResult parse_pair_result(std::string_view text, const std::string& file) {
  JsonFields fields(parse_json(text, file));
  expect_format(fields, kResultFormat, kResultVersion);
  PairResult result;
  const JsonCursor name = fields.required("arm");
  const std::optional<Arm> arm = find_arm(name.text());
  if (!arm) name.fail(name.describe(), "the name of an arm");
  result.pair = {*arm, take_count(fields, "seed")};
  result.inputs = {.run_hash = fields.required("run_hash").text(),
                   .profile_hash = fields.required("profile_hash").text(),
                   .cluster_hash = fields.required("cluster_hash").text()};
  parse_place(fields, result.inputs);
  if (const auto version = fields.optional("frazil_version")) {
    result.frazil_version = version->text();
  }
  const JsonCursor wall = fields.required("wall_time_ns");
  result.wall = Duration{wall.integer(1, kMostNumber)};
  result.device = take_time(fields, "device_time_ns");
  result.cluster = take_time(fields, "cluster_time_ns");
  result.process = take_time(fields, "process_time_ns");
  result.accuracy = fields.required("accuracy").real(0, 1);
  result.loss = fields.required("loss").real(-kAnyReal, kAnyReal);
  result.test_samples = fields.required("test_samples").integer(1, kMostNumber);
  result.steps = fields.required("steps").integer(1, kMostNumber);
  result.epochs = fields.required("epochs").real(0, kMostSmall);
  result.state_hash = fields.required("state_hash").text();
  if (const auto cores = fields.optional("foreign_cores")) {
    result.foreign_cores = cores->real(0, kMostDevices);
  }
  if (const auto origin = fields.optional("made_from")) result.made_from = origin->text();
  result.transitions = take_small(fields, "transitions");
  result.transition_time = take_time(fields, "transition_time_ns");
  result.overhead.plan = take_time(fields, "overhead_plan_ns");
  result.overhead.start = take_time(fields, "overhead_start_ns");
  result.cached = take_count(fields, "cached");
  const JsonCursor phases = fields.required("phases");
  for (const JsonCursor& phase : phases.items()) result.phases.push_back(parse_phase(phase));
  refuse_odd_phases(phases, result);
  for (const JsonCursor& point : fields.required("curve").items()) {
    result.curve.push_back(parse_point(point));
  }
  fields.finish();
  return result;
}

void write_pair_result(const PairResult& result, const std::filesystem::path& file) {
  write_text_file(file, to_json(result));
}

std::optional<PairResult> find_pair_result(const std::filesystem::path& file, const ArmSeed& pair,
                                           const AblationInputs& inputs) {
  if (!std::filesystem::exists(file)) return std::nullopt;
  const std::string name = file.string();
  PairResult result = parse_pair_result(read_text_file(file), name);
  refuse_other(name, "arm", std::string(facts_of(result.pair.arm).name),
               std::string(facts_of(pair.arm).name));
  refuse_other(name, "seed", std::to_string(result.pair.seed), std::to_string(pair.seed));
  refuse_other(name, "run configuration", result.inputs.run_hash, inputs.run_hash);
  refuse_other(name, "model profile", result.inputs.profile_hash, inputs.profile_hash);
  refuse_other(name, "cluster", result.inputs.cluster_hash, inputs.cluster_hash);
  refuse_other(name, "place", tell_place(result.inputs), tell_place(inputs));
  return result;
}

}  // namespace frazil
