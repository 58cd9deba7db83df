#include "planner/plan/plan_json.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "profiles/error.h"
#include "profiles/json.h"
#include "profiles/known_names.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

constexpr std::int64_t kLargestIndex = std::numeric_limits<std::int32_t>::max();
// The largest batch: two of this size still add up within an int.
constexpr std::int64_t kLargestBatch = 1'000'000'000;

template <class Value>
using Name = std::pair<std::string_view, Value>;

constexpr std::array<Name<DeviceAxis>, 6> kAxes{{{"data", DeviceAxis::kData},
                                                 {"samples", DeviceAxis::kSamples},
                                                 {"shard", DeviceAxis::kShard},
                                                 {"tensor", DeviceAxis::kTensor},
                                                 {"context", DeviceAxis::kContext},
                                                 {"expert", DeviceAxis::kExpert}}};
constexpr std::array<Name<MemoryPolicy>, 3> kMemoryPolicies{
    {{"keep", MemoryPolicy::kKeep},
     {"recompute", MemoryPolicy::kRecompute},
     {"offload", MemoryPolicy::kOffload}}};
constexpr std::array<Name<ReductionMode>, 2> kReductions{
    {{"exact", ReductionMode::kExact}, {"fast", ReductionMode::kFast}}};
constexpr std::array<Name<WeightVersions>, 5> kVersions{
    {{"sync", WeightVersions::kSync},
     {"stash", WeightVersions::kStash},
     {"2bw", WeightVersions::kTwoBuffered},
     {"latest", WeightVersions::kLatest},
     {"predicted", WeightVersions::kPredicted}}};

template <class Value, std::size_t Size>
std::string name_of(const std::array<Name<Value>, Size>& names, Value value) {
  for (const auto& [name, candidate] : names) {
    if (candidate == value) return json_string(name);
  }
  ENSURE(false, "every value has a name");
}

template <class Value, std::size_t Size>
Value parse_name(const JsonCursor& cursor, const std::array<Name<Value>, Size>& names) {
  std::string known;
  std::vector<std::string_view> listed;
  for (const auto& [name, value] : names) {
    if (is_same_name(cursor.text(), name)) return value;
    known += fmt::format("{}\"{}\"", known.empty() ? "" : ", ", name);
    listed.push_back(name);
  }
  cursor.fail(cursor.describe(), "one of " + known + did_you_mean(cursor.text(), listed));
}

template <class Value, std::size_t Size>
Value parse_name(const std::optional<JsonCursor>& cursor,
                 const std::array<Name<Value>, Size>& names, Value otherwise) {
  return cursor ? parse_name(*cursor, names) : otherwise;
}

std::int32_t parse_index(const JsonCursor& cursor) {
  return static_cast<std::int32_t>(cursor.integer(0, kLargestIndex));
}

// Parses a closed range [first, last].
std::pair<std::int32_t, std::int32_t> parse_range(const JsonCursor& cursor) {
  const JsonItems ends = cursor.items();
  if (ends.size() != 2) {
    cursor.fail(fmt::format("an array of {}", ends.size()), "a range [first, last]");
  }
  const std::int32_t first = parse_index(ends[0]);
  const std::int32_t last = parse_index(ends[1]);
  if (first > last) cursor.fail(fmt::format("[{}, {}]", first, last), "a range [first, last]");
  return {first, last};
}

Stage parse_stage(const JsonCursor& cursor) {
  JsonFields fields(cursor);
  Stage stage;
  for (const JsonCursor& range : fields.required("layers").items()) {
    const auto [first, last] = parse_range(range);
    stage.layers.push_back({LayerId{first}, LayerId{last}});
  }
  for (const JsonCursor& device : fields.required("devices").items()) {
    stage.devices.push_back(DeviceId{parse_index(device)});
  }
  stage.axis = parse_name(fields.optional("axis"), kAxes, DeviceAxis::kData);
  stage.memory = parse_name(fields.optional("memory"), kMemoryPolicies, MemoryPolicy::kKeep);
  fields.finish();
  return stage;
}

Pipeline parse_pipeline(const JsonCursor& cursor) {
  JsonFields fields(cursor);
  Pipeline pipeline;
  for (const JsonCursor& stage : fields.required("stages").items()) {
    pipeline.stages.push_back(parse_stage(stage));
  }
  for (const JsonCursor& interval : fields.required("micro_batches").items()) {
    const auto [first, last] = parse_range(interval);
    pipeline.micro_batches.push_back({MicroBatchId{first}, MicroBatchId{last}});
  }
  fields.finish();
  return pipeline;
}

