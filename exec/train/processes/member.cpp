#include "exec/train/processes/member.h"

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "exec/communication/process_communicator.h"
#include "exec/config/configured_data.h"
#include "exec/config/configured_run.h"
#include "exec/control/control_member.h"
#include "exec/data/sample_loader.h"
#include "exec/devices/cores.h"
#include "exec/devices/kernel_facts.h"
#include "exec/run/jobs/job_codec.h"
#include "exec/run/jobs/member_faults.h"
#include "exec/run/jobs/serve_pool.h"
#include "exec/train/freeze_control.h"
#include "exec/train/processes/member_setup.h"
#include "exec/train/processes/run_world.h"

namespace frazil {
namespace {

void refuse_other_bits(const MemberSetup& setup, const Dataset& data) {
  const std::string own = describe(present_kernels());
  if (own != setup.kernels) {
    throw InputError("a member of the run", 0, "kernels " + own,
                     "those of the leader, " + setup.kernels +
                         ": with others the processes would compute other bits");
  }
  if (hash_data(data) != setup.data_hash) {
    throw InputError("a member of the run", 0, "other samples in the data that the run names",
                     "those of the leader");
  }
}

// What the member makes of the leader's setup.
class MemberRun {
 public:
  MemberRun(int process, const MemberSetup& setup, std::vector<PeerSockets> peers)
      : config_(parse_run_config(setup.config, "run configuration of the leader")),
        data_(load_data(config_)),
        loader_(data_.train, loader_config(config_)),
        probe_(probe_of(data_.train)),
        options_(run_options(config_, {.kind = setup.kind, .gpus = setup.gpus})),
        join_(join_over_links(std::move(peers), process, setup.has_core_per_rank)) {
    refuse_other_bits(setup, data_);
    PoolPlace place = place_of(setup.process_of, process);
    place.has_core_per_rank = setup.has_core_per_rank;
    if (setup.has_core_per_rank)
      keep_to_cores(place.first.index(), static_cast<std::size_t>(place.count));
    pool_ = std::make_unique<DevicePool>(make_model(config_), config_.optimizer, config_.seed,
                                         place, options_);
  }

  DevicePool& pool() { return *pool_; }
  const RunOptions& options() const { return options_; }

  MemberSource source() {
    return {
        .micro_batches = [this](const SampleRange& range) { return take(range); },
        .cache_numbers = [this](const SampleRange& range) { return loader_.cache_numbers(range); },
        .part = [this](SamplePart part) -> const Samples& { return samples_of(part); },
        .join = join_};
  }

 private:
  // Returns the samples of a step, and begins to make those that most likely come next, as the
  // leader does.
  std::vector<Samples> take(const SampleRange& range) {
    std::vector<Samples> taken = loader_.take(range);
    SampleRange next{
        .epoch = range.epoch, .first = range.first + range.count, .count = range.count};
    if (next.first + next.count > data_.train.count()) {
      next = {.epoch = range.epoch + 1, .first = 0, .count = range.count};
    }
    loader_.expect(next);
    return taken;
  }
  const Samples& samples_of(SamplePart part) const {
    switch (part) {
      case SamplePart::kTest:
        return data_.test;
      case SamplePart::kValidation:
        return data_.validation;
      case SamplePart::kProbe:
        return probe_;
    }
    return data_.test;
  }

  RunConfig config_;
  Dataset data_;
  SampleLoader loader_;
  Samples probe_;
  RunOptions options_;
  RunWorld::Join join_;
  std::unique_ptr<DevicePool> pool_;
};

}  // namespace

ExitCode serve_run(int process, Descriptor control, std::vector<PeerSockets> peers) {
  std::atomic<DevicePool*> pool{nullptr};
  ControlMember member(std::move(control), [&pool](const std::string& sentence) {
    if (DevicePool* const devices = pool.load()) devices->abort(sentence);
  });
  std::unique_ptr<MemberRun> run;
  const std::optional<OrderMessage> first = member.next();
  if (!first) return static_cast<ExitCode>(member.stopped()->code);
  try {
    const auto setup = decode<MemberSetup>(std::get<SetupJob>(decode<Job>(first->job)).setup);
    run = std::make_unique<MemberRun>(process, setup, std::move(peers));
    pool.store(&run->pool());
    member.answer(first->number, encode(Done{}));
  } catch (...) {
    member.fail(tell_failure(first->number));
    (void)member.next();
    return member.stopped() ? static_cast<ExitCode>(member.stopped()->code) : ExitCode::kFailure;
  }
  const StopMessage stop = serve(run->pool(), member, run->source(), run->options());
  pool.store(nullptr);
  return static_cast<ExitCode>(stop.code);
}

}  // namespace frazil
