#include "planner/reproduce/sailor/sailor_forms.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

// The values that a fit may take for one constant. Every fit begins as measured: at shares of 1 and
// without added times.
std::vector<double> list_shares(double first, double step, int count) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(std::round((first + i * step) * 100) / 100);
  return values;
}

std::vector<Duration> list_message_times() {
  std::vector<Duration> values;
  for (int i = 0; i <= 16; ++i) values.push_back(i * std::chrono::microseconds(250));
  return values;
}

std::vector<Duration> list_step_times() {
  std::vector<Duration> values;
  for (const int ms : {0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500}) {
    values.push_back(std::chrono::milliseconds(ms));
  }
  return values;
}

template <class Value>
std::size_t place_of(const std::vector<Value>& values, Value wanted) {
  const auto found = std::find(values.begin(), values.end(), wanted);
  ENSURE(found != values.end(), "a list without the measured value");
  return static_cast<std::size_t>(found - values.begin());
}

// Keeps predictions, for a form is fitted again and again.
std::function<std::vector<Duration>(const Choice&)> remember(
    std::function<std::vector<Duration>(const Choice&)> predict) {
  const auto known = std::make_shared<std::map<Choice, std::vector<Duration>>>();
  return [known, predict = std::move(predict)](const Choice& choice) {
    const auto [entry, is_new] = known->try_emplace(choice);
    if (is_new) entry->second = predict(choice);
    return entry->second;
  };
}

SailorForm make_four_constants(const SailorPredictor& predictor) {
  const auto fixed = list_shares(0.70, 0.05, 13);
  const auto per_sample = list_shares(0.80, 0.02, 16);
  const auto reduction = list_shares(0.10, 0.10, 10);
  const auto message = list_message_times();
  const auto at = [=](const Choice& choice) {
    return SailorConstants{.fixed = fixed[choice[0]],
                           .per_sample = per_sample[choice[1]],
                           .reduction = reduction[choice[2]],
                           .message_overhead = message[choice[3]]};
  };
  SailorForm form{.name = "four constants", .model = {}, .constants = {}};
  form.model.list_sizes = {fixed.size(), per_sample.size(), reduction.size(), message.size()};
  form.model.start = {place_of(fixed, 1.0), place_of(per_sample, 1.0), place_of(reduction, 1.0), 0};
  form.model.predict =
      remember([&predictor, at](const Choice& choice) { return predictor.predict(at(choice)); });
  form.constants = [at](const Choice& choice) {
    const SailorConstants constants = at(choice);
    return std::vector<NamedConstant>{
        {"fixed_share", constants.fixed, "of a call's fixed cost"},
        {"per_sample_share", constants.per_sample, "of a call's cost per sample"},
        {"reduction_bandwidth_share", constants.reduction, "of the bandwidth between replicas"},
        {"message_overhead_ms", to_ms(constants.message_overhead),
         "ms per message between stages"}};
  };
  return form;
}

// The three constants of the other two forms.
struct ThreeConstants {
  std::vector<double> compute = list_shares(0.70, 0.02, 31);
  std::vector<Duration> message = list_message_times();
  std::vector<Duration> step = list_step_times();

  SailorForm make_form(std::string_view name,
                       std::function<std::vector<Duration>(double, Duration)> predict) const {
    SailorForm form{.name = name, .model = {}, .constants = {}};
    form.model.list_sizes = {compute.size(), message.size(), step.size()};
    form.model.start = {place_of(compute, 1.0), 0, 0};
    const ThreeConstants lists = *this;
    form.model.predict = remember([lists, predict = std::move(predict)](const Choice& choice) {
      std::vector<Duration> times = predict(lists.compute[choice[0]], lists.message[choice[1]]);
      for (Duration& time : times) time += lists.step[choice[2]];
      return times;
    });
    form.constants = [lists](const Choice& choice) {
      return std::vector<NamedConstant>{
          {"compute_share", lists.compute[choice[0]], "of all layer times"},
          {"message_overhead_ms", to_ms(lists.message[choice[1]]), "ms per message between stages"},
          {"step_ms", to_ms(lists.step[choice[2]]), "ms per step"}};
    };
    return form;
  }
};

// What the plain loop adds up for a plan.
struct LoopTerms {
  Duration compute{0};
  int messages = 0;
};

LoopTerms add_up(const SailorPlan& plan, const ModelProfile& profile) {
  Duration slowest{0};
  for (const std::vector<LayerId>& stage : plan.stages) {
    Duration time{0};
    for (const LayerId layer : stage) {
      const CostSample cost = cost_at(profile.layers[layer.index()], plan.micro_batch_size).cost;
      time += cost.forward + cost.backward_input + cost.backward_weight;
    }
    slowest = std::max(slowest, time);
  }
  const auto stages = static_cast<int>(plan.stages.size());
  const int turns = plan.micro_batches_per_replica() + stages - 1;
  return {slowest * turns, stages > 1 ? 2 * turns : 0};
}

SailorForm make_plain_loop(const SailorFolder& folder) {
  std::map<int, ModelProfile> profiles;  // by tensor-parallel degree
  std::vector<LoopTerms> terms;
  for (const SailorPlan& plan : folder.plans) {
    auto profile = profiles.find(plan.degree);
    if (profile == profiles.end()) {
      profile = profiles
                    .emplace(plan.degree, make_sailor_profile(folder.config, folder.times,
                                                              folder.sizes, plan.degree, plan.name))
                    .first;
    }
    terms.push_back(add_up(plan, profile->second));
  }
  return ThreeConstants{}.make_form("plain loop", [terms](double compute, Duration message) {
    std::vector<Duration> times;
    for (const LoopTerms& own : terms) {
      const double work = compute * static_cast<double>(own.compute.count());
      times.push_back(Duration{std::llround(work)} + message * own.messages);
    }
    return times;
  });
}

}  // namespace

std::vector<SailorForm> list_forms(const SailorPredictor& predictor, const SailorFolder& folder) {
  // A step's own time is added to the simulated time, so each pair is simulated once.
  const auto simulate = [&predictor](double compute, Duration message) {
    return predictor.predict(
        {.fixed = compute, .per_sample = compute, .reduction = 1, .message_overhead = message});
  };
  const auto kept =
      std::make_shared<std::map<std::pair<double, Duration>, std::vector<Duration>>>();
  const auto simulate_once = [simulate, kept](double compute, Duration message) {
    const auto [entry, is_new] = kept->try_emplace({compute, message});
    if (is_new) entry->second = simulate(compute, message);
    return entry->second;
  };
  std::vector<SailorForm> forms;
  forms.push_back(make_four_constants(predictor));
  forms.push_back(ThreeConstants{}.make_form("three constants", simulate_once));
  forms.push_back(make_plain_loop(folder));
  return forms;
}

}  // namespace frazil
