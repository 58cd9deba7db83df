#include "exec/config/data_config_json.h"

#include <system_error>
#include <vector>

#include "exec/config/run_config_names.h"
#include "exec/data/random_hierarchy.h"
#include "profiles/error.h"
#include "profiles/json.h"

namespace frazil {
namespace {

constexpr int kLargestSamples = 100'000'000;
constexpr int kMostLevels = 20;
constexpr int kMostSymbols = 1 << 10;
constexpr int kMostPercent = 90;
constexpr int kDigitImage = 8;
constexpr int kDigitClasses = 10;

void take_generated(JsonFields& fields, DataConfig& data) {
  take(fields, "train_samples", 1, kLargestSamples, data.train_samples);
  take(fields, "test_samples", 1, kLargestSamples, data.test_samples);
  take_seed(fields, data.seed);
}

// Takes a path or a list of them.
std::vector<std::string> read_paths(const JsonCursor& value) {
  std::vector<std::string> paths;
  if (!value.is_array()) {
    paths.push_back(value.text());
  } else {
    for (const JsonCursor& item : value.items()) paths.push_back(item.text());
  }
  if (paths.empty()) value.fail("no file", "at least one");
  return paths;
}

std::vector<double> read_numbers(const JsonCursor& value, double least) {
  std::vector<double> numbers;
  for (const JsonCursor& item : value.items()) {
    numbers.push_back(item.real(least, kLargestNumber));
  }
  return numbers;
}

Normalization parse_normalization(const JsonCursor& object) {
  Normalization normalization;
  JsonFields fields(object);
  const JsonCursor mean = fields.required("mean");
  const JsonCursor deviation = fields.required("deviation");
  normalization.mean = read_numbers(mean, -kLargestNumber);
  normalization.deviation = read_numbers(deviation, 0);
  fields.finish();
  for (const double value : normalization.deviation) {
    if (value == 0) deviation.fail("0 in \"deviation\"", "more than 0");
  }
  if (normalization.mean.empty() || normalization.mean.size() != normalization.deviation.size()) {
    deviation.fail(std::to_string(normalization.mean.size()) + " means and " +
                       std::to_string(normalization.deviation.size()) + " deviations",
                   "one of each for each channel");
  }
  return normalization;
}

TensorFiles parse_files(JsonFields& fields) {
  TensorFiles files;
  files.train = read_paths(fields.required("train"));
  files.test = read_paths(fields.required("test"));
  if (const Given validation = fields.optional("validation")) {
    files.validation = read_paths(*validation);
  }
  if (const Given normalization = fields.optional("normalization")) {
    files.normalization = parse_normalization(*normalization);
  }
  return files;
}

// Throws unless the samples that the model reads are what the digits are.
void expect_digits(const Given& model, const SampleForm& form) {
  if (!model) return;  // the default model reads them
  const std::string otherwise = ", or data of kind \"synthetic\"";
  JsonFields fields(*model);
  if (const Given path = fields.optional("path")) {
    const bool fits = form.tells_images_apart() &&
                      form.inputs == image_form(1, kDigitImage, form.classes).inputs &&
                      form.classes >= kDigitClasses;
    if (fits) return;
    path->fail(path->describe(),
               "a model of 8 x 8 images of one channel and of ten classes or more, for the digits");
  }
  if (!form.reads_images()) {
    blame({fields.optional("kind")}, "a model that reads images, for the digits" + otherwise);
  }
  const std::vector<std::int64_t>& shape = form.inputs.front().shape;
  if (shape.back() != kDigitImage) {
    blame({fields.optional("image")}, "8, the size of a digit" + otherwise);
  }
  if (shape.front() != 1) {
    blame({fields.optional("channels")}, "1, the grey of a digit" + otherwise);
  }
  if (form.classes < kDigitClasses) {
    blame({fields.optional("classes")}, "10 or more for ten digits" + otherwise);
  }
}

// Adds the members of the kinds that are generated.
void add_generated(Members& members, const DataConfig& data) {
  members.emplace_back("train_samples", std::to_string(data.train_samples));
  members.emplace_back("test_samples", std::to_string(data.test_samples));
  members.emplace_back("seed", seed_text(data.seed));
}

std::string list_text(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + text;
  return "[" + list + "]";
}

std::string paths_text(const std::vector<std::string>& paths) {
  std::vector<std::string> texts;
  for (const std::string& path : paths) texts.push_back(json_string(path));
  return list_text(texts);
}

std::string numbers_text(const std::vector<double>& numbers) {
  std::vector<std::string> texts;
  for (const double number : numbers) texts.push_back(number_text(number));
  return list_text(texts);
}

void add_files(Members& members, const TensorFiles& files) {
  members.emplace_back("train", paths_text(files.train));
  members.emplace_back("test", paths_text(files.test));
  if (!files.validation.empty()) members.emplace_back("validation", paths_text(files.validation));
  const Normalization& normalization = files.normalization;
  if (normalization.mean.empty()) return;
  members.emplace_back("normalization",
                       object_text({{"mean", numbers_text(normalization.mean)},
                                    {"deviation", numbers_text(normalization.deviation)}}));
}

// Returns the file of the digits: beside the programs of an installed tree, wherever that was
// moved, else in the checkout that was built.
std::filesystem::path shipped_digits() {
  constexpr const char* kFile = "digits.csv.gz";
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path installed =
      program.parent_path().parent_path() / "share" / "frazil" / "data" / kFile;
  if (!error && std::filesystem::exists(installed, error)) return installed;
  return std::filesystem::path(FRAZIL_DATA_FOLDER) / kFile;
}

std::string absolute(const std::string& path, const std::filesystem::path& place) {
  return (place / path).lexically_normal().string();
}

}  // namespace

DataConfig parse_data(const JsonCursor& object) {
  DataConfig data;
  JsonFields fields(object);
  data.kind = static_cast<DataConfig::Kind>(take_name(fields, "kind", kDataKinds));
  switch (data.kind) {
    case DataConfig::Kind::kDigits:
      if (const Given path = fields.optional("path")) data.path = path->text();
      break;
    case DataConfig::Kind::kSynthetic:
      take_generated(fields, data);
      break;
    case DataConfig::Kind::kRandomHierarchy:
      take(fields, "levels", 1, kMostLevels, data.hierarchy.levels);
      take(fields, "symbols", 2, kMostSymbols, data.hierarchy.symbols);
      take(fields, "synonyms", 1, kLargestCount, data.hierarchy.synonyms);
      take(fields, "branching", 2, kMostSymbols, data.hierarchy.branching);
      take_generated(fields, data);
      break;
    case DataConfig::Kind::kTensors:
      data.files = parse_files(fields);
      break;
  }
  const Given percent =
      take(fields, "validation_percent", 0, kMostPercent, data.validation_percent);
  if (data.validation_percent > 0 && !data.files.validation.empty()) {
    percent->fail(percent->describe(), "0 beside \"validation\"");
  }
  fields.finish();
  return data;
}

std::string to_json(const DataConfig& data) {
  Members members{{"kind", name_text(kDataKinds, static_cast<std::size_t>(data.kind))}};
  switch (data.kind) {
    case DataConfig::Kind::kDigits:
      members.emplace_back("path", json_string(data.path));
      break;
    case DataConfig::Kind::kSynthetic:
      add_generated(members, data);
      break;
    case DataConfig::Kind::kRandomHierarchy:
      members.emplace_back("levels", std::to_string(data.hierarchy.levels));
      members.emplace_back("symbols", std::to_string(data.hierarchy.symbols));
      members.emplace_back("synonyms", std::to_string(data.hierarchy.synonyms));
      members.emplace_back("branching", std::to_string(data.hierarchy.branching));
      add_generated(members, data);
      break;
    case DataConfig::Kind::kTensors:
      add_files(members, data.files);
      break;
  }
  members.emplace_back("validation_percent", std::to_string(data.validation_percent));
  return object_text(members);
}

void expect_fitting(const DataConfig& data, const SampleForm& form, const ModelAndData& objects) {
  switch (data.kind) {
    case DataConfig::Kind::kDigits:
      return expect_digits(objects.model, form);
    case DataConfig::Kind::kSynthetic: {
      if (form.tells_images_apart() || form.tells_tokens_apart()) return;
      const JsonCursor kind = JsonFields(*objects.data).required("kind");
      kind.fail(kind.describe(),
                "\"tensors\" for a model whose samples are no images and no texts of classes");
    }
    case DataConfig::Kind::kRandomHierarchy: {
      const std::int64_t samples = std::int64_t{data.train_samples} + data.test_samples;
      const std::optional<std::string> lacking = find_lacking(data.hierarchy, samples, form);
      const JsonCursor kind = JsonFields(*objects.data).required("kind");
      if (lacking) kind.fail(kind.describe(), *lacking);
      return;
    }
    case DataConfig::Kind::kTensors: {
      const std::size_t channels = data.files.normalization.mean.size();
      if (channels == 0) return;
      const bool fits = form.reads_images() &&
                        form.inputs.front().shape.front() == static_cast<std::int64_t>(channels);
      if (fits) return;
      const JsonCursor means = JsonFields(*objects.data).required("normalization");
      means.fail("a normalization of " + std::to_string(channels) + " channels",
                 "one for each channel of the images that the model reads");
    }
  }
}

void find_files(DataConfig& data, const std::filesystem::path& place) {
  switch (data.kind) {
    case DataConfig::Kind::kDigits:
      data.path = data.path.empty() ? shipped_digits().lexically_normal().string()
                                    : absolute(data.path, place);
      return;
    case DataConfig::Kind::kSynthetic:
    case DataConfig::Kind::kRandomHierarchy:
      return;
    case DataConfig::Kind::kTensors:
      for (auto* const paths : {&data.files.train, &data.files.test, &data.files.validation}) {
        for (std::string& path : *paths) path = absolute(path, place);
      }
      return;
  }
}

}  // namespace frazil
