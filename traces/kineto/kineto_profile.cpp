#include "traces/kineto/kineto_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "profiles/error.h"
#include "traces/kineto/kineto_memory.h"
#include "traces/kineto/optimizer_state.h"
#include "traces/kineto/tied_weights.h"

namespace frazil {
namespace {

constexpr std::int64_t kSomeParameters = 1;  // bytes that stand for an unknown number
constexpr std::size_t kNamedUnattributed = 3;
constexpr std::int64_t kMostRows = std::numeric_limits<int>::max();

// Returns the median; for an even number of values the mean of the middle two, rounded down; 0 for
// none.
std::int64_t median(std::vector<std::int64_t> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::int64_t high = values[values.size() / 2];
  const std::int64_t low = values[(values.size() - 1) / 2];
  return low + (high - low) / 2;
}

// A layer's facts in the steps in which it ran, from all traces.
struct LayerSamples {
  std::string name;
  std::vector<LayerStep> steps;

  template <class Value>
  std::int64_t median_of(Value value) const {
    std::vector<std::int64_t> values;
    for (const LayerStep& step : steps) values.push_back(value(step));
    return median(std::move(values));
  }
  template <class Condition>
  bool any(Condition condition) const {
    return std::any_of(steps.begin(), steps.end(), condition);
  }
};

// Returns how far the middle half of the values lies apart, over their median; none for fewer than
// two.
std::optional<double> find_spread(std::vector<double> values) {
  if (values.size() < 2) return std::nullopt;
  std::sort(values.begin(), values.end());
  const std::size_t quarter = values.size() / 4;
  const double middle = (values[values.size() / 2] + values[(values.size() - 1) / 2]) / 2;
  const double apart = values[values.size() - 1 - quarter] - values[quarter];
  return middle > 0 ? std::optional(apart / middle) : std::nullopt;
}

// Collects all traces, one after another, so that only one is held at a time.
class TraceCollector {
 public:
  explicit TraceCollector(const KinetoOptions& options) : options_(options) {}

  void add(const std::filesystem::path& path) {
    const JoinedTrace trace = join_trace(read_kineto_trace(path, options_.layer_prefix));
    const BackwardMatch backward = match_backward(trace);
    const TraceLayers layers = find_layers(trace, backward, options_.micro_batches.value_or(1));
    const bool is_first = report_.traces == 0;
    check_layers(trace.file, layers, is_first);
    count_micro_batches(trace.file, layers);
    TraceCosts costs = sum_costs(trace, backward, layers);
    add_stashes(sum_stashes(trace, layers), costs);
    if (!is_first && costs.is_device_time != report_.is_device_time) {
      throw InputError(trace.file, 0, costs.is_device_time ? "device work" : "no device work",
                       "the same as in the first trace");
    }
    add_step_times(costs);
    report_.layers_by = layers.source;
    report_.is_device_time = costs.is_device_time;
    note_rows(trace, is_first);
    note_optimizers(trace);
    add_samples(layers, costs);
    add_totals(trace, costs);
  }

  // The micro-batch size that the shapes of all traces tell; 0: none.
  std::int64_t rows_read() const { return rows_read_; }
  const std::set<std::string>& optimizers() const { return optimizers_; }

  const std::vector<LayerSamples>& layers() const { return layers_; }

