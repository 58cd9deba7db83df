#include "exec/checkpoint/durable_run.h"

#include <ATen/ATen.h>
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdio>
#include <utility>

#include "exec/checkpoint/run_files.h"
#include "exec/checkpoint/run_keys.h"
#include "exec/devices/steady_time.h"
#include "exec/disk/hashes.h"
#include "profiles/error.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAccept = "--accept-other-kernels to go on with other bits";

std::unique_ptr<File> lock_folder(const DurableOptions& options, const RunIdentity& run) {
  make_folders(options.files, options.folder);
  auto lock = std::make_unique<File>(options.files, options.folder, O_RDONLY | O_DIRECTORY);
  if (!lock->try_lock()) {
    throw InputError(options.folder.string(), 0, "a run that another process is busy with",
                     "a folder of this process alone");
  }
  const std::vector<std::string> names = list_folder(options.files, options.folder);
  const bool holds_run = std::any_of(names.begin(), names.end(), tells_of_run);
  if (holds_run && !options.resume) {
    throw InputError(options.folder.string(), 0, "a run that was begun before",
                     "--resume to go on with it, or another folder");
  }
  if (holds_run) (void)check_keys(options.files, options.folder, run);
  return lock;
}

// Returns the kernels that the run was computed with; none: they are not known.
std::vector<RunKernels> find_kernels(const DurableOptions& options, const KernelFacts& present) {
  const auto recorded = options.resume ? read_kernels(options.files, options.folder) : std::nullopt;
  if (!recorded) return {};
  const KernelFacts& last = recorded->back().facts;
  if (!options.accept_other_kernels && !gives_same_bits(last, present)) {
    throw InputError(options.folder.string(), 0, "a run computed by " + describe(last),
                     describe(present) + ", as this process has, or " + kAccept);
  }
  return *recorded;
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
  return {copy_all(state.parameters),
          copy_all(state.first_moment),
          copy_all(state.second_moment),
          state.updates,
          copy_all(state.gradient_sums),
          {},
          {},
          copy_all(state.statistics)};
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
      present_(options_.kernels ? *options_.kernels : present_kernels()),
      kernels_(find_kernels(options_, present_)),
      checkpoints_(options_.files, options_.folder, model, identity, options_.keep),
      journal_(options_.files, options_.folder / kJournalFile, identity.run_hash,
               without_syncs(options_.journal)),
      jobs_(options_.in_background) {
  ENSURE(options_.every >= 1, "checkpoints are some steps apart");
  const bool has_begun = journal_.steps() > 0;
  if (!has_begun || !check_keys(options_.files, options_.folder, identity)) {
    write_keys(options_.files, options_.folder, identity);
  }
  begin_kernels();
}

// Makes file and journal name the same kernels, where one of them names none.
void DurableRun::begin_kernels() {
  const std::vector<JournalLine>& named = journal_.kernels();
  if (kernels_.empty() && named.empty() && options_.resume) return;  // restore() sees from where on
  if (kernels_.empty()) {
    const bool is_other = !named.empty() && named.back().value != hash_kernels(present_);
    if (is_other && options_.accept_other_kernels) return;  // they change when the run goes on
    if (is_other) {
      throw InputError(options_.folder.string(), 0,
                       "a run of other kernels, whose kernels.json does not tell which",
                       describe(present_) + ", as this process has, or " + kAccept);
    }
    kernels_ = {{named.empty() ? journal_.steps() : named.back().step, false, present_}};
    write_kernels(options_.files, options_.folder, kernels_);
  }
  if (named.empty()) {
    journal_.append_kernels(journal_.steps(), hash_kernels(kernels_.back().facts), false);
  }
}

// Of a run that names no kernels those of this process are known from its next new step on, or from
// this step on if other bits are accepted.
void DurableRun::begin_unknown_kernels(Step step) {
  if (!kernels_.empty() || !journal_.kernels().empty()) return;
  const Step recorded = journal_.steps();
  const bool breaks = options_.accept_other_kernels && step < recorded;
  kernels_ = {{breaks ? step : recorded, breaks, present_}};
  journal_.append_kernels(kernels_[0].from, hash_kernels(present_), breaks);
  journal_.sync();
  write_kernels(options_.files, options_.folder, kernels_);
  if (recorded == 0) return;
  notes_.push_back({"the run does not say which kernels computed its first " +
                        std::to_string(recorded) + " steps; it goes on with " + describe(present_),
                    true});
}

void DurableRun::note_journal() {
  if (journal_.found_version() != kJournalVersion) {
    notes_.push_back({"the journal was of version " + std::to_string(journal_.found_version()) +
                      ", which says nothing of weights and kernels, and is one of version " +
                      std::to_string(kJournalVersion) + " now"});
  }
  const std::string holds = "it holds " + std::to_string(journal_.recovered().size()) + " steps";
  if (!journal_.kept_aside().empty()) {
    notes_.push_back({"the journal was damaged and is kept as " + journal_.kept_aside() +
                          "; a new one has what holds of it: " + holds,
                      true});
  }
  if (journal_.cut_bytes() > 0) {
    notes_.push_back({"the last " + std::to_string(journal_.cut_bytes()) +
                      " bytes of the journal were torn and are cut; " + holds});
  }
}

// Goes on with the kernels of this process from this step on.
void DurableRun::enter_kernels(Step step) {
  const KernelFacts before = kernels_.empty() ? KernelFacts{} : kernels_.back().facts;
  const bool is_unknown =
      kernels_.empty() || (kernels_.size() == 1 && kernels_.front().from > step);
  // A process before has begun here on another processor, whose steps are done again.
  const bool is_tried = kernels_.size() > 1 && kernels_.back().from == step;
  if (is_unknown) doubt_ = "the run does not say which kernels computed that step";
  if (before == present_ && !((is_tried || is_unknown) && options_.accept_other_kernels)) return;
  const bool breaks = !gives_same_bits(before, present_) || options_.accept_other_kernels;
  // Steps that unknown kernels computed stay so where this process has to repeat their bits.
  const Step from = is_unknown && !breaks && !kernels_.empty() ? kernels_.front().from : step;
  std::vector<RunKernels> change{{from, breaks, present_}};
  if (!is_unknown) change.insert(change.begin(), {step, false, before});
  std::erase_if(kernels_, [step](const RunKernels& later) { return later.from > step; });
  kernels_.push_back(change.back());
  // Between the two a crash leaves the file as it was: the next process finds other kernels again.
  journal_.append_kernels(from, hash_kernels(present_), breaks);
  journal_.sync();
  write_kernels(options_.files, options_.folder, kernels_);
  if (breaks) doubt_ = "";
  if (!breaks && !is_unknown) doubt_ = "the processor is another one";
  notes_.push_back({breaks ? tell_other_bits(change)
                           : "the run goes on with the same kernels on another processor, " +
                                 present_.processor + ", before " + before.processor,
                    true});
}

std::optional<TrainingPosition> DurableRun::restore(Run& run) {
  note_journal();
  std::optional<CheckpointFolder::Found> found = checkpoints_.load(journal_.weights());
  const Step step = found ? found->checkpoint.position.step : 0;
  if (step > journal_.steps()) {
    notes_.push_back({"the journal has no records of the steps from " +
                          std::to_string(journal_.steps()) + " up to the checkpoint of step " +
                          std::to_string(step) + ", which holds without them",
                      true});
    journal_.append_lost(step);
  }
  begin_unknown_kernels(step);
  enter_kernels(step);
  if (!found) return std::nullopt;
  for (const std::string& text : found->passed_over) notes_.push_back({text, true});
  if (!journal_.weights().contains(step)) record_weights(step, found->checkpoint.layers);
  run.restore(std::move(found->checkpoint.layers));
  checkpoints_.prune(step);
  notes_.push_back({"the run goes on from the checkpoint of step " + std::to_string(step) +
                    ", doing " + std::to_string(journal_.steps() - step) + " steps again"});
  return std::move(found->checkpoint.position);
}

void DurableRun::record(Step step, double loss, const FreezeMask& mask) {
  jobs_.check();
  const JournalRecord record{step, std::bit_cast<std::uint64_t>(loss), hash_text(mask.text())};
  if (step >= journal_.steps()) {
    journal_.append(record);
    if (journal_.take_due()) jobs_.start([this] { journal_.sync(); });
    return;
  }
  const JournalRecord* const before = journal_.find(step);
  if (before == nullptr || *before == record) return;  // a lost record says nothing
  const std::string what =
      before->mask_hash != record.mask_hash
          ? "has the mask " + mask.text() + " where the journal recorded another"
          : "gave the loss " + loss_text(record.loss_bits) + " where the journal recorded " +
                loss_text(before->loss_bits);
  throw ReplayMismatch("step " + std::to_string(step) + ", done again, " + what +
                       ": the run is not continued" +
                       (doubt_.empty() ? "" : "; " + doubt_ + ": " + kAccept));
}

void DurableRun::record_weights(Step done, const Layers& layers) {
  std::vector<const LayerState*> pointers;
  for (const LayerState& layer : layers) pointers.push_back(&layer);
  const std::uint64_t hash = hash_weights(pointers);
  const auto before = journal_.weights().find(done);
  if (before == journal_.weights().end()) return journal_.append_weights(done, hash);
  if (before->second == hash) return;
  throw ReplayMismatch("the weights after " + std::to_string(done) +
                       " steps, done again, have the hash " + to_hex(hash) +
                       " where the journal recorded " + to_hex(before->second) +
                       ": the run is not continued");
}

void DurableRun::save(Run& run, const TrainingPosition& position) {
  jobs_.wait();  // one copy of the state at a time
  auto layers = std::make_shared<Layers>();
  for (const LayerState& layer : run.gather_states()) layers->push_back(copy(layer, memory_));
  record_weights(position.step, *layers);
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
