#include "planner/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "planner/plan/stage_slices.h"
#include "profiles/error.h"
#include "profiles/known_names.h"

namespace frazil {
namespace {

// Returns "cut 7", "cuts 3 7", "layers 0-1+4-5 2-3", or nothing for a single stage.
std::string cut_text(const Pipeline& pipeline) {
  if (pipeline.stages.size() < 2) return "";
  std::string text = pipeline.stages.size() == 2 ? "cut" : "cuts";
  if (is_consecutive(pipeline)) {
    for (std::size_t stage = 1; stage < pipeline.stages.size(); ++stage) {
      text += fmt::format(" {}", pipeline.stages[stage].layers.front().first.value);
    }
    return text;
  }
  text = "layers";
  for (const Stage& stage : pipeline.stages) text += " " + layers_text(stage);
  return text;
}

std::string count_text(std::size_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// Tells pipelines of one shape once, "2 stages x 4 pipelines", and pipelines that differ one by
// one, "2+1 stages".
std::string shape_text(const Plan& plan) {
  std::string lengths;
  bool equal = true;
  for (const Pipeline& pipeline : plan.pipelines) {
    equal = equal && pipeline.stages.size() == plan.pipelines.front().stages.size();
    lengths += fmt::format("{}{}", lengths.empty() ? "" : "+", pipeline.stages.size());
  }
  std::string pipelines = count_text(plan.pipelines.size(), "pipeline");
  if (plan.pipelines.empty()) return pipelines;
  if (!equal) return fmt::format("{} stages in {}", lengths, pipelines);
  return count_text(plan.pipelines.front().stages.size(), "stage") + " x " + pipelines;
}

// Returns " on 2+1 devices" if stages lie on several devices, " on 2 sliced+1 devices" if they
// share micro-batches by samples, and nothing otherwise. Pipelines that differ are told one by one.
std::string devices_text(const Plan& plan) {
  std::vector<std::string> texts;
  for (const Pipeline& pipeline : plan.pipelines) {
    std::string& text = texts.emplace_back();
    for (const Stage& stage : pipeline.stages) {
      text += fmt::format("{}{}{}", text.empty() ? "" : "+", stage.devices.size(),
                          slices_of(stage) > 1 ? " sliced" : "");
    }
  }
  if (std::none_of(plan.pipelines.begin(), plan.pipelines.end(), has_shared_stage)) return "";
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  return fmt::format(" on {} devices", fmt::join(texts, " | "));
}

std::string cuts_text(const Plan& plan) {
  std::vector<std::string> cuts;
  for (const Pipeline& pipeline : plan.pipelines) cuts.push_back(cut_text(pipeline));
  const bool equal =
      std::adjacent_find(cuts.begin(), cuts.end(), std::not_equal_to<>()) == cuts.end();
  if (equal && !cuts.empty()) cuts.resize(1);
  std::string text;
  for (const std::string& cut : cuts) {
    text += (text.empty() ? "" : " | ") + (cut.empty() ? "no cut" : cut);
  }
  return text == "no cut" ? "" : text;
}

// Says which stages do not keep what their backwards need.
std::string memory_text(const Plan& plan) {
  std::size_t stages = 0;
  std::size_t recompute = 0;
  std::size_t offload = 0;
  for (const Pipeline& pipeline : plan.pipelines) {
    for (const Stage& stage : pipeline.stages) {
      ++stages;
      recompute += stage.memory == MemoryPolicy::kRecompute ? 1 : 0;
      offload += stage.memory == MemoryPolicy::kOffload ? 1 : 0;
    }
  }
  std::string text;
  for (const auto& [word, count] : {std::pair("recompute", recompute), {"offload", offload}}) {
    if (count == 0) continue;
    text += fmt::format(", {}", word);
    if (count < stages) text += fmt::format(" in {} of {} stages", count, stages);
  }
  return text;
}

std::string steps_text(int ahead) {
  if (ahead == 0) return "";
  return fmt::format(", devices up to {} step{} ahead", ahead, ahead == 1 ? "" : "s");
}

std::string schedule_text(const ScheduleChoice& schedule) {
  if (const auto* named = std::get_if<NamedSchedule>(&schedule)) {
    std::string text(schedule_name(named->kind));
    if (named->chunks != 1) text += fmt::format(" with {} chunks", named->chunks);
    if (named->in_flight) text += fmt::format(" with {} in flight", *named->in_flight);
    return text;
  }
  if (const auto* policy = std::get_if<DispatchPolicy>(&schedule)) {
    return fmt::format("dispatched {}", policy_name(*policy));
  }
  return "explicit schedule";
}

}  // namespace

bool is_consecutive(const Pipeline& pipeline) {
  int next = 0;
  for (const Stage& stage : pipeline.stages) {
    if (stage.layers.size() != 1 || stage.layers.front().first.value != next) return false;
    next = stage.layers.front().last.value + 1;
  }
  return true;
}

std::string layers_text(const Stage& stage) {
  std::string text;
  for (const LayerRange& range : stage.layers) {
    text += fmt::format("{}{}-{}", text.empty() ? "" : "+", range.first.value, range.last.value);
  }
  return text;
}

int samples_in(const Plan& plan, MicroBatchId micro_batch) {
  ENSURE(micro_batch.value >= 0 && micro_batch.value < plan.micro_batches(),
         fmt::format("micro-batch {} is not in the batch", micro_batch.value));
  return std::min(plan.micro_batch_size,
                  plan.batch_size - micro_batch.value * plan.micro_batch_size);
}

std::string_view policy_name(DispatchPolicy policy) {
  switch (policy) {
    case DispatchPolicy::kFifo:
      return "fifo";
    case DispatchPolicy::kPriority:
      return "priority";
    case DispatchPolicy::kLrtf:
      return "lrtf";
    case DispatchPolicy::kSteal:
      return "steal";
  }
  return "";
}

std::optional<DispatchPolicy> find_policy(std::string_view name) {
  for (const DispatchPolicy policy : {DispatchPolicy::kFifo, DispatchPolicy::kPriority,
                                      DispatchPolicy::kLrtf, DispatchPolicy::kSteal}) {
    if (is_same_name(policy_name(policy), name)) return policy;
  }
  return std::nullopt;
}

bool holds_layer(const Stage& stage, LayerId layer) {
  return std::any_of(stage.layers.begin(), stage.layers.end(), [&](const LayerRange& range) {
    return range.first <= layer && layer <= range.last;
  });
}

bool has_searched_order(const Plan& plan) {
  const auto said = plan.provenance.find("schedule");
  return std::holds_alternative<ExplicitSchedule>(plan.schedule) && said != plan.provenance.end() &&
         said->second.starts_with(kSearched);
}

std::string summarize(const Plan& plan) {
  const int last = plan.batch_size - (plan.micro_batches() - 1) * plan.micro_batch_size;
  const bool is_short = plan.micro_batches() > 1 && last < plan.micro_batch_size;
  const std::string cuts = cuts_text(plan);
  const int micro_batches = plan.micro_batches();
  return fmt::format(
      "{}{}, {}, {} of {}{}{}{}{}{}{}", shape_text(plan), devices_text(plan),
      schedule_text(plan.schedule),
      micro_batches == 1 ? "1 micro-batch" : fmt::format("{} micro-batches", micro_batches),
      plan.micro_batch_size, is_short ? fmt::format(", the last of {}", last) : "",
      memory_text(plan), cuts.empty() ? "" : ", ", cuts,
      plan.cache_frozen_prefix ? ", cached prefix" : "", steps_text(plan.steps_ahead));
}

Pipeline make_pipeline(int layers, const std::vector<LayerId>& cuts,
                       const std::vector<DeviceId>& devices, MicroBatches micro_batches) {
  ENSURE(devices.size() == cuts.size() + 1, "a pipeline has one device per stage");
  Pipeline pipeline;
  int first = 0;
  for (std::size_t stage = 0; stage < devices.size(); ++stage) {
    const int end = stage < cuts.size() ? cuts[stage].value : layers;
    ENSURE(first < end && end <= layers, "cuts ascend and leave no stage without layers");
    pipeline.stages.push_back(
        {.layers = {{LayerId{first}, LayerId{end - 1}}}, .devices = {devices[stage]}});
    first = end;
  }
  if (micro_batches.count() > 0) pipeline.micro_batches.push_back(micro_batches);
  return pipeline;
}

}  // namespace frazil