  KinetoReport report() const {
    KinetoReport report = report_;
    for (const auto& [name, time] : unattributed_) {
      report.largest_unattributed.emplace_back(name, Duration{time});
    }
    std::stable_sort(report.largest_unattributed.begin(), report.largest_unattributed.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    if (report.largest_unattributed.size() > kNamedUnattributed) {
      report.largest_unattributed.resize(kNamedUnattributed);
    }
    report.step_spread = find_spread(step_times_);
    report.micro_batches = options_.micro_batches.value_or(passes_.value_or(1));
    note_micro_batches(report);
    return report;
  }

 private:
  // Checks that a further trace fits those before. Layers that the user did not name cannot be told
  // apart between ranks that hold other parts of the model.
  void check_layers(const std::string& file, const TraceLayers& layers, bool is_first) const {
    if (options_.needs_ranges && layers.source != LayerSource::kRanges) {
      throw InputError(file, 0, "no range in the counted steps",
                       fmt::format("ranges whose names begin with \"{}\"", options_.layer_prefix));
    }
    if (is_first) return;
    if (layers.source == LayerSource::kRanges && report_.layers_by == LayerSource::kRanges) return;
    const bool is_same = layers.names.size() == layers_.size() &&
                         std::equal(layers.names.begin(), layers.names.end(), layers_.begin(),
                                    [](const std::string& name, const LayerSamples& layer) {
                                      return name == layer.name;
                                    });
    if (report_.layers_by != layers.source || !is_same) {
      throw InputError(
          file, 0,
          fmt::format("{} layers by {}", layers.names.size(),
                      layers.source == LayerSource::kRanges ? "ranges" : "operations"),
          fmt::format("the {} of the first trace by {}, or ranges that name layers in every trace",
                      layers_.size(),
                      report_.layers_by == LayerSource::kRanges ? "ranges" : "operations"));
    }
  }

  // Checks that the number of micro-batches is the same in all that tell it.
  void count_micro_batches(const std::string& file, const TraceLayers& layers) {
    if (layers.source != LayerSource::kRanges) return;
    if (!layers.passes) {
      has_unequal_passes_ = true;
      return;
    }
    if (*layers.passes != options_.micro_batches.value_or(*layers.passes)) {
      throw InputError("command line", 0,
                       fmt::format("--micro-batches {}", *options_.micro_batches),
                       fmt::format("{}, for so often each layer's range occurs in a step of {}",
                                   *layers.passes, file));
    }
    if (*layers.passes != passes_.value_or(*layers.passes)) {
      throw InputError(file, 0,
                       fmt::format("each layer's range {} times in a step", *layers.passes),
                       fmt::format("{} times, as in the traces before", *passes_));
    }
    passes_ = layers.passes;
  }

  void note_micro_batches(KinetoReport& report) const {
    if (report.micro_batches > 1 && passes_) {
      report.notes.push_back(
          fmt::format("{} micro-batches a step, for so often each layer's range occurs in one",
                      report.micro_batches));
    }
    if (has_unequal_passes_) {
      report.notes.push_back(fmt::format(
          "layers' ranges do not occur equally often in each step, so they do not tell its "
          "micro-batches: taken as {} (--micro-batches)",
          report.micro_batches));
    }
  }

  static void add_stashes(const std::vector<std::vector<std::int64_t>>& stashes,
                          TraceCosts& costs) {
    for (std::size_t layer = 0; layer < stashes.size(); ++layer) {
      for (std::size_t step = 0; step < stashes[layer].size(); ++step) {
        costs.layers[layer][step].stash = stashes[layer][step];
      }
    }
  }

  // Traces of later parts of a model read what the first part made, with as many rows.
  void note_rows(const JoinedTrace& trace, bool is_first) {
    rows_read_ = is_first || rows_read_ == trace.rows_read ? trace.rows_read : 0;
  }

  void note_optimizers(const JoinedTrace& trace) {
    for (const NestedRange& range : trace.ranges) {
      if (range.kind != RangeKind::kUpdate) continue;
      optimizers_.emplace(optimizer_of_range(trace.names[range.name]));
    }
  }

  void add_samples(const TraceLayers& layers, const TraceCosts& costs) {
    for (std::size_t layer = 0; layer < layers.names.size(); ++layer) {
      const auto [place, is_new] = numbers_.try_emplace(layers.names[layer], layers_.size());
      if (is_new) layers_.push_back({layers.names[layer], {}});
      std::copy_if(costs.layers[layer].begin(), costs.layers[layer].end(),
                   std::back_inserter(layers_[place->second].steps),
                   [](const LayerStep& step) { return step.ran; });
    }
  }

  // Steps of several ranks count in proportion to their rank's median, for ranks hold parts of
  // different sizes.
  void add_step_times(const TraceCosts& costs) {
    std::vector<std::int64_t> times = costs.update;
    for (const std::vector<LayerStep>& steps : costs.layers) {
      for (std::size_t step = 0; step < times.size(); ++step) {
        for (const std::int64_t part :
             {steps[step].forward, steps[step].input, steps[step].weight, steps[step].both}) {
          add_saturating(times[step], part);
        }
      }
    }
    const std::int64_t middle = std::max<std::int64_t>(median(times), 1);
    for (const std::int64_t time : times) {
      step_times_.push_back(static_cast<double>(time) / static_cast<double>(middle));
    }
  }

  void add_totals(const JoinedTrace& trace, const TraceCosts& costs) {
    ++report_.traces;
    report_.events += trace.events;
    report_.steps += static_cast<int>(trace.steps.kept.size());
    report_.steps_dropped += trace.steps.dropped;
    const auto add = [](TimeShare& sum, const TimeShare& more) {
      add_saturating(sum.total, more.total);
      add_saturating(sum.attributed, more.attributed);
    };
    add(report_.operations, costs.operations);
    add(report_.device, costs.device);
    report_.communication += Duration{std::min(costs.communication, kLargestQuantity)};
    for (const auto& [name, time] : costs.unattributed) add_saturating(unattributed_[name], time);
    if (!trace.steps.has_ranges && report_.notes.empty()) {
      report_.notes.emplace_back("no ProfilerStep ranges: the whole trace counts as one step");
    }
  }

  const KinetoOptions& options_;
  std::vector<LayerSamples> layers_;
  std::map<std::string, std::size_t> numbers_;
  std::map<std::string, std::int64_t> unattributed_;
  std::vector<double> step_times_;  // of all traces, over the median of their trace
  std::set<std::string> optimizers_;
  std::int64_t rows_read_ = 0;
  std::optional<int> passes_;  // of each layer in a step, as ranges tell
  bool has_unequal_passes_ = false;
  KinetoReport report_;
};

class ProfileMaker {
 public:
  ProfileMaker(const TraceCollector& traces, const KinetoOptions& options)
      : traces_(traces), options_(options), import_{{}, traces.report()} {}

