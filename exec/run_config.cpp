#include "exec/run_config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <numbers>
#include <utility>
#include <vector>

#include "profiles/error.h"
#include "profiles/json.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

constexpr std::string_view kFormat = "frazil.run";
constexpr int kVersion = 1;
constexpr int kLargestCount = 1 << 20;  // of epochs, widths, samples in a batch
constexpr int kLargestSamples = 100'000'000;
constexpr int kLargestSteps = 1'000'000'000;
constexpr double kLargestNumber = 1e9;
constexpr int kDigitImage = 8;
constexpr int kDigitClasses = 10;

// Names by enumerator.
constexpr std::array<std::string_view, 2> kDataKinds{"digits", "synthetic"};
constexpr std::array<std::string_view, 2> kOptimizerKinds{"adamw", "sgd"};
constexpr std::array<std::string_view, 2> kReductionModes{"exact", "fast"};
constexpr std::array<std::string_view, 2> kMessageOrders{"by-tag", "as-sent"};

// What the file gives for a key, if it does.
using Given = std::optional<JsonCursor>;

Given take(JsonFields& fields, const std::string& key, int minimum, int maximum, int& value) {
  Given given = fields.optional(key);
  if (given) value = static_cast<int>(given->integer(minimum, maximum));
  return given;
}

void take_seed(JsonFields& fields, std::uint64_t& seed) {
  const Given given = fields.optional("seed");
  if (given) seed = static_cast<std::uint64_t>(given->integer(0, kLargestQuantity));
}

enum class Range { kPositive, kNotNegative, kFraction };

// kPositive leaves out 0, kFraction leaves out 1.
void take(JsonFields& fields, const std::string& key, Range range, double& value) {
  const Given given = fields.optional(key);
  if (!given) return;
  value = given->real(0, range == Range::kFraction ? 1 : kLargestNumber);
  if (range == Range::kPositive && value == 0) given->fail(given->describe(), "more than 0");
  if (range == Range::kFraction && value == 1) given->fail(given->describe(), "less than 1");
}

// The first name where the key is left out: the default of every such field.
std::size_t take_name(JsonFields& fields, const std::string& key,
                      const std::array<std::string_view, 2>& names) {
  const Given given = fields.optional(key);
  if (!given) return 0;
  const auto name = std::find(names.begin(), names.end(), given->text());
  if (name == names.end()) {
    given->fail(given->describe(), json_string(names[0]) + " or " + json_string(names[1]));
  }
  return static_cast<std::size_t>(name - names.begin());
}

// Two keys that do not go together: the error stands at the first of them that the file gives.
// The defaults go together, so the file gives one.
[[noreturn]] void blame(std::initializer_list<Given> keys, const std::string& expected) {
  for (const Given& key : keys) {
    if (key) key->fail(key->describe(), expected);
  }
  ENSURE(false, "defaults do not go together");
}

std::string with_value(const std::string& name, int value) {
  return name + " (" + std::to_string(value) + ")";
}

DataConfig parse_data(const JsonCursor& object) {
  DataConfig data;
  JsonFields fields(object);
  data.kind = static_cast<DataConfig::Kind>(take_name(fields, "kind", kDataKinds));
  switch (data.kind) {
    case DataConfig::Kind::kDigits:
      if (const Given path = fields.optional("path")) data.path = path->text();
      break;
    case DataConfig::Kind::kSynthetic:
      take(fields, "train_samples", 1, kLargestSamples, data.train_samples);
      take(fields, "test_samples", 1, kLargestSamples, data.test_samples);
      take_seed(fields, data.seed);
      break;
  }
  fields.finish();
  return data;
}

VitConfig parse_model(const JsonCursor& object, DataConfig::Kind data) {
  VitConfig model;
  JsonFields fields(object);
  const Given image = take(fields, "image", 1, kLargestCount, model.image);
  const Given channels = take(fields, "channels", 1, kLargestCount, model.channels);
  const Given patch = take(fields, "patch", 1, kLargestCount, model.patch);
  const Given dim = take(fields, "dim", 1, kLargestCount, model.dim);
  take(fields, "blocks", 1, kLargestCount, model.blocks);
  const Given heads = take(fields, "heads", 1, kLargestCount, model.heads);
  const Given classes = take(fields, "classes", 2, kLargestCount, model.classes);
  take(fields, "dropout", Range::kFraction, model.dropout);
  fields.finish();
  if (model.image % model.patch != 0) {
    blame({patch, image},
          with_value("image", model.image) + " divisible by " + with_value("patch", model.patch));
  }
  if (model.dim % model.heads != 0) {
    blame({heads, dim},
          with_value("dim", model.dim) + " divisible by " + with_value("heads", model.heads));
  }
  if (data == DataConfig::Kind::kDigits) {
    const std::string otherwise = ", or data of kind \"synthetic\"";
    if (model.image != kDigitImage) blame({image}, "8, the size of a digit" + otherwise);
    if (model.channels != 1) blame({channels}, "1, the grey of a digit" + otherwise);
    if (model.classes < kDigitClasses) blame({classes}, "10 or more for ten digits" + otherwise);
  }
  return model;
}

