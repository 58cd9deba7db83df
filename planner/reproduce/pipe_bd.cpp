#include "planner/reproduce/pipe_bd.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "planner/reproduce/pipe_bd_results.h"
#include "planner/reproduce/pipe_bd_verdicts.h"
#include "planner/verbs/command_line.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

using Json = nlohmann::ordered_json;

std::string percent(double simulated, double published) {
  return fmt::format("{:+.1f} %", 100 * (simulated / published - 1));
}

std::string list(const std::vector<int>& numbers) {
  return fmt::format("({})", fmt::join(numbers, ","));
}

std::string in_ms(Duration time) { return fmt::format("{:.1f}", to_ms(time)); }

// Lists a sentence for each wrong sign and order of all charts.
std::vector<std::string> list_wrong(const PipeBdResults& results) {
  std::vector<std::string> sentences;
  for (const SpeedupResult& result : results.speedups) {
    for (std::string& sentence : explain_wrong_speedups(result)) {
      sentences.push_back(std::move(sentence));
    }
  }
  return sentences;
}

std::string print_speedups(const PipeBdResults& results) {
  std::string text =
      fmt::format("{:<5}{:<10}{:<12}{:>10}{:>11}{:>9}{:>11}{:>9}  {}\n", "task", "dataset",
                  "method", "published", "simulated", "error", "at +-25 %", "error", "verdict");
  for (const SpeedupResult& result : results.speedups) {
    const std::vector<SpeedupVerdict> verdicts = judge_speedups(result);
    for (std::size_t m = 0; m < kBlockwiseMethods.size(); ++m) {
      const double published = result.published.thousandths[m] / 1000.0;
      text += fmt::format("{:<5}{:<10}{:<12}{:>10.3f}", result.published.task,
                          result.published.dataset, method_name(kBlockwiseMethods[m]), published);
      const std::string_view verdict = verdict_words(verdicts[m]);
      if (!result.steps[m]) {
        text += fmt::format("{:>11}{:>9}{:>11}{:>9}  {}\n", "-", "", "", "", verdict);
        continue;
      }
      const double plain = find_speedup(result, m, &StepTimes::plain);
      const double varied = find_speedup(result, m, &StepTimes::varied);
      text += fmt::format("{:>11.3f}{:>9}{:>11.3f}{:>9}  {}\n", plain, percent(plain, published),
                          varied, percent(varied, published), verdict);
    }
  }
  for (const std::string& sentence : list_wrong(results)) text += sentence + "\n";
  return text;
}

std::string print_epoch_row(const EpochResult& result) {
  const auto& [published, simulated] = result;
  const auto pair = [](int a, int b) {
    return fmt::format("{:>8.2f}{:>7.2f}", a / 100.0, b / 100.0);
  };
  return fmt::format("{:<14}{}{}{}{}\n", published.name, pair(published.load, simulated.load),
                     pair(published.teacher, simulated.teacher),
                     pair(published.student, simulated.student),
                     pair(published.idle, simulated.idle));
}

std::string print_epoch(const PipeBdResults& results) {
  std::string text =
      fmt::format("{:<14}{:>15}{:>15}{:>15}{:>15}\n", "", "load", "teacher", "student", "idle");
  text += print_epoch_row(results.data_parallel);
  for (const EpochResult& rank : results.ranks) text += print_epoch_row(rank);
  return text;
}

std::string print_schedules(const PipeBdResults& results) {
  std::string text;
  for (std::size_t s = 0; s < results.schedules.size(); ++s) {
    const auto& [published, found, period] = results.schedules[s];
    text +=
        fmt::format("{:<14}published {} at {}; {} of the search {} at {}, {} ms; a step takes {}\n",
                    published.gpu, list(published.plan.groups), list(published.plan.cuts),
                    s == 0 ? "best" : "second best", list(found.groups), list(found.cuts),
                    in_ms(found.cost), to_text(period));
  }
  return text;
}

