// Serves steps of an imported model on one device, and of a model of the choice in C++ that has the
// same parameters, both from the start values of the model file and on the same samples.
// tests/bench/imported/measure.py asks for them in pairs, and puts those of stock PyTorch beside
// them. Each line of standard input asks for one thing, and is answered by a line of JSON:
//   imported N, built-in N   N steps: {"seconds": of one, "losses": of each}
//   read                     the file read and the model made: {"seconds": ...}

#include <cstdio>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "exec/devices/kernel_choice.h"
#include "exec/measuring/process_memory.h"
#include "exec/models/choice/model_choice.h"
#include "exec/models/imported/imported_model.h"
#include "exec/run/run.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/flags.h"
#include "profiles/error.h"
#include "profiles/json.h"
#include "tests/bench/support/bench_flags.h"
#include "tests/bench/support/bench_run.h"

namespace {

namespace po = boost::program_options;
using namespace frazil;
using Batch = std::vector<Samples>;  // by micro-batch

constexpr double kLearningRate = 1e-4;

struct Options {
  std::string model;
  std::string samples;
  std::optional<ModelChoice> built_in;
  BenchPlan plan;
};

po::options_description describe_flags() {
  return describe_bench_flags(
      {{"model", "model file"},
       {"samples", "safetensors file with the model's inputs by name and labels"},
       {"built-in", "\"model\" of a run configuration: the same model in C++"},
       {"batch", "samples of a step, default 32"},
       {"micro-batches", "of a step, a divisor of the batch, default 4"}});
}

Options read_options(const Flags& flags) {
  Options options{.model = required_text(flags, "model"),
                  .samples = required_text(flags, "samples"),
                  .built_in = std::nullopt,
                  .plan = {}};
  if (const auto text = optional_text(flags, "built-in")) {
    options.built_in = parse_model(parse_json(*text, "--built-in"), {});
  }
  options.plan.batch_size = integer_or(flags, "batch", 32, 1, 1 << 20);
  options.plan.micro_batches = integer_or(flags, "micro-batches", 4, 1, options.plan.batch_size);
  if (options.plan.batch_size % options.plan.micro_batches != 0) {
    refuse_flags("--micro-batches " + std::to_string(options.plan.micro_batches),
                 "a divisor of " + std::to_string(options.plan.batch_size));
  }
  return options;
}

// Cuts the file's samples into whole batches.
std::vector<Batch> read_batches(const ImportedGraph& graph, const Options& options) {
  const TensorFile file(options.samples);
  Samples all;
  for (const ImportedInput& input : graph.inputs) all.inputs.push_back(file.copy(input.name));
  all.labels = file.copy("labels");
  const std::int64_t size = options.plan.batch_size / options.plan.micro_batches;
  std::vector<Batch> batches;
  for (std::int64_t b = 0; b < all.count() / options.plan.batch_size; ++b) {
    Batch& batch = batches.emplace_back();
    for (std::int64_t m = 0; m < options.plan.micro_batches; ++m) {
      batch.push_back(narrow(all, b * options.plan.batch_size + m * size, size));
    }
  }
  ENSURE(!batches.empty(), "the file has samples for a step");
  return batches;
}

// Gives a model the start values of another one, parameter by parameter.
void take_values(ModelSpec& model, const ModelSpec& from) {
  std::vector<const ParameterSpec*> given;
  for (const LayerSpec& layer : from.layers) {
    for (const ParameterSpec& parameter : layer.parameters) given.push_back(&parameter);
  }
  std::size_t next = 0;
  for (LayerSpec& layer : model.layers) {
    for (ParameterSpec& parameter : layer.parameters) {
      const bool is_same = next < given.size() && given[next]->shape == parameter.shape;
      ENSURE(is_same, "both models have the same parameters: " + parameter.name);
      parameter.value = given[next++]->value;
    }
  }
  ENSURE(next == given.size(), "both models have the same parameters");
}

class Training {
 public:
  Training(ModelSpec model, const BenchPlan& plan, const std::vector<Batch>& batches)
      : run_(std::move(model), optimizer(), /*seed=*/1, /*devices=*/1), batches_(batches) {
    run_.transition_to(make_bench_plan(run_.structure(), plan));
  }

  nlohmann::json take_steps(int count) {
    std::vector<double> losses;
    const SteadyTime start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i, ++step_) {
      const Batch& batch = batches_[static_cast<std::size_t>(step_) % batches_.size()];
      losses.push_back(run_.step(step_, kLearningRate, batch).loss);
    }
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    return {{"seconds", elapsed.count() / count}, {"losses", losses}};
  }

 private:
  static OptimizerConfig optimizer() {
    OptimizerConfig adamw;
    adamw.weight_decay = 0;
    return adamw;
  }

  Run run_;
  const std::vector<Batch>& batches_;
  Step step_ = 0;
};

std::shared_ptr<const ImportedModel> read_model(const std::string& path) {
  return std::make_shared<const ImportedModel>(read_model_file(path));
}

nlohmann::json time_reading(const std::string& path) {
  const SteadyTime start = std::chrono::steady_clock::now();
  const ModelSpec model = make_imported(read_model(path));
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  std::int64_t parameters = 0;
  for (const LayerSpec& layer : model.layers) {
    for (const ParameterSpec& parameter : layer.parameters) parameters += parameter.value.numel();
  }
  return {{"seconds", elapsed.count()}, {"parameters", parameters}};
}

ExitCode serve(const Flags& flags) {
  const Options options = read_options(flags);
  const std::shared_ptr<const ImportedModel> file = read_model(options.model);
  const std::vector<Batch> batches = read_batches(file->graph, options);
  const ModelSpec imported = make_imported(file);
  std::map<std::string, Training> trainings;
  trainings.try_emplace("imported", imported, options.plan, batches);
  if (options.built_in) {
    ModelSpec same = make_model(*options.built_in);
    take_values(same, imported);
    trainings.try_emplace("built-in", std::move(same), options.plan, batches);
  }
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string side;
    int count = 1;
    words >> side >> count;
    const auto training = trainings.find(side);
    if (training == trainings.end() && side != "read") {
      throw InputError("standard input", 0, line, "imported N, built-in N or read");
    }
    const nlohmann::json answer = training == trainings.end() ? time_reading(options.model)
                                                              : training->second.take_steps(count);
    std::printf("%s\n", answer.dump().c_str());
    std::fflush(stdout);
  }
  return ExitCode::kOk;
}

}  // namespace

int main(int argc, char** argv) {
  prepare_kernels();
  keep_freed_memory();
  const Verb verb{"bench_imported_steps", "Serves steps of an imported model on one device.",
                  "bench_imported_steps --model FILE --samples FILE [--built-in JSON]"};
  return run_verb(verb, argc, argv, describe_flags(), serve);
}
