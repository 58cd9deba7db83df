#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "analysis/compare.h"
#include "analysis/html/html_report.h"
#include "analysis/run_answer.h"
#include "analysis/svg/svg_run.h"
#include "analysis/tables/cache_table.h"
#include "analysis/tables/drift_table.h"
#include "analysis/tables/table.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/flags.h"
#include "profiles/error.h"
#include "profiles/text_file.h"
#include "traces/timeline_csv.h"

namespace {

namespace po = boost::program_options;
using frazil::ExitCode;
using frazil::InputError;

constexpr const char* kUsage =
    "frazil report FOLDER... [--title TEXT] [--out FILE] [--svg FILE] [--json]\n"
    "       frazil report --predicted FILE --measured FILE [--json]";

ExitCode compare_files(const po::variables_map& values) {
  for (const char* flag : {"predicted", "measured"}) {
    if (values.count(flag) == 0) {
      throw InputError("command line", 0, fmt::format("no --{}", flag),
                       "--predicted and --measured together");
    }
  }
  for (const char* flag : {"folder", "title", "out", "svg"}) {
    if (values.count(flag) > 0) {
      throw InputError("command line", 0, fmt::format("--{} beside --predicted", flag),
                       "either folders of runs or two time lines");
    }
  }
  const frazil::Comparison comparison =
      frazil::compare(frazil::read_prediction(values["predicted"].as<std::string>()),
                      frazil::read_measured_steps(values["measured"].as<std::string>()));
  frazil::print_answer(values.count("json") > 0 ? frazil::to_json(comparison)
                                                : frazil::to_text(comparison));
  return ExitCode::kOk;
}

// Lists the files that training left in the folders, which a report never replaces.
std::vector<frazil::NamedFile> list_files(const std::vector<std::string>& folders) {
  namespace fs = std::filesystem;
  std::vector<frazil::NamedFile> files;
  for (const fs::path folder : folders) {
    for (const char* const name :
         {"trace.jsonl", "events.jsonl", "weights.safetensors", "inputs/flags.json",
          "inputs/run.json", "inputs/model.json", "inputs/cluster.json", "inputs/plan.json",
          "inputs/masks.jsonl"}) {
      files.push_back({"a run", folder / name});
    }
    std::size_t phase = 0;
    for (fs::path place; fs::is_directory(place = folder / fmt::format("phase-{}", phase));
         ++phase) {
      for (const char* const name :
           {"plan.json", "predicted.csv", "measured.csv", "memory.json", "trace.json"}) {
        files.push_back({"a run", place / name});
      }
    }
  }
  return files;
}

// Names the files that the page links to as they lie from the page.
void link_from(const std::filesystem::path& page, frazil::ReportRun& run) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::absolute(page, error).parent_path();
  for (frazil::ReportPhase& phase : run.phases) {
    if (phase.trace_file.empty()) continue;
    phase.trace_file = std::filesystem::relative(phase.trace_file, folder, error);
  }
}

ExitCode write_page(const po::variables_map& values) {
  if (values.count("folder") == 0) {
    throw InputError("command line", 0, "no folder", "the folder of a run, or --predicted");
  }
  const std::string out = values.count("out") > 0 ? values["out"].as<std::string>() : "report.html";
  const std::string picture = values.count("svg") > 0 ? values["svg"].as<std::string>() : "";
  std::vector<frazil::NamedFile> outputs{{"--out", out}};
  if (values.count("svg") > 0) outputs.push_back({"--svg", picture});
  frazil::refuse_overwriting(list_files(values["folder"].as<std::vector<std::string>>()), outputs);
  std::vector<frazil::ReportRun> runs;
  std::vector<frazil::RunSummary> summaries;
  std::vector<std::string> notes;
  for (const std::string& folder : values["folder"].as<std::vector<std::string>>()) {
    runs.push_back(frazil::read_run(folder));
    summaries.push_back(frazil::summarize(runs.back()));
    if (const std::string note = tell_interrupted(summaries.back()); !note.empty()) {
      notes.push_back(runs.back().name + ": " + note);
    }
    if (const std::string& bits = summaries.back().other_bits; !bits.empty()) {
      notes.push_back(runs.back().name + ": " + bits);
    }
    if (const std::string& check = summaries.back().model_check; !check.empty()) {
      notes.push_back(runs.back().name + ": " + check);
    }
  }
  const std::string title =
      values.count("title") > 0 ? values["title"].as<std::string>() : "Training report";
  if (!picture.empty() && runs.size() != 1) {
    throw InputError("command line", 0, fmt::format("--svg beside {} folders", runs.size()),
                     "one run, which the picture is of");
  }
  for (frazil::ReportRun& run : runs) link_from(std::filesystem::path(out), run);
  std::string answer;
  if (values.count("json") > 0) {
    answer = frazil::to_json(summaries);
  } else {
    for (std::size_t i = 0; i < summaries.size(); ++i) {
      answer += frazil::to_text(summaries[i]);
      const frazil::Table cache = frazil::tabulate_cache(runs[i].trace);
      if (!cache.rows.empty()) answer += frazil::to_text(cache);
      const frazil::Table drift = frazil::tabulate_drift(runs[i].trace);
      if (!drift.rows.empty()) answer += frazil::to_text(drift);
      answer += "\n";
    }
  }
  frazil::write_and_answer(
      [&] {
        frazil::write_text_file(out, frazil::to_html(title, notes, runs));
        if (!picture.empty()) frazil::write_text_file(picture, frazil::draw_run(runs.front()));
      },
      answer);
  fmt::print(stderr, "wrote {}\n", frazil::to_one_line(out));
  if (!picture.empty()) fmt::print(stderr, "wrote {}\n", frazil::to_one_line(picture));
  return ExitCode::kOk;
}

}  // namespace

int main(int argc, char** argv) {
  po::options_description options("flags");
  options.add_options()("folder", po::value<std::vector<std::string>>()->value_name("FOLDER"),
                        "what a training run left; the word --folder may be dropped")(
      "title", po::value<std::string>()->value_name("TEXT"), "heading of the page")(
      "out", po::value<std::string>()->value_name("FILE"), "the page, report.html unless named")(
      "svg", po::value<std::string>()->value_name("FILE"),
      "also a picture of one run: freezing, and steps as predicted and as measured")(
      "predicted", po::value<std::string>()->value_name("FILE"), "time line of one predicted step")(
      "measured", po::value<std::string>()->value_name("FILE"), "time line of measured steps")(
      "json", "print one JSON answer instead of tables");
  return frazil::run_verb(
      {.name = "report",
       .purpose = "Lays predictions and measurements of runs side by side on one page.",
       .usage = kUsage,
       .words = "folder"},
      argc, argv, options, [](const po::variables_map& values) {
        const bool two_files = values.count("predicted") > 0 || values.count("measured") > 0;
        return two_files ? compare_files(values) : write_page(values);
      });
}