std::string print_results(const PipeBdResults& results) {
  const auto verdict = [](bool holds) { return holds ? "as published" : "NOT AS PUBLISHED"; };
  std::string text =
      "Speed-up over data parallel (Pipe-BD, Jang et al. 2023), published and simulated\n"
      "NAS: neural architecture search, MC: model compression; DP: data parallel; LS: layerwise "
      "scheduling, blocks dealt to\n"
      "devices; TR: teacher relaying; DPU: decoupled parameter update, no barrier; AHD: automatic "
      "hybrid distribution\n";
  text += print_speedups(results);
  text += fmt::format("signs and orders of all simulated speed-ups: {}\n\n",
                      verdict(list_wrong(results).empty()));
  text += "Seconds of an epoch of NAS on CIFAR-10, published and simulated\n";
  text += print_epoch(results);
  text += fmt::format("idle within 10 % of the period: {}\n\n",
                      results.idle_is_within_tenth ? "on every rank" : "NOT ON EVERY RANK");
  text += "Schedules chosen for NAS on ImageNet: devices by stage, first blocks\n";
  text += print_schedules(results);
  text += fmt::format("schedules: {}\n\n", verdict(results.schedules_are_exact));
  text += "Four stages of 15 to 25 ms, ms of a step, published and simulated\n";
  text += fmt::format("with a barrier {:.1f} {:.3f}, decoupled {:.1f} {:.3f}: {}\n\n",
                      kBarrierStepMs, to_ms(results.varying.barrier), kDecoupledStepMs,
                      to_ms(results.varying.decoupled), verdict(results.varying_is_published));
  text +=
      "Simulated from the published block times (ImageNet) and epoch shares (CIFAR-10) alone; the\n"
      "teacher's part and loading on ImageNet are those of the CIFAR-10 epoch. All-reduces, "
      "relays\n"
      "and contention of loaders are not published and take no time here; of MC no times are.\n";
  return text;
}

Json epoch_json(const EpochResult& result) {
  const auto shares = [](const EpochShares& of) {
    return Json{{"load_s", of.load / 100.0},
                {"teacher_s", of.teacher / 100.0},
                {"student_s", of.student / 100.0},
                {"idle_s", of.idle / 100.0}};
  };
  return {{"name", result.published.name},
          {"published", shares(result.published)},
          {"simulated", shares(result.simulated)}};
}

Json speedups_json(const PipeBdResults& results) {
  Json bars = Json::array();
  for (const SpeedupResult& result : results.speedups) {
    const std::vector<SpeedupVerdict> verdicts = judge_speedups(result);
    for (std::size_t m = 0; m < kBlockwiseMethods.size(); ++m) {
      const double published = result.published.thousandths[m] / 1000.0;
      Json bar = {{"task", result.published.task},
                  {"dataset", result.published.dataset},
                  {"method", method_name(kBlockwiseMethods[m])},
                  {"published", published},
                  {"simulated", nullptr}};
      if (result.steps[m]) {
        const double plain = find_speedup(result, m, &StepTimes::plain);
        bar["simulated"] = plain;
        bar["error"] = plain / published - 1;
        bar["simulated_varied"] = find_speedup(result, m, &StepTimes::varied);
        bar["step_ns"] = result.steps[m]->plain.count();
        bar["step_varied_ns"] = result.steps[m]->varied.count();
      }
      bar["verdict"] = verdict_words(verdicts[m]);
      bars.push_back(bar);
    }
  }
  return bars;
}

Json results_json(const PipeBdResults& results) {
  Json ranks = Json::array({epoch_json(results.data_parallel)});
  for (const EpochResult& rank : results.ranks) ranks.push_back(epoch_json(rank));
  Json schedules = Json::array();
  for (const auto& [published, found, period] : results.schedules) {
    schedules.push_back({{"gpu", published.gpu},
                         {"published_groups", published.plan.groups},
                         {"published_cuts", published.plan.cuts},
                         {"groups", found.groups},
                         {"cuts", found.cuts},
                         {"cost_ns", found.cost.count()},
                         {"step_ns", period.count()}});
  }
  return {{"speedups", speedups_json(results)},
          {"epoch", ranks},
          {"schedules", schedules},
          {"varying",
           {{"barrier_ns", results.varying.barrier.count()},
            {"decoupled_ns", results.varying.decoupled.count()}}},
          {"wrong_speedups", list_wrong(results)},
          {"idle_is_within_tenth", results.idle_is_within_tenth},
          {"schedules_are_exact", results.schedules_are_exact},
          {"varying_is_published", results.varying_is_published}};
}

}  // namespace

void describe_pipe_bd_flags(boost::program_options::options_description& /*flags*/) {}

ExitCode reproduce_pipe_bd(const Flags& values) {
  if (values.count("data") > 0) refuse_flags("--data", "none: pipe-bd needs no files");
  const PipeBdResults results = simulate_pipe_bd();
  print_answer(is_set(values, "json") ? results_json(results).dump() + "\n"
                                      : print_results(results));
  const bool holds = results.schedules_are_exact && list_wrong(results).empty() &&
                     results.idle_is_within_tenth && results.varying_is_published;
  return holds ? ExitCode::kOk : ExitCode::kFailure;
}

}  // namespace frazil
