#include "planner/reproduce/frazil_plans.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "planner/reproduce/rtx5000.h"
#include "planner/search/search.h"
#include "profiles/error.h"

namespace frazil {
namespace {

struct OwnPlan {
  Plan plan;
  Duration step{0};
};

// Searches with a network adapter that one ring has to itself, then simulates the best plan of each
// length with as many rings on the adapter as the plan has stages.
std::optional<OwnPlan> find_plan(const EpochModel& model, const Training& training,
                                 int batch_size) {
  SearchOptions options;
  options.batch_size = batch_size;
  options.micro_batch_sizes = {25, 50, 100, 200, 400};
  options.schedules = {ScheduleKind::kOneForwardOneBackward};
  options.mask = model.mask;
  options.reduction = ReductionMode::kFast;
  options.clip = true;
  options.max_stages = training.devices_per_host;
  const Cluster cluster = make_rtx5000_cluster(training.devices_per_host, /*rings=*/1);
  std::optional<OwnPlan> best;
  std::set<std::size_t> seen;
  for (const Candidate& candidate : search_plans({model.profile, cluster}, options).candidates) {
    if (candidate.infeasible) break;
    const std::size_t stages = candidate.plan.pipelines.front().stages.size();
    if (!seen.insert(stages).second) continue;
    const ParkStep step = simulate_on_park(candidate.plan, model.profile, training.devices_per_host,
                                           static_cast<int>(stages));
    if (!step.fits || (best && best->step <= step.time)) continue;
    best = OwnPlan{candidate.plan, step.time};
  }
  return best;
}

PlannedEpoch plan_epoch(const Training& training, const Epoch& theirs) {
  PlannedEpoch epoch{.theirs = theirs};
  std::optional<OwnPlan> best;
  for (const bool cached : {false, true}) {
    if (cached && !theirs.cached) continue;
    const std::optional<int> read = cached ? theirs.cached : std::nullopt;
    const EpochModel model = theirs.fills
                                 ? make_filling_model(training.profile, theirs.frozen, read)
                                 : make_epoch_model(training.profile, theirs.frozen, read);
    auto own = find_plan(model, training, theirs.batch_size);
    if (!own || (best && best->step <= own->step)) continue;
    best = std::move(own);
    epoch.cached = cached;
  }
  if (!best) throw InfeasibleError("no plan of the search fits the machine park");
  epoch.stages = static_cast<int>(best->plan.pipelines.front().stages.size());
  epoch.pipelines = static_cast<int>(best->plan.pipelines.size());
  epoch.micro_batch_size = best->plan.micro_batch_size;
  epoch.step = best->step;
  return epoch;
}

PlannedRun plan_run(const std::string& title, const Training& training,
                    const std::vector<int>& frozen) {
  PlannedRun run{.title = title, .epochs = {}};
  double their_time = 0;
  double our_time = 0;
  for (const Epoch& theirs : simulate_run(training, frozen, ElasticParts{})) {
    const bool is_repeated = !run.epochs.empty() && run.epochs.back().theirs == theirs;
    run.epochs.push_back(is_repeated ? run.epochs.back() : plan_epoch(training, theirs));
    their_time += 1 / theirs.rate();
    our_time += 1 / run.epochs.back().rate();
  }
  run.speed_up = their_time / our_time;
  return run;
}

}  // namespace

double PlannedEpoch::rate() const {
  return theirs.batch_size * 1e9 / static_cast<double>(step.count());
}

std::vector<PlannedRun> plan_runs(const Training& training, const std::vector<int>& frozen) {
  Training kept = training;
  kept.batch_grows = false;
  return {plan_run("The same freeze trace under plans of frazil, global batch kept", kept, frozen),
          plan_run("The same, global batch growing with PipeTransformer's pipelines", training,
                   frozen)};
}

std::string print_runs(const std::vector<PlannedRun>& runs) {
  std::string text;
  for (const PlannedRun& run : runs) {
    text += fmt::format(
        "\n{} (samples/s, K x R, no transitions)\n  {:<6} {:>4} {:>6} {:>18} {:>24} {:>8}\n",
        run.title, "epoch", "L_f", "batch", "pipetransformer", "frazil", "faster");
    for (std::size_t e = 0; e < run.epochs.size(); ++e) {
      const PlannedEpoch& epoch = run.epochs[e];
      const Epoch& theirs = epoch.theirs;
      text += fmt::format(
          "  {:<6} {:>4} {:>6} {:>18} {:>24} {:>7.2f}x\n", e, theirs.frozen, theirs.batch_size,
          fmt::format("{:.0f} ({} x {})", theirs.rate(), theirs.length, theirs.pipelines),
          fmt::format("{:.0f} ({} x {}{})", epoch.rate(), epoch.stages, epoch.pipelines,
                      epoch.cached ? ", cached" : ""),
          epoch.rate() / theirs.rate());
    }
    text += fmt::format("  whole run: {:.2f}x\n", run.speed_up);
  }
  return text;
}

std::string runs_json(const std::vector<PlannedRun>& runs) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const PlannedRun& run : runs) {
    nlohmann::ordered_json epochs = nlohmann::ordered_json::array();
    for (const PlannedEpoch& epoch : run.epochs) {
      const Epoch& theirs = epoch.theirs;
      epochs.push_back({{"epoch", epochs.size()},
                        {"frozen_layers", theirs.frozen},
                        {"batch", theirs.batch_size},
                        {"pipetransformer",
                         {{"stages", theirs.length},
                          {"pipelines", theirs.pipelines},
                          {"cached", theirs.cached.has_value()},
                          {"step_ns", theirs.step.count()}}},
                        {"frazil",
                         {{"stages", epoch.stages},
                          {"pipelines", epoch.pipelines},
                          {"micro_batch_size", epoch.micro_batch_size},
                          {"cached", epoch.cached},
                          {"step_ns", epoch.step.count()}}}});
    }
    all.push_back({{"title", run.title},
                   {"speed_up", std::round(run.speed_up * 1e6) / 1e6},
                   {"epochs", epochs}});
  }
  return all.dump();
}

}  // namespace frazil
