#include "analysis/guard/baseline_json.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "profiles/json.h"
#include "profiles/model_profile_json.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

constexpr const char* kBaselineFormat = "frazil.baseline";
constexpr int kBaselineVersion = 1;
constexpr double kLargestMedian = 1e18;
constexpr int kMostBlocks = 1'000'000'000;
constexpr std::int64_t kLargestSeed = 1'000'000'000;

constexpr GuardedKind kKept[] = {GuardedKind::kStep, GuardedKind::kLayer, GuardedKind::kLink,
                                 GuardedKind::kPrediction};

GuardedKind parse_kind(const JsonCursor& name) {
  for (const GuardedKind kind : kKept) {
    if (name_of(kind) == name.text()) return kind;
  }
  name.fail(name.describe(), R"("step", "layer", "link" or "prediction")");
}

GuardedValue parse_value(const JsonCursor& object) {
  GuardedValue value;
  JsonFields fields(object);
  value.kind = parse_kind(fields.required("kind"));
  value.name = fields.required("name").text();
  const JsonCursor median = fields.required("median");
  value.median = median.real(0, kLargestMedian);
  if (value.median == 0) median.fail(median.describe(), "more than 0");
  value.noise = fields.required("noise").real(0, kLargestMedian);
  value.blocks = static_cast<int>(fields.required("blocks").integer(1, kMostBlocks));
  fields.finish();
  return value;
}

std::string to_json(const GuardedValue& value) {
  return fmt::format(R"({{"kind": "{}", "name": {}, "median": {}, "noise": {}, "blocks": {}}})",
                     name_of(value.kind), json_string(value.name), value.median, value.noise,
                     value.blocks);
}

}  // namespace

std::string to_json(const Baseline& baseline) {
  std::string values;
  for (const GuardedValue& value : baseline.values) {
    values += (values.empty() ? "\n    " : ",\n    ") + to_json(value);
  }
  return fmt::format(
      "{{\"format\": \"{}\", \"version\": {},\n"
      "  \"question\": {},\n"
      "  \"fingerprint\": {},\n"
      "  \"seed\": {},\n"
      "  \"values\": [{}\n  ]}}\n",
      kBaselineFormat, kBaselineVersion, to_json(baseline.question), to_json(baseline.fingerprint),
      baseline.seed, values);
}

Baseline parse_baseline(std::string_view text, const std::string& file) {
  Baseline baseline;
  JsonFields fields(parse_json(text, file));
  expect_format(fields, kBaselineFormat, kBaselineVersion);
  baseline.question = parse_provenance(fields.required("question"));
  baseline.fingerprint = parse_provenance(fields.required("fingerprint"));
  baseline.seed = static_cast<std::uint64_t>(fields.required("seed").integer(0, kLargestSeed));
  const JsonCursor values = fields.required("values");
  std::set<std::pair<GuardedKind, std::string>> names;
  for (const JsonCursor& value : values.items()) {
    baseline.values.push_back(parse_value(value));
    const GuardedValue& last = baseline.values.back();
    if (!names.emplace(last.kind, last.name).second) {
      value.fail(fmt::format("{} \"{}\" again", name_of(last.kind), last.name), "each thing once");
    }
  }
  if (baseline.values.empty()) values.fail("nothing that was measured", "at least one value");
  fields.finish();
  return baseline;
}

Baseline read_baseline(const std::filesystem::path& path) {
  return parse_baseline(read_text_file(path), path.string());
}

void write_baseline(const Baseline& baseline, const std::filesystem::path& path) {
  write_text_file(path, to_json(baseline));
}

}  // namespace frazil
