#include "analysis/check/check_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/check/compare_events.h"
#include "analysis/check/hash_stream.h"
#include "analysis/check/stored_journal.h"
#include "analysis/check/stored_keys.h"
#include "analysis/check/stored_tensors.h"
#include "analysis/check/stored_weights.h"
#include "planner/plan/plan_json.h"
#include "profiles/error.h"
#include "profiles/text_file.h"
#include "traces/freeze_trace.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

std::vector<fs::path> list_sorted(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder, error)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string count(std::size_t number, const std::string& noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

class Checker {
 public:
  explicit Checker(fs::path folder)
      : folder_(std::move(folder)), checkpoints_(folder_ / "checkpoints") {}

  RunCheck check() {
    if (is_there(checkpoints_ / "steps.journal")) check_journal();
    check_keys();
    check_kernels();
    for (const fs::path& path : list_sorted(checkpoints_)) check_checkpoint(path);
    check_log();
    check_trace();
    check_plans();
    check_phases();
    check_weights();
    check_absent();
    if (has_ended()) check_ended();
    note_kept_aside();
    if (check_.parts.empty()) {
      throw InputError(folder_.string(), 0, "a folder without a run",
                       "the folder that `frazil train --out` was given");
    }
    return std::move(check_);
  }

 private:
  void complain(const fs::path& path, const std::string& sentence) {
    check_.problems.push_back(
        fmt::format("{}: {}", path.lexically_relative(folder_).string(), sentence));
  }
  // Calls `read` and keeps what is wrong with the file.
  bool try_reading(const std::function<void()>& read) {
    try {
      read();
      return true;
    } catch (const InputError& error) {
      complain(error.file(), fmt::format("found {}", error.found()));
      return false;
    }
  }

  void check_journal() {
    const fs::path path = checkpoints_ / "steps.journal";
    if (!try_reading([&] { journal_ = read_stored_journal(path); })) return;
    for (const std::string& problem : journal_->problems) complain(path, problem);
    for (const std::string& note : journal_->notes) {
      check_.notes.push_back("checkpoints/steps.journal: " + note);
    }
    check_.steps = journal_->steps;
    check_.parts.emplace_back("journal",
                              fmt::format("{}, weights after {} of them",
                                          count(static_cast<std::size_t>(journal_->steps), "step"),
                                          journal_->weights.size()));
    for (const Step step : journal_->other_bits_from) {
      check_.notes.push_back(fmt::format("bits were allowed to differ from step {} on", step));
    }
  }

  void check_keys() {
    const fs::path path = checkpoints_ / "run.json";
    if (!is_there(path)) return;
    StoredKeys keys;
    if (!try_reading([&] { keys = read_stored_keys(path); })) return;
    if (!keys.holds) return complain(path, "its hash does not hold");
    if (is_journal_whole() && journal_->run_hash != keys.run_hash) {
      complain(path, "it is of another run than the journal");
    }
  }

  void check_kernels() {
    const fs::path path = checkpoints_ / "kernels.json";
    if (!is_there(path)) return;
    StoredKernels kernels;
    if (!try_reading([&] { kernels = read_stored_kernels(path); })) return;
    check_.parts.emplace_back("kernels", kernels.words);
    if (!kernels.holds) return complain(path, "its hash does not hold");
    if (is_journal_whole() && journal_->kernels != 0 && journal_->kernels != kernels.last_hash) {
      complain(path, "it names other kernels than the journal");
    }
  }

  void check_checkpoint(const fs::path& path) {
    const std::string name = path.filename().string();
    // Files of other programs may lie there, too.
    constexpr std::size_t kNameSize = std::string_view("step-000000000000.safetensors").size();
    if (!name.starts_with("step-") || !name.ends_with(".safetensors")) return;
    if (name.size() != kNameSize) return;
    StoredCheckpoint read;
    if (!try_reading([&] { read = read_stored_checkpoint(path); })) return;
    const std::string step = fmt::format("{:012}", read.step);
    if (name != "step-" + step + ".safetensors") {
      return complain(path, fmt::format("it is the checkpoint of step {}", read.step));
    }
    check_.checkpoints[read.step] = read.weights_hash;
    check_.parts.emplace_back(fmt::format("checkpoint {}", read.step),
                              "weights " + hex_text(read.weights_hash));
    model_hash_ = read.model_hash;
    names_ = read.names;
    if (is_journal_whole()) compare(path, read);
  }

  void compare(const fs::path& path, const StoredCheckpoint& read) {
    if (read.run_hash != journal_->run_hash)
      complain(path, "it is of another run than the journal");
    if (read.step > journal_->steps) {
      complain(path, fmt::format("the journal ends after {} steps", journal_->steps));
    }
    const auto weights = journal_->weights.find(read.step);
    if (weights == journal_->weights.end()) {
      check_.notes.push_back(
          fmt::format("the journal has no hash of the weights after {} steps", read.step));
    } else if (weights->second != read.weights_hash) {
      complain(path, fmt::format("its weights have the hash {}, in the journal {}",
                                 hex_text(read.weights_hash), hex_text(weights->second)));
    }
    const auto last = journal_->records.find(read.step - 1);
    if (last != journal_->records.end() && last->second.mask_hash != hash_of(read.mask)) {
      complain(path, fmt::format("its mask {} is not that of step {} in the journal", read.mask,
                                 read.step - 1));
    }
  }

  void check_log() {
    const fs::path path = folder_ / "events.jsonl";
    if (!is_there(path)) return;
    FreezeTrace log;
    const bool is_read = try_reading([&] {
      std::string text = read_text_file(path);
      const std::size_t whole = text.rfind('\n') + 1;
      if (whole < text.size() && has_ended()) {
        complain(path, "its last line is torn, and the run has ended");
      } else if (whole < text.size()) {
        check_.notes.push_back("events.jsonl: its last line is torn, as a crash leaves it");
      }
      text.resize(whole);
      log = parse_freeze_trace(text, path.string());
    });
    if (!is_read) return;
    if (!model_hash_.empty() && log.model_hash != model_hash_) {
      complain(path, "it is of another model than the checkpoints");
    }
    add_phases(log);
    if (model_hash_.empty()) model_hash_ = log.model_hash;
    const ComparedEvents compared =
        compare_events(log, is_journal_whole() ? &*journal_ : nullptr, has_ended());
    for (const std::string& problem : compared.problems) complain(path, problem);
    for (const std::string& note : compared.notes) check_.notes.push_back("events.jsonl: " + note);
    check_.parts.emplace_back(
        "events", count(static_cast<std::size_t>(compared.end) - compared.missing, "step"));
    if (!journal_) check_.steps = compared.end;
  }

  void check_trace() {
    const fs::path path = folder_ / "trace.jsonl";
    if (!has_ended()) return;
    FreezeTrace trace;
    if (!try_reading([&] { trace = read_freeze_trace(path); })) return;
    if (!model_hash_.empty() && trace.model_hash != model_hash_) {
      complain(path, "it is of another model than the run");
    }
    if (is_journal_whole() && trace.steps != journal_->steps) {
      complain(path, fmt::format("it is of {} steps, and the journal ends after {}", trace.steps,
                                 journal_->steps));
    }
    add_phases(trace);
  }

  // Keeps the phases whose plans are named. Where a log was damaged a plan has no file.
  void add_phases(const FreezeTrace& log) {
    for (const FreezeEvent& event : log.events) {
      const auto* const begun = std::get_if<PlanEvent>(&event.what);
      if (begun == nullptr || !begun->plan.starts_with("phase-")) continue;
      phases_.insert(folder_ / fs::path(begun->plan).parent_path());
    }
  }

  // Nothing else tells which stages and devices a phase had, so a plan can only be read.
  void check_plans() {
    for (const fs::path& phase : list_sorted(folder_)) {
      const fs::path path = phase / "plan.json";
      if (!phase.filename().string().starts_with("phase-") || !is_there(path)) continue;
      Plan plan;
      if (!try_reading([&] { plan = read_plan(path); })) continue;
      if (!model_hash_.empty() && plan.model_hash != model_hash_) {
        complain(path, "it is of another model than the run");
      }
    }
  }

  // Each phase comes whole, but a run without checkpoints writes none before it ends.
  void check_phases() {
    for (const fs::path& phase : phases_) {
      if (!is_there(phase)) {
        if (has_ended()) complain(phase, "it is not there, and the run has ended");
        continue;
      }
      std::vector<std::string> missing;
      for (const char* const name : {"plan.json", "predicted.csv", "measured.csv"}) {
        if (!is_there(phase / name)) missing.emplace_back(name);
      }
      if (missing.empty()) continue;
      complain(phase, fmt::format("it is incomplete, without {}", fmt::join(missing, ", ")));
    }
  }

  void check_weights() {
    const fs::path path = folder_ / "weights.safetensors";
    if (!is_there(path)) return;
    StoredWeights read;
    if (!try_reading([&] { read = read_stored_weights(path, names_); })) return;
    std::from_chars(read.steps.data(), read.steps.data() + read.steps.size(), weights_after_);
    const std::string hash = read.has_known_order ? hex_text(read.hash) : "of no known order";
    const std::string part = read.part.empty() ? "" : fmt::format(" of the {} alone", read.part);
    check_.parts.emplace_back("weights",
                              fmt::format("{}{}, after {} steps", hash, part, read.steps));
    if (read.format != "pt") complain(path, "its format is not \"pt\"");
    if (!read.has_all_names) {
      complain(path, "its tensors have other names than those of the checkpoints");
    }
    // The journal has the hash of all that the run holds.
    if (!is_journal_whole() || !read.has_known_order || !read.part.empty()) return;
    const auto recorded = journal_->weights.find(weights_after_);
    if (recorded == journal_->weights.end()) {
      note_unrecorded(path, read.steps, read.hash);
    } else if (recorded->second != read.hash) {
      complain(path, fmt::format("they have the hash {}, in the journal {}", hex_text(read.hash),
                                 hex_text(recorded->second)));
    }
  }

  void note_unrecorded(const fs::path& path, const std::string& steps, std::uint64_t hash) {
    for (const auto& [step, recorded] : journal_->weights) {
      if (recorded != hash) continue;
      return complain(path, fmt::format("they say that they are of {} steps, and are those of {}",
                                        steps, step));
    }
    check_.notes.push_back(
        fmt::format("the journal has no hash of the weights after {} steps", steps));
  }

  // Finds what is gone: checkpoints and weights are only known to be the run's by its journal, and
  // the journal's last weights lie in a checkpoint or in the weights.
  void check_absent() {
    if (!check_.checkpoints.empty() && !journal_) {
      complain(checkpoints_ / "steps.journal", "it is not there, and checkpoints are");
    }
    if (!is_journal_whole()) return;
    if (weights_after_ > journal_->steps) {
      complain(folder_ / "weights.safetensors",
               fmt::format("they are of {} steps, and the journal ends after {}", weights_after_,
                           journal_->steps));
    }
    if (journal_->weights.empty()) return;
    const Step last = journal_->weights.rbegin()->first;
    if (!check_.checkpoints.contains(last) && weights_after_ != last) {
      const std::string words = fmt::format(
          "the weights after {} steps, which the journal has last, are in no file", last);
      // They are recorded before they are written, and a crash may come in between.
      if (has_ended()) {
        complain(checkpoints_, words);
      } else {
        check_.notes.push_back(words);
      }
    }
  }

  // Finds what only a run that has ended is sure to leave.
  void check_ended() {
    std::vector<fs::path> left{"events.jsonl", "weights.safetensors"};
    if (is_journal_whole() && journal_->kernels != 0) {
      left.insert(left.end(), {"checkpoints/kernels.json", "checkpoints/run.json"});
    }
    for (const fs::path& file : left) {
      if (is_there(folder_ / file)) continue;
      complain(folder_ / file, "it is not there, and the run has ended");
    }
  }

  void note_kept_aside() {
    for (const fs::path& place : {folder_, checkpoints_}) {
      for (const fs::path& path : list_sorted(place)) {
        if (path.filename().string().find(".damaged-") == std::string::npos) continue;
        check_.notes.push_back(fmt::format("{} was damaged and is kept aside",
                                           path.lexically_relative(folder_).string()));
      }
    }
  }

  bool has_ended() const { return is_there(folder_ / "trace.jsonl"); }
  bool is_journal_whole() const { return journal_ && journal_->problems.empty(); }

  fs::path folder_;
  fs::path checkpoints_;
  std::optional<StoredJournal> journal_;
  std::string model_hash_;          // of the newest checkpoint, or else of the events
  std::vector<std::string> names_;  // of the parameters of the newest checkpoint
  Step weights_after_ = 0;          // 0: there are no weights
  std::set<fs::path> phases_;       // whose plans events name
  RunCheck check_;
};

}  // namespace

RunCheck check_run(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    throw InputError(folder.string(), 0, is_there(folder) ? "a file" : "no such folder",
                     "the folder that `frazil train --out` was given");
  }
  return Checker(folder).check();
}

}  // namespace frazil