NamedSchedule parse_named_schedule(const JsonCursor& name, JsonFields& fields) {
  NamedSchedule schedule;
  const std::optional<ScheduleKind> kind = find_schedule(name.text());
  if (!kind) {
    name.fail(name.describe(), "the name of a schedule, such as \"1f1b\"" +
                                   did_you_mean(name.text(), all_schedule_names()));
  }
  schedule.kind = *kind;
  if (const auto in_flight = fields.optional("in_flight")) {
    schedule.in_flight = static_cast<int>(in_flight->integer(1, kLargestBatch));
  }
  if (const auto chunks = fields.optional("chunks")) {
    schedule.chunks = static_cast<int>(chunks->integer(1, kLargestBatch));
  }
  return schedule;
}

// Of actions with so few characters no more than 150,000 differ. A file with more repeats itself,
// and is refused before it takes memory.
constexpr std::size_t kShortAction = 5;
constexpr int kMostShortActions = 150'000;

ExplicitSchedule parse_explicit_schedule(const JsonCursor& lists) {
  ExplicitSchedule schedule;
  int short_actions = 0;
  for (const JsonCursor& list : lists.items()) {
    std::vector<Action>& actions = schedule.devices.emplace_back();
    actions.reserve(list.items().size());
    for (const JsonCursor& action : list.items()) {
      const std::string text = action.text();
      if (text.size() <= kShortAction && ++short_actions > kMostShortActions) {
        action.fail(fmt::format("more than {} actions of at most {} characters", kMostShortActions,
                                kShortAction),
                    "every action once");
      }
      actions.push_back(parse_action(text, action.file(), action.line()));
    }
  }
  return schedule;
}

DispatchPolicy parse_policy(const JsonCursor& cursor) {
  if (const auto policy = find_policy(cursor.text())) return *policy;
  constexpr std::array<std::string_view, 4> kPolicies = {"fifo", "priority", "lrtf", "steal"};
  cursor.fail(cursor.describe(), R"(one of "fifo", "priority", "lrtf", "steal")" +
                                     did_you_mean(cursor.text(), kPolicies));
}

ScheduleChoice parse_schedule_choice(const JsonCursor& cursor) {
  JsonFields fields(cursor);
  ScheduleChoice choice;
  if (const auto name = fields.optional("name")) {
    choice = parse_named_schedule(*name, fields);
  } else if (const auto actions = fields.optional("actions")) {
    choice = parse_explicit_schedule(*actions);
  } else if (const auto policy = fields.optional("policy")) {
    choice = parse_policy(*policy);
  } else {
    cursor.fail("an object without them", "one of \"name\", \"actions\", \"policy\"");
  }
  fields.finish();
  return choice;
}

std::string draw_ranges(const auto& ranges) {
  std::string text;
  for (const auto& range : ranges) {
    text +=
        fmt::format("{}[{}, {}]", text.empty() ? "" : ", ", range.first.value, range.last.value);
  }
  return "[" + text + "]";
}

std::string draw_stage(const Stage& stage) {
  std::string devices;
  for (const DeviceId device : stage.devices) {
    devices += fmt::format("{}{}", devices.empty() ? "" : ", ", device.value);
  }
  return fmt::format(R"({{"layers": {}, "devices": [{}], "axis": {}, "memory": {}}})",
                     draw_ranges(stage.layers), devices, name_of(kAxes, stage.axis),
                     name_of(kMemoryPolicies, stage.memory));
}

// Writes one item per line at the given depth, or "[]".
std::string draw_list(const std::vector<std::string>& items, int depth, char open, char close) {
  if (items.empty()) return fmt::format("{}{}", open, close);
  const std::string indent(static_cast<std::size_t>(depth) * 2, ' ');
  return fmt::format("{}\n{}  {}\n{}{}", open, indent, fmt::join(items, ",\n" + indent + "  "),
                     indent, close);
}

std::string draw_pipeline(const Pipeline& pipeline) {
  std::vector<std::string> stages;
  for (const Stage& stage : pipeline.stages) stages.push_back(draw_stage(stage));
  return draw_list({"\"stages\": " + draw_list(stages, 3, '[', ']'),
                    "\"micro_batches\": " + draw_ranges(pipeline.micro_batches)},
                   2, '{', '}');
}

