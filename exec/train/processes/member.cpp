#include "exec/train/processes/member.h"

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "exec/cache/prefix_cache.h"
#include "exec/communication/load_nccl.h"
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
#include "exec/train/processes/gloo_world.h"
#include "exec/train/processes/member_setup.h"
#include "exec/train/processes/run_world.h"

namespace frazil {
namespace {

void refuse_other_bits(const MemberSetup& setup, const RunConfig& config, const Dataset& data) {
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
  const std::string files = describe_files(config);
  if (files != setup.files) {
    throw InputError("a member of the run", 0, "files with the hashes " + files,
                     "those of the leader, " + setup.files);
  }
}

// The links have a place for each process that may come; none over Gloo.
std::shared_ptr<PeerLinks> make_links(const MemberSetup& setup, std::vector<PeerSockets> peers) {
  if (setup.gloo_port != 0) return nullptr;
  peers.resize(static_cast<std::size_t>(setup.process_of.back()) + 1);
  return std::make_shared<PeerLinks>(std::move(peers));
}

RunWorld::Join join_as(int process, const MemberSetup& setup, std::shared_ptr<PeerLinks> links,
                       const ProcessHosts& hosts) {
  if (setup.gloo_port == 0) {
    return join_over_links(std::move(links), process, setup.has_core_per_rank);
  }
  const int processes = setup.process_of.back() + 1;
  return join_over_gloo(follow_by_gloo(hosts, setup.gloo_port, process, processes));
}

// What the member makes of the leader's setup.
class MemberRun {
 public:
  MemberRun(int process, const MemberSetup& setup, std::vector<PeerSockets> peers, LateSockets late,
            const ProcessHosts& hosts)
      : config_(parse_run_config(setup.config, "run configuration of the leader")),
        data_(load_data(config_)),
        loader_(data_.train, loader_config(config_)),
        probe_(probe_of(data_.train)),
        options_(run_options(config_, {.kind = setup.kind, .gpus = setup.gpus})),
        links_(make_links(setup, std::move(peers))),
        join_(join_as(process, setup, links_, hosts)),
        connect_(connect_over_links(links_, std::move(late))) {
    refuse_other_bits(setup, config_, data_);
    PoolPlace place = place_of(setup.process_of, process);
    place.has_core_per_rank = setup.has_core_per_rank;
    if (setup.speaks_nccl) {
      bind_nccl(hosts.own);
      place.nccl = &load_nccl();
    }
    if (setup.has_core_per_rank)
      keep_to_cores(place.first.index(), static_cast<std::size_t>(place.count));
    pool_ = std::make_unique<DevicePool>(make_model(config_), config_.optimizer, config_.seed,
                                         place, options_);
    if (config_.cache.is_on()) make_cache();
  }

  DevicePool& pool() { return *pool_; }
  const RunOptions& options() const { return options_; }

  MemberSource source() {
    return {
        .micro_batches = [this](const SampleRange& range) { return loader_.take(range); },
        .cache_numbers = [this](const SampleRange& range) { return loader_.cache_numbers(range); },
        .part = [this](SamplePart part) -> const SampleSource& { return samples_of(part); },
        .join = join_,
        .connect = connect_,
        .expect = [this](const SampleRange& range) { loader_.expect(range); }};
  }

 private:
  void make_cache() {
    const ModelSpec& model = pool_->model();
    cache_.emplace(model, example_outputs(model, data_.train.narrow(0, 1)), data_.train.count(),
                   files_, cache_options(config_, /*over_processes=*/true));
    pool_->attach(*cache_);
  }

  const SampleSource& samples_of(SamplePart part) const {
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
  SampleSource probe_;
  RunOptions options_;
  std::shared_ptr<PeerLinks> links_;
  RunWorld::Join join_;
  RunWorld::Connect connect_;
  FileSystem files_ = real_file_system();
  std::optional<PrefixCache> cache_;  // outlives the pool, which uses it
  std::unique_ptr<DevicePool> pool_;
};

}  // namespace

StopMessage serve_run(int process, Descriptor control, std::vector<PeerSockets> peers,
                      LateSockets late) {
  const ProcessHosts hosts = find_hosts(control);
  std::atomic<DevicePool*> pool{nullptr};
  ControlMember member(std::move(control), [&pool](const std::string& sentence) {
    if (DevicePool* const devices = pool.load()) devices->abort(sentence);
  });
  std::unique_ptr<MemberRun> run;
  const std::optional<OrderMessage> first = member.next();
  if (!first) return *member.stopped();
  try {
    const auto setup = decode<MemberSetup>(std::get<SetupJob>(decode<Job>(first->job)).setup);
    run = std::make_unique<MemberRun>(process, setup, std::move(peers), std::move(late), hosts);
    pool.store(&run->pool());
    member.answer(first->number, encode(Done{}));
  } catch (...) {
    const FailureMessage failure = tell_failure(first->number);
    member.fail(failure);
    (void)member.next();
    return member.stopped().value_or(
        StopMessage{static_cast<int>(ExitCode::kFailure), failure.sentence});
  }
  const StopMessage stop = serve(run->pool(), member, run->source(), run->options());
  pool.store(nullptr);
  return stop;
}

}  // namespace frazil
