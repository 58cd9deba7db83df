#include "planner/trajectory/print_trajectory.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "profiles/quantity_text.h"

namespace frazil {
namespace {

using Json = nlohmann::ordered_json;

double ratio(Duration a, Duration b) {
  return b.count() == 0 ? 1 : static_cast<double>(a.count()) / static_cast<double>(b.count());
}

const Plan& plan_of(const PlannedTrajectory& planned, std::size_t segment) {
  return planned.candidates[planned.best.states[segment]];
}

std::string segment_rows(const PlannedTrajectory& planned) {
  std::size_t width = 4;
  for (const ForecastSegment& segment : planned.segments) {
    width = std::max(width, segment.mask.text().size());
  }
  std::string text = fmt::format("{:>10}  {:>10}  {:<{}}  {:>12}  plan\n", "step", "steps", "mask",
                                 width, "a step");
  for (std::size_t k = 0; k < planned.segments.size(); ++k) {
    const ForecastSegment& segment = planned.segments[k];
    const bool stays = k > 0 && planned.best.states[k] == planned.best.states[k - 1];
    text += fmt::format("{:>10}  {:>10}  {:<{}}  {:>12}  {}\n", segment.step, segment.steps,
                        segment.mask.text(), width,
                        to_text(planned.step_times[k][planned.best.states[k]]),
                        stays ? "the same" : summarize(plan_of(planned, k)));
  }
  return text;
}

std::string why(const PlannedSwitch& change) {
  if (change.forced) return "the plan before does not fit";
  if (!change.break_even) return "pays with what follows";
  return fmt::format("paid back after {} steps", *change.break_even);
}

std::string switch_rows(const PlannedTrajectory& planned) {
  std::string text;
  for (const PlannedSwitch& change : planned.switches) {
    text += fmt::format("switch at step {}: {} to move, {} in all; {}\n",
                        planned.segments[change.segment].step, to_text(change.cost.moved),
                        to_text(change.cost.total), why(change));
  }
  return text.empty() ? "no switch pays\n" : text;
}

std::string compare(const char* what, const std::optional<Trajectory>& other, Duration best) {
  if (!other) return fmt::format("{:<36}does not fit\n", what);
  return fmt::format("{:<36}{:>12}  {:.4f} x\n", what, to_text(other->total),
                     ratio(other->total, best));
}

std::string online_row(const OnlineRun& run) {
  return fmt::format(
      "without a forecast, over {} plans at symmetric prices: {} with {} switches, {:.2f} % above "
      "hindsight's {}; never above {} x it + {}\n",
      run.candidates, to_text(run.paid), run.changes, 100 * (ratio(run.paid, run.hindsight) - 1),
      to_text(run.hindsight), run.factor, to_text(run.additive));
}

Json total_json(const std::optional<Trajectory>& trajectory) {
  return trajectory ? Json(trajectory->total.count()) : Json(nullptr);
}

Json switch_json(const PlannedTrajectory& planned, const PlannedSwitch& change) {
  return {{"step", planned.segments[change.segment].step},
          {"from", change.from},
          {"to", change.to},
          {"moved_bytes", change.cost.moved.count},
          {"move_ns", change.cost.move.count()},
          {"total_ns", change.cost.total.count()},
          {"forced", change.forced},
          {"break_even_steps", change.break_even ? Json(*change.break_even) : Json(nullptr)}};
}

}  // namespace

std::string print_trajectory(const PlannedTrajectory& planned) {
  std::string text = segment_rows(planned) + "\n" + switch_rows(planned) + "\n";
  text += fmt::format("{:<36}{:>12}\n", "all steps and switches", to_text(planned.best.total));
  text += compare("one plan throughout", planned.held, planned.best.total);
  text += compare("always the best plan of the moment", planned.greedy, planned.best.total);
  if (planned.online) text += online_row(*planned.online);
  return text;
}

std::string trajectory_json(const PlannedTrajectory& planned) {
  Json json;
  for (std::size_t s = 0; s < planned.candidates.size(); ++s) {
    json["candidates"].push_back(summarize(planned.candidates[s]));
  }
  for (std::size_t k = 0; k < planned.segments.size(); ++k) {
    const ForecastSegment& segment = planned.segments[k];
    const std::size_t held = planned.best.states[k];
    json["segments"].push_back({{"step", segment.step},
                                {"steps", segment.steps},
                                {"mask", segment.mask.text()},
                                {"candidate", held},
                                {"step_ns", planned.step_times[k][held].count()}});
  }
  json["switches"] = Json::array();
  for (const PlannedSwitch& change : planned.switches) {
    json["switches"].push_back(switch_json(planned, change));
  }
  json["total_ns"] = planned.best.total.count();
  json["one_plan_ns"] = total_json(planned.held);
  json["greedy_ns"] = total_json(planned.greedy);
  if (planned.online) {
    const OnlineRun& run = *planned.online;
    json["online"] = {{"paid_ns", run.paid.count()}, {"hindsight_ns", run.hindsight.count()},
                      {"switches", run.changes},     {"candidates", run.candidates},
                      {"worst_factor", run.factor},  {"worst_additive_ns", run.additive.count()}};
  }
  return json.dump(2) + "\n";
}

}  // namespace frazil