std::string draw_schedule(const NamedSchedule& schedule) {
  std::string text = "\"name\": " + json_string(schedule_name(schedule.kind));
  if (schedule.in_flight) text += fmt::format(", \"in_flight\": {}", *schedule.in_flight);
  return fmt::format("{{{}, \"chunks\": {}}}", text, schedule.chunks);
}

std::string draw_schedule(const ExplicitSchedule& schedule) {
  std::vector<std::string> lists;
  for (const std::vector<Action>& device : schedule.devices) {
    std::vector<std::string> actions;
    for (const Action& action : device) {
      ENSURE(action.step == 0, "a plan's schedule is for one step, which has no number");
      actions.push_back(json_string(to_text(action)));
    }
    lists.push_back(fmt::format("[{}]", fmt::join(actions, ", ")));
  }
  return draw_list({"\"actions\": " + draw_list(lists, 2, '[', ']')}, 1, '{', '}');
}

std::string draw_schedule(DispatchPolicy policy) {
  return fmt::format(R"({{"policy": "{}"}})", policy_name(policy));
}

}  // namespace

Plan parse_plan(std::string_view text, const std::string& file) {
  JsonFields fields(parse_json(text, file));
  expect_format(fields, "frazil.plan", 1);
  Plan plan;
  plan.model_hash = fields.required("model_hash").text();
  plan.batch_size = static_cast<int>(fields.required("batch_size").integer(1, kLargestBatch));
  plan.micro_batch_size =
      static_cast<int>(fields.required("micro_batch_size").integer(1, kLargestBatch));
  const JsonCursor mask = fields.required("mask");
  plan.mask = FreezeMask::parse(mask);
  if (const auto cache = fields.optional("cache_frozen_prefix")) {
    plan.cache_frozen_prefix = cache->boolean();
  }
  for (const JsonCursor& pipeline : fields.required("pipelines").items()) {
    plan.pipelines.push_back(parse_pipeline(pipeline));
  }
  plan.schedule = parse_schedule_choice(fields.required("schedule"));
  plan.reduction = parse_name(fields.optional("reduction"), kReductions, ReductionMode::kExact);
  plan.versions = parse_name(fields.optional("weight_versions"), kVersions, WeightVersions::kSync);
  if (const auto ahead = fields.optional("steps_ahead")) {
    plan.steps_ahead = static_cast<int>(ahead->integer(0, kMostStepsAhead));
  }
  if (const auto provenance = fields.optional("provenance")) {
    JsonFields entries(*provenance);
    for (const std::string& key : entries.keys()) {
      plan.provenance[key] = entries.required(key).text();
    }
    entries.finish();
  }
  fields.finish();
  return plan;
}

std::string to_json(const Plan& plan) {
  std::vector<std::string> pipelines;
  for (const Pipeline& pipeline : plan.pipelines) pipelines.push_back(draw_pipeline(pipeline));
  std::vector<std::string> provenance;
  for (const auto& [key, value] : plan.provenance) {
    provenance.push_back(json_string(key) + ": " + json_string(value));
  }
  std::vector<std::string> members{
      R"("format": "frazil.plan")",
      R"("version": 1)",
      "\"model_hash\": " + json_string(plan.model_hash),
      fmt::format("\"batch_size\": {}", plan.batch_size),
      fmt::format("\"micro_batch_size\": {}", plan.micro_batch_size),
      "\"mask\": " + json_string(plan.mask.text()),
      fmt::format("\"cache_frozen_prefix\": {}", plan.cache_frozen_prefix),
      "\"pipelines\": " + draw_list(pipelines, 1, '[', ']'),
      "\"schedule\": " +
          std::visit([](const auto& schedule) { return draw_schedule(schedule); }, plan.schedule),
      "\"reduction\": " + name_of(kReductions, plan.reduction),
      "\"weight_versions\": " + name_of(kVersions, plan.versions)};
  if (plan.steps_ahead > 0) members.push_back(fmt::format("\"steps_ahead\": {}", plan.steps_ahead));
  members.push_back("\"provenance\": " + draw_list(provenance, 1, '{', '}'));
  return draw_list(members, 0, '{', '}') + "\n";
}

Plan read_plan(const std::filesystem::path& path) {
  return parse_plan(read_text_file(path), path.string());
}

void write_plan(const Plan& plan, const std::filesystem::path& path) {
  write_text_file(path, to_json(plan));
}

}  // namespace frazil
