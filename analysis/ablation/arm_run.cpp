#include "analysis/ablation/arm_run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/ablation/pair_result.h"
#include "planner/freezing/freeze_json.h"
#include "planner/freezing/signal_memory.h"
#include "planner/search/rankings/rank_plans.h"
#include "profiles/error.h"
#include "profiles/json.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;
using RunJson = nlohmann::json;

constexpr int kMostEpochs = 1'048'576;

// These are the defaults of the run configuration (docs/formats.md).
constexpr int kUsualEpochs = 20;
constexpr int kUsualBatch = 32;
constexpr int kUsualMicroBatch = 8;
constexpr std::int64_t kUsualCacheMemory = std::int64_t{1} << 30;

int integer_of(JsonFields& fields, const char* key, int usual) {
  const auto value = fields.optional(key);
  return value ? static_cast<int>(value->integer(1, kMostEpochs)) : usual;
}

bool clips_gradients(const RunJson& run) {
  const auto optimizer = run.find("optimizer");
  if (optimizer == run.end() || !optimizer->is_object()) return false;
  const auto norm = optimizer->find("clip_norm");
  return norm != optimizer->end() && norm->is_number() && norm->get<double>() > 0;
}

bool has_freezing(const RunJson& run) {
  const auto freeze = run.find("freeze");
  if (freeze == run.end() || !freeze->is_object()) return false;
  const auto policy = freeze->find("policy");
  if (policy == freeze->end()) return freeze->value("alpha", RunJson(0)) != RunJson(0);
  return policy->is_object() && policy->value("kind", RunJson()) != RunJson("none");
}

// Returns the tier that keys of `cache` describe. Features in bfloat16 take half the bytes that the
// planner counts.
CacheTier read_tier(const RunJson& cache, const std::string& name, std::int64_t usual_bytes,
                    const Link& usual) {
  const auto number = [&](const std::string& key, std::int64_t otherwise) {
    const auto found = cache.find(name + key);
    return found != cache.end() && found->is_number_integer() ? found->get<std::int64_t>()
                                                              : otherwise;
  };
  const std::int64_t narrower = cache.value("precision", RunJson()) == RunJson("bfloat16") ? 2 : 1;
  const std::int64_t bandwidth =
      std::max<std::int64_t>(1, number("_bandwidth_bytes_per_second", usual.bandwidth.count));
  return {.limit = Bytes{number("_bytes", usual_bytes)} * narrower,
          .link = {Duration{number("_latency_ns", usual.latency.count())},
                   BytesPerSecond{bandwidth * narrower}}};
}

FeatureStore read_store(const RunJson& run) {
  RunJson cache = RunJson::object();
  const RunJson::json_pointer kind("/cache/kind");
  // A cache that is off has no keys in arms that cache: choose_cache() leaves them out.
  if (run.contains(kind) && run[kind] != RunJson("off")) cache = run["cache"];
  return {.memory = read_tier(cache, "memory", kUsualCacheMemory, kMemoryLink),
          .disk = read_tier(cache, "disk", 0, kDiskLink)};
}

// The places of a run configuration that name files.
constexpr std::array kFilePlaces = {
    "/init_from",          "/model/path",   "/model/teacher/path", "/model/teacher_weights",
    "/model/student/path", "/data/path",    "/data/train",         "/data/test",
    "/data/validation",    "/cache/folder", "/freeze/policy/path"};

// Calls visit(name) for each name of a file, and takes a name that it returns in its place.
template <class Json, class Visit>
void visit_name(Json& name, const Visit& visit) {
  if (name.is_array()) {
    for (auto& each : name) visit_name(each, visit);
  }
  if (name.is_string() && !name.template get<std::string>().empty()) visit(name);
}

template <class Json, class Visit>
void visit_names(Json& run, const Visit& visit) {
  for (const char* const place : kFilePlaces) {
    const RunJson::json_pointer pointer(place);
    if (run.contains(pointer)) visit_name(run[pointer], visit);
  }
}

void make_names_absolute(RunJson& run, const fs::path& folder) {
  visit_names(run, [&](RunJson& name) {
    name = (folder / name.get<std::string>()).lexically_normal().string();
  });
}

// Returns a freezing by this policy that keeps what holds for blocks without anything to train.
RunJson freeze_by(const RunJson& policy, const RunJson& run) {
  RunJson freeze{{"policy", policy}};
  const RunJson::json_pointer untrainable("/freeze/freeze_untrainable");
  if (run.contains(untrainable)) freeze["freeze_untrainable"] = run[untrainable];
  return freeze;
}

