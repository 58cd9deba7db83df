#include "exec/checkpoint/durable_run.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <utility>

#include "exec/disk/hashes.h"
#include "profiles/error.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

constexpr const char* kJournal = "steps.journal";

std::unique_ptr<File> lock_folder(const DurableOptions& options) {
  make_folders(options.files, options.folder);
  auto lock = std::make_unique<File>(options.files, options.folder, O_RDONLY | O_DIRECTORY);
  if (!lock->try_lock()) {
    throw InputError(options.folder.string(), 0, "a run that another process is busy with",
                     "a folder of this process alone");
  }
  const std::vector<std::string> names = list_folder(options.files, options.folder);
  const bool holds_run = std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name == kJournal || name.starts_with("step-");
  });
  if (holds_run && !options.resume) {
    throw InputError(options.folder.string(), 0, "a run that was begun before",
                     "--resume to go on with it, or another folder");
  }
  return lock;
}

std::string loss_text(std::uint64_t bits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.17g (bits %s)", std::bit_cast<double>(bits),
                to_hex(bits).c_str());
  return text.data();
}

}  // namespace

void save_run(CheckpointFolder& folder, const Run& run, const TrainingPosition& position) {
  folder.save(position, first_holders(run.states(), static_cast<int>(run.model().layers.size())));
}

TrainingPosition load_run(Checkpoint checkpoint, Run& run) {
  run.restore(std::move(checkpoint.layers));
  return std::move(checkpoint.position);
}

DurableRun::DurableRun(const DurableOptions& options, const ModelSpec& model,
                       const RunIdentity& identity)
    : options_(options),
      lock_(lock_folder(options_)),
      checkpoints_(options_.files, options_.folder, model, identity, options_.keep),
      journal_(options_.files, options_.folder / kJournal, identity.run_hash, options_.journal) {
  ENSURE(options_.every >= 1, "checkpoints are some steps apart");
}

std::optional<TrainingPosition> DurableRun::restore(Run& run) {
  const Step recorded = journal_.steps();
  if (journal_.cut_bytes() > 0) {
    notes_.push_back("the last " + std::to_string(journal_.cut_bytes()) +
                     " bytes of the journal were torn and are cut; it holds " +
                     std::to_string(recorded) + " steps");
  }
  std::optional<CheckpointFolder::Found> found = checkpoints_.load(recorded);
  if (!found) return std::nullopt;
  notes_.insert(notes_.end(), found->passed_over.begin(), found->passed_over.end());
  TrainingPosition position = load_run(std::move(found->checkpoint), run);
  notes_.push_back("the run goes on from the checkpoint of step " + std::to_string(position.step) +
                   ", doing " + std::to_string(recorded - position.step) + " steps again");
  return position;
}

void DurableRun::record(Step step, double loss, const FreezeMask& mask) {
  const JournalRecord record{step, std::bit_cast<std::uint64_t>(loss), hash_text(mask.text())};
  if (step >= journal_.steps()) {
    journal_.append(record);
    return;
  }
  const auto place = static_cast<std::size_t>(step);
  ENSURE(place < journal_.recovered().size(), "a step is done again once");
  const JournalRecord& before = journal_.recovered()[place];
  if (before == record) return;
  const std::string what =
      before.mask_hash != record.mask_hash
          ? "has the mask " + mask.text() + " where the journal recorded another"
          : "gave the loss " + loss_text(record.loss_bits) + " where the journal recorded " +
                loss_text(before.loss_bits);
  throw ReplayMismatch("step " + std::to_string(step) + ", done again, " + what +
                       ": the run is not continued");
}

void DurableRun::save(const Run& run, const TrainingPosition& position) {
  journal_.sync();
  save_run(checkpoints_, run, position);
}

}  // namespace frazil