OptimizerConfig parse_optimizer(const JsonCursor& object) {
  OptimizerConfig optimizer;
  JsonFields fields(object);
  optimizer.kind = static_cast<OptimizerConfig::Kind>(take_name(fields, "kind", kOptimizerKinds));
  take(fields, "learning_rate", Range::kPositive, optimizer.learning_rate);
  take(fields, "weight_decay", Range::kNotNegative, optimizer.weight_decay);
  switch (optimizer.kind) {
    case OptimizerConfig::Kind::kAdamW:
      take(fields, "beta1", Range::kFraction, optimizer.beta1);
      take(fields, "beta2", Range::kFraction, optimizer.beta2);
      take(fields, "epsilon", Range::kPositive, optimizer.epsilon);
      break;
    case OptimizerConfig::Kind::kSgd:
      take(fields, "momentum", Range::kFraction, optimizer.momentum);
      break;
  }
  if (const Given cosine = fields.optional("cosine")) optimizer.cosine = cosine->boolean();
  take(fields, "warm_up_steps", 0, kLargestSteps, optimizer.warm_up_steps);
  take(fields, "clip_norm", Range::kNotNegative, optimizer.clip_norm);
  fields.finish();
  return optimizer;
}

RunConfig::Freeze parse_freeze(const JsonCursor& object) {
  RunConfig::Freeze freeze;
  JsonFields fields(object);
  take(fields, "alpha", Range::kFraction, freeze.alpha);
  take(fields, "start_epoch", 1, kLargestCount, freeze.start_epoch);
  take(fields, "interval_epochs", 1, kLargestCount, freeze.interval_epochs);
  fields.finish();
  return freeze;
}

std::string number_text(double value) {
  ENSURE(value >= 0 && value <= kLargestNumber, "a number that a file can hold");
  std::array<char, 32> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

std::string seed_text(std::uint64_t seed) {
  ENSURE(seed <= static_cast<std::uint64_t>(kLargestQuantity), "a seed that a file can hold");
  return std::to_string(seed);
}

using Members = std::vector<std::pair<std::string, std::string>>;

std::string object_text(const Members& members) {
  std::string text;
  for (const auto& [key, value] : members) {
    text += (text.empty() ? "{" : ", ") + json_string(key) + ": " + value;
  }
  return text + "}";
}

std::string name_text(const std::array<std::string_view, 2>& names, std::size_t index) {
  return json_string(names.at(index));
}

std::string to_json(const VitConfig& model) {
  return object_text({{"image", std::to_string(model.image)},
                      {"channels", std::to_string(model.channels)},
                      {"patch", std::to_string(model.patch)},
                      {"dim", std::to_string(model.dim)},
                      {"blocks", std::to_string(model.blocks)},
                      {"heads", std::to_string(model.heads)},
                      {"classes", std::to_string(model.classes)},
                      {"dropout", number_text(model.dropout)}});
}

std::string to_json(const DataConfig& data) {
  Members members{{"kind", name_text(kDataKinds, static_cast<std::size_t>(data.kind))}};
  switch (data.kind) {
    case DataConfig::Kind::kDigits:
      members.emplace_back("path", json_string(data.path));
      break;
    case DataConfig::Kind::kSynthetic:
      members.emplace_back("train_samples", std::to_string(data.train_samples));
      members.emplace_back("test_samples", std::to_string(data.test_samples));
      members.emplace_back("seed", seed_text(data.seed));
      break;
  }
  return object_text(members);
}

std::string to_json(const OptimizerConfig& optimizer) {
  Members members{{"kind", name_text(kOptimizerKinds, static_cast<std::size_t>(optimizer.kind))},
                  {"learning_rate", number_text(optimizer.learning_rate)},
                  {"weight_decay", number_text(optimizer.weight_decay)}};
  switch (optimizer.kind) {
    case OptimizerConfig::Kind::kAdamW:
      members.emplace_back("beta1", number_text(optimizer.beta1));
      members.emplace_back("beta2", number_text(optimizer.beta2));
      members.emplace_back("epsilon", number_text(optimizer.epsilon));
      break;
    case OptimizerConfig::Kind::kSgd:
      members.emplace_back("momentum", number_text(optimizer.momentum));
      break;
  }
  members.emplace_back("cosine", optimizer.cosine ? "true" : "false");
  members.emplace_back("warm_up_steps", std::to_string(optimizer.warm_up_steps));
  members.emplace_back("clip_norm", number_text(optimizer.clip_norm));
  return object_text(members);
}

std::string to_json(const RunConfig::Freeze& freeze) {
  return object_text({{"alpha", number_text(freeze.alpha)},
                      {"start_epoch", std::to_string(freeze.start_epoch)},
                      {"interval_epochs", std::to_string(freeze.interval_epochs)}});
}

}  // namespace