void choose_freezing(const ArmRun& arm, RunJson& run) {
  switch (facts_of(arm.arm).masks) {
    case ArmFacts::Masks::kPolicy:
      return;
    case ArmFacts::Masks::kNone:
      run["freeze"] = freeze_by({{"kind", "none"}}, run);
      return;
    case ArmFacts::Masks::kReversed:
    case ArmFacts::Masks::kDrawn:
      run["freeze"] =
          freeze_by({{"kind", "trace"}, {"path", fs::absolute(arm.masks).string()}}, run);
      return;
  }
}

void choose_cache(const ArmRun& arm, RunJson& run) {
  if (!facts_of(arm.arm).caches) {
    run.erase("cache");
    return;
  }
  const RunJson::json_pointer kind("/cache/kind");
  if (!run.contains(kind) || run[kind] == RunJson("off")) run["cache"] = {{"kind", "on"}};
}

void scale_warm_up(const ShorterRun& shorter, RunJson& run) {
  const RunJson::json_pointer place("/optimizer/warm_up_steps");
  if (!run.contains(place) || !run[place].is_number_integer()) return;
  const double share = static_cast<double>(shorter.steps) / static_cast<double>(shorter.of_steps);
  run[place] = std::llround(run[place].get<double>() * share);
}

// Returns a hash of the configuration and of what the files hold that it names.
std::string hash_all(const RunJson& run, const fs::path& folder) {
  std::string text = run.dump();
  visit_names(run, [&](const RunJson& name) {
    const fs::path file = folder / name.get<std::string>();
    if (fs::is_regular_file(file)) text += "\n" + hash_of(read_text_file(file));
  });
  return hash_of(text);
}

}  // namespace

BaseRun read_base_run(const fs::path& file) {
  const std::string text = read_text_file(file);
  JsonFields fields(parse_json(text, file.string()));
  expect_format(fields, "frazil.run", 1);
  const RunJson run = RunJson::parse(text);
  BaseRun base{
      .file = file, .written = text, .text = run.dump(), .hash = hash_all(run, file.parent_path())};
  base.epochs = integer_of(fields, "epochs", kUsualEpochs);
  base.batch_size = integer_of(fields, "batch_size", kUsualBatch);
  base.micro_batch_size = integer_of(fields, "micro_batch_size", kUsualMicroBatch);
  const auto reduction = fields.optional("reduction");
  if (reduction && reduction->text() == "fast") base.reduction = ReductionMode::kFast;
  const auto growth = fields.optional("batch_growth");
  if (growth && growth->text() != "none") {
    throw InputError(file.string(), 0, "a batch that grows with the pipelines",
                     "one that stays, for arms would differ in what they learn from");
  }
  base.clips = clips_gradients(run);
  base.freezes = has_freezing(run);
  base.store = read_store(run);
  return base;
}

std::string configure(const BaseRun& base, const ArmRun& arm) {
  RunJson run = RunJson::parse(base.text);
  make_names_absolute(run, fs::absolute(base.file).parent_path());
  run["seed"] = arm.seed;
  if (arm.shorter) scale_warm_up(*arm.shorter, run);
  choose_freezing(arm, run);
  choose_cache(arm, run);
  return run.dump(2) + "\n";
}

// The short form of "freeze" has no signals.
ModelProfile profile_for(const BaseRun& base, ArmFacts::Masks masks, const ModelProfile& profile) {
  const RunJson::json_pointer policy("/freeze/policy");
  if (masks != ArmFacts::Masks::kPolicy || !RunJson::parse(base.text).contains(policy)) {
    return profile;
  }
  JsonFields fields(parse_json(base.written, base.file.string()));
  const FreezeConfig config =
      parse_freeze_config(fields.required("freeze"), static_cast<int>(profile.blocks.size()),
                          fs::absolute(base.file).parent_path());
  return with_signal_memory(profile, config);
}

SearchOptions question_of(const BaseRun& base, const ModelProfile& profile) {
  SearchOptions options = ranking_options();
  options.batch_size = base.batch_size;
  options.micro_batch_sizes = {base.micro_batch_size};
  options.mask = FreezeMask::all_active(static_cast<int>(profile.blocks.size()));
  options.reduction = base.reduction;
  options.clip = base.clips;
  return options;
}

ShorterRun shorten(Step steps, Duration time_unfrozen, Duration time_of_all) {
  ENSURE(steps >= 1 && time_unfrozen.count() > 0 && time_of_all.count() > 0, "runs that took time");
  const double wanted = static_cast<double>(steps) * static_cast<double>(time_of_all.count()) /
                        static_cast<double>(time_unfrozen.count());
  const Step nearest = std::clamp<Step>(std::llround(wanted), 1, steps);
  return {nearest, steps};
}

}  // namespace frazil