  KinetoImport make() {
    import_.profile.model = options_.model;
    find_micro_batch_size();
    const std::vector<WeightFacts> weights = list_weights();
    const auto tied = find_tied_layers(weights);
    for (std::size_t l = 0; l < tied.size(); ++l) {
      add_layer(traces_.layers()[l], tied[l].has_value());
    }
    import_.profile.layers.back().has_loss = true;
    add_edges();
    for (std::string& sentence : add_tied_weights(weights, import_.profile)) {
      import_.report.notes.push_back(std::move(sentence));
    }
    note_update();
    note("backward nodes that compute both gradients: half I, half W, by rule",
         import_.profile.backward_was_split_by_rule);
    note("parameter bytes unknown (1 stands for some): record with record_shapes=True",
         has_unknown_parameters_);
    note("boundary and stash bytes unknown (0): record with record_shapes=True",
         has_unknown_boundaries_);
    note_doubts();
    add_optimizer_state();
    return std::move(import_);
  }

 private:
  void find_micro_batch_size() {
    const std::int64_t rows = traces_.rows_read();
    import_.report.micro_batch_size = static_cast<int>(std::min(rows, kMostRows));
    if (options_.micro_batch_size) {
      import_.report.micro_batch_size = *options_.micro_batch_size;
      note("the first layer reads another number of rows than --micro-batch-size",
           rows > 0 && rows != *options_.micro_batch_size);
      return;
    }
    if (rows == 0) {
      throw InputError("command line", 0, "no --micro-batch-size",
                       "the samples of a micro-batch, which the trace does not tell");
    }
    doubt(DoubtedFact::kMicroBatchSize, DoubtKind::kByRule,
          fmt::format("{}, the rows that the first layer reads", rows));
  }

  void doubt(DoubtedFact fact, DoubtKind kind, std::string reason) {
    note_doubt(import_.profile.doubts, {fact, kind, std::move(reason)});
  }