RunConfig parse_run_config(std::string_view text, const std::string& file) {
  RunConfig config;
  JsonFields fields(parse_json(text, file));
  expect_format(fields, std::string(kFormat), kVersion);
  const Given model = fields.optional("model");
  if (const Given data = fields.optional("data")) config.data = parse_data(*data);
  if (model) config.model = parse_model(*model, config.data.kind);
  if (const Given optimizer = fields.optional("optimizer")) {
    config.optimizer = parse_optimizer(*optimizer);
  }
  take(fields, "epochs", 1, kLargestCount, config.epochs);
  const Given batch = take(fields, "batch_size", 1, kLargestCount, config.batch_size);
  const Given micro_batch =
      take(fields, "micro_batch_size", 1, kLargestCount, config.micro_batch_size);
  take_seed(fields, config.seed);
  if (const Given freeze = fields.optional("freeze")) config.freeze = parse_freeze(*freeze);
  config.reduction = static_cast<ReductionMode>(take_name(fields, "reduction", kReductionModes));
  config.message_order =
      static_cast<MessageOrder>(take_name(fields, "message_order", kMessageOrders));
  take(fields, "deadline_seconds", Range::kPositive, config.deadline_seconds);
  fields.finish();
  if (config.micro_batch_size > config.batch_size) {
    blame({micro_batch, batch}, with_value("micro_batch_size", config.micro_batch_size) +
                                    " no larger than " +
                                    with_value("batch_size", config.batch_size));
  }
  return config;
}

std::string to_json(const RunConfig& config) {
  const Members members{
      {"format", json_string(kFormat)},
      {"version", std::to_string(kVersion)},
      {"model", to_json(config.model)},
      {"data", to_json(config.data)},
      {"optimizer", to_json(config.optimizer)},
      {"epochs", std::to_string(config.epochs)},
      {"batch_size", std::to_string(config.batch_size)},
      {"micro_batch_size", std::to_string(config.micro_batch_size)},
      {"seed", seed_text(config.seed)},
      {"freeze", to_json(config.freeze)},
      {"reduction", name_text(kReductionModes, static_cast<std::size_t>(config.reduction))},
      {"message_order", name_text(kMessageOrders, static_cast<std::size_t>(config.message_order))},
      {"deadline_seconds", number_text(config.deadline_seconds)}};
  std::string text;
  for (const auto& [key, value] : members) {
    text += (text.empty() ? "{\n  " : ",\n  ") + json_string(key) + ": " + value;
  }
  return text + "\n}\n";
}

RunConfig read_run_config(const std::filesystem::path& path) {
  RunConfig config = parse_run_config(read_text_file(path), path.string());
  if (config.data.kind != DataConfig::Kind::kDigits) return config;
  const std::filesystem::path data =
      config.data.path.empty() ? std::filesystem::path(FRAZIL_DATA_FOLDER) / "digits.csv.gz"
                               : std::filesystem::absolute(path).parent_path() / config.data.path;
  config.data.path = data.lexically_normal().string();
  return config;
}

FreezePolicy freeze_policy(const RunConfig& config, Step steps_per_epoch) {
  ENSURE(steps_per_epoch >= 1 && steps_per_epoch <= kLargestQuantity / kLargestCount,
         "an epoch of at least one step");
  if (config.freeze.alpha == 0) return NoFreeze{};
  return AlphaFreeze{.alpha = config.freeze.alpha,
                     .start = (config.freeze.start_epoch - 1) * steps_per_epoch,
                     .interval = config.freeze.interval_epochs * steps_per_epoch};
}

double learning_rate(const OptimizerConfig& config, Step step, Step steps) {
  ENSURE(steps >= 1 && step >= 0 && step <= steps, "a step within its run");
  const Step warm_up = config.warm_up_steps;
  if (step < warm_up) {
    return config.learning_rate * static_cast<double>(step + 1) / static_cast<double>(warm_up);
  }
  // A run that the warm-up fills has nothing left to fall over.
  if (!config.cosine || steps == warm_up) return config.learning_rate;
  const double progress =
      static_cast<double>(step - warm_up) / static_cast<double>(steps - warm_up);
  return config.learning_rate * (1 + std::cos(std::numbers::pi * progress)) / 2;
}

}  // namespace frazil
