#include "exec/checkpoint/durable_run.h"

#include <ATen/ATen.h>
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdio>
#include <utility>

#include "exec/checkpoint/run_keys.h"
#include "exec/devices/steady_time.h"
#include "exec/disk/hashes.h"
#include "profiles/error.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

constexpr const char* kJournal = "steps.journal";

std::unique_ptr<File> lock_folder(const DurableOptions& options, const RunIdentity& run) {
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
  if (holds_run) (void)check_keys(options.files, options.folder, run);
  return lock;
}

JournalOptions without_syncs(JournalOptions options) {
  options.syncs = false;
  return options;
}

// Returns a copy on the host that later steps do not change.
LayerState copy(const LayerState& state, const StateMemory& memory) {
  const auto copy_all = [&memory](const Tensors& tensors) {
    if (tensors.empty() || tensors.front().is_cpu()) return memory.copy(tensors);
    Tensors copies;
    for (const at::Tensor& tensor : tensors) copies.push_back(tensor.detach().cpu());
    return copies;
  };
  return {copy_all(state.parameters), copy_all(state.first_moment), copy_all(state.second_moment),
          state.updates, copy_all(state.gradient_sums)};
}

std::string loss_text(std::uint64_t bits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.17g (bits %s)", std::bit_cast<double>(bits),
                to_hex(bits).c_str());
  return text.data();
}

}  // namespace

DurableRun::DurableRun(const DurableOptions& options, const ModelSpec& model,
                       const RunIdentity& identity)
    : options_(options),
      lock_(lock_folder(options_, identity)),
      checkpoints_(options_.files, options_.folder, model, identity, options_.keep),
      journal_(options_.files, options_.folder / kJournal, identity.run_hash,
               without_syncs(options_.journal)),
      jobs_(options_.in_background) {
  ENSURE(options_.every >= 1, "checkpoints are some steps apart");
  const bool has_begun = journal_.steps() > 0;
  if (!has_begun || !check_keys(options_.files, options_.folder, identity)) {
    write_keys(options_.files, options_.folder, identity);
  }
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
  run.restore(std::move(found->checkpoint.layers));
  TrainingPosition position = std::move(found->checkpoint.position);
  checkpoints_.prune(position.step);
  notes_.push_back("the run goes on from the checkpoint of step " + std::to_string(position.step) +
                   ", doing " + std::to_string(recorded - position.step) + " steps again");
  return position;
}

void DurableRun::record(Step step, double loss, const FreezeMask& mask) {
  jobs_.check();
  const JournalRecord record{step, std::bit_cast<std::uint64_t>(loss), hash_text(mask.text())};
  if (step >= journal_.steps()) {
    journal_.append(record);
    if (journal_.take_due()) jobs_.start([this] { journal_.sync(); });
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
  jobs_.wait();  // one copy of the state at a time
  auto layers = std::make_shared<Layers>();
  for (const LayerState* const layer :
       first_holders(run.states(), static_cast<int>(run.model().layers.size()))) {
    layers->push_back(copy(*layer, memory_));
  }
  jobs_.start([this, position, layers] { write(position, *layers); });
}

void DurableRun::write(const TrainingPosition& position, const Layers& layers) {
  const auto start = std::chrono::steady_clock::now();
  journal_.sync();
  SavedCheckpoint saved{.step = position.step};
  std::vector<const LayerState*> pointers;
  for (const LayerState& layer : layers) pointers.push_back(&layer);
  try {
    checkpoints_.save(position, pointers);
  } catch (const InputError&) {
    saved.failure = std::current_exception();
  }
  saved.time = since(start);
  const std::lock_guard<std::mutex> lock(mutex_);
  saved_.push_back(std::move(saved));
}

std::vector<SavedCheckpoint> DurableRun::take_saved() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(saved_, {});
}

void DurableRun::finish() {
  jobs_.wait();
  journal_.sync();
}

}  // namespace frazil