  void note_doubts() {
    if (has_unknown_parameters_) {
      doubt(DoubtedFact::kParameters, DoubtKind::kUnknown, "no shapes were recorded of some");
    }
    if (has_unknown_boundaries_) {
      doubt(DoubtedFact::kBoundaries, DoubtKind::kUnknown, "no shapes were recorded of some");
    }
    if (has_measured_stash_) return;
    if (has_boundaries_ && !has_unknown_boundaries_) {
      doubt(DoubtedFact::kStash, DoubtKind::kLowerBound, "each layer's input alone");
    } else {
      doubt(DoubtedFact::kStash, DoubtKind::kUnknown,
            "neither memory nor all shapes were recorded");
    }
  }

  // Gives each layer with parameters the state of the optimizer that was named, by the user or else
  // by the trace.
  void add_optimizer_state() {
    const OptimizerState state = find_optimizer_state(options_.optimizer, traces_.optimizers());
    for (Layer& layer : import_.profile.layers) {
      layer.optimizer_state = layer.parameters * state.tensors;
    }
    if (state.doubt) {
      doubt(DoubtedFact::kOptimizerState, *state.doubt, state.reason);
    } else if (has_unknown_parameters_) {
      doubt(DoubtedFact::kOptimizerState, DoubtKind::kUnknown, "parameters are not known");
    }
  }

  void note(const char* text, bool holds) {
    if (holds) import_.report.notes.emplace_back(text);
  }

  void note_update() {
    const std::vector<Layer>& layers = import_.profile.layers;
    const bool has_update = std::any_of(layers.begin(), layers.end(), [](const Layer& layer) {
      return layer.update > Duration{0};
    });
    const auto is_unknown = [](const LayerStep& step) { return step.has_unknown_parameters; };
    const bool by_tensors =
        std::any_of(traces_.layers().begin(), traces_.layers().end(),
                    [&](const LayerSamples& layer) { return layer.any(is_unknown); });
    note("the update is shared among layers by parameter tensors", has_update && by_tensors);
    note("the update is shared among layers by parameter bytes", has_update && !by_tensors);
  }

  std::vector<WeightFacts> list_weights() const {
    std::vector<WeightFacts> weights;
    for (const LayerSamples& samples : traces_.layers()) {
      const auto largest = [](const LayerStep& step) { return step.largest_parameter; };
      const auto open = [](const LayerStep& step) { return step.unaccumulated; };
      weights.push_back(
          {samples.median_of(largest), samples.median_of(open) / import_.report.micro_batches});
    }
    return weights;
  }

  // `has_copy`: one of its weights is another layer's, and is added later.
  void add_layer(const LayerSamples& samples, bool has_copy) {
    Layer layer;
    layer.name = samples.name;
    layer.block = BlockId{import_.profile.layers.size()};
    import_.profile.blocks.push_back(samples.name);
    const bool is_trained =
        samples.any([](const LayerStep& step) { return step.weight_nodes > 0; });
    layer.parameters = {is_trained ? parameters_of(samples, has_copy) : 0};
    layer.update = Duration{samples.median_of([](const LayerStep& step) { return step.update; })};
    CostSample cost;
    cost.micro_batch_size = import_.report.micro_batch_size;
    const auto per_pass = [&](auto value) {
      return Duration{samples.median_of(value) / import_.report.micro_batches};
    };
    cost.forward = per_pass([](const LayerStep& step) { return step.forward; });
    cost.forward_frozen = cost.forward;
    const bool is_first = is_trained && !std::exchange(has_trained_layer_, true);
    const auto input = [&](const LayerStep& step) {
      std::int64_t part = is_first ? 0 : step.input;
      if (!is_first) add_saturating(part, is_trained ? step.both / 2 : step.both);
      return part;
    };
    cost.backward_input = per_pass(input);
    // W is the median of the whole backward less the median of I. It is not negative: in no step is
    // a part larger than the whole, so in no median either.
    const Duration backward = per_pass([](const LayerStep& step) {
      std::int64_t whole = step.input;
      add_saturating(whole, step.weight);
      add_saturating(whole, step.both);
      return whole;
    });
    cost.backward_weight = backward - cost.backward_input;
    cost.backward_weight_alone = cost.backward_weight;
    const bool was_split =
        is_trained && !is_first && samples.any([](const LayerStep& step) { return step.both > 0; });
    if (was_split) import_.profile.backward_was_split_by_rule = true;
    cost.stash = {std::max<std::int64_t>(samples.median_of([](const LayerStep& step) {
      return step.stash;
    }) / import_.report.micro_batches,
                                         0)};
    const auto is_measured = [](const LayerStep& step) { return step.stash >= 0; };
    has_measured_stash_ = has_measured_stash_ || samples.any(is_measured);
    layer.costs.push_back(cost);
    import_.profile.layers.push_back(std::move(layer));
  }

  std::int64_t parameters_of(const LayerSamples& samples, bool has_copy) {
    const bool is_unknown =
        samples.any([](const LayerStep& step) { return step.has_unknown_parameters; });
    const std::int64_t bytes = samples.median_of([](const LayerStep& step) {
      return step.parameter_bytes;
    }) / import_.report.micro_batches;
    if (!is_unknown && (bytes > 0 || has_copy)) return bytes;
    has_unknown_parameters_ = true;
    return kSomeParameters;
  }

  void add_edges() {
    ModelProfile& profile = import_.profile;
    for (std::size_t i = 0; i + 1 < profile.layers.size(); ++i) {
      const std::int64_t bytes =
          traces_.layers()[i].median_of([](const LayerStep& step) { return step.output_bytes; });
      const bool is_known = bytes >= 0;
      (is_known ? has_boundaries_ : has_unknown_boundaries_) = true;
      const std::int64_t samples = import_.report.micro_batch_size;
      const Bytes per_sample{is_known ? bytes / samples + (bytes % samples > 0 ? 1 : 0) : 0};
      profile.edges.push_back({LayerId{i}, LayerId{i + 1}, EdgeKind::kGradient, {per_sample}});
      if (!has_measured_stash_) {
        profile.layers[i + 1].costs.front().stash = {is_known ? bytes : 0};
      }
    }
  }

  const TraceCollector& traces_;
  const KinetoOptions& options_;
  KinetoImport import_;
  bool has_trained_layer_ = false;
  bool has_unknown_parameters_ = false;
  bool has_unknown_boundaries_ = false;
  bool has_boundaries_ = false;
  bool has_measured_stash_ = false;
};

Provenance describe_origin(const std::vector<std::filesystem::path>& traces,
                           const KinetoReport& report) {
  std::string names;
  for (const std::filesystem::path& trace : traces) {
    names += (names.empty() ? "" : ", ") + to_one_line(trace.filename().string());
  }
  std::string notes;
  for (const std::string& note : report.notes) notes += (notes.empty() ? "" : "; ") + note;
  Provenance origin = {{"command", "frazil import kineto"},
                       {"traces", names},
                       {"steps", fmt::format("median of {}", report.steps)},
                       {"time", report.is_device_time ? "device" : "host"},
                       {"rules", notes}};
  if (report.step_spread) {
    origin["step_spread"] = fmt::format("{:.1f} %", 100 * *report.step_spread);
  }
  return origin;
}

}  // namespace

KinetoImport import_kineto(const std::vector<std::filesystem::path>& traces,
                           const KinetoOptions& options) {
  ENSURE(!traces.empty() && options.micro_batch_size.value_or(1) >= 1 &&
             options.micro_batches.value_or(1) >= 1,
         "at least one trace, sample and micro-batch");
  TraceCollector collector(options);
  for (const std::filesystem::path& trace : traces) collector.add(trace);
  KinetoImport import = ProfileMaker(collector, options).make();
  import.profile.provenance = describe_origin(traces, import.report);
  validate(import.profile, traces.front().string());
  return import;
}

}  // namespace frazil
