#include "exec/run/run.h"

#include <algorithm>
#include <utility>

#include "exec/communication/in_process_communicator.h"
#include "exec/devices/steady_time.h"
#include "exec/run/jobs/member_faults.h"
#include "planner/plan/plan_json.h"
#include "profiles/error.h"

namespace frazil {

RunWorld one_process(int devices) {
  return {.place = {.devices = devices, .count = devices},
          .join = [devices](std::uint32_t, const std::vector<int>&,
                            const CommunicatorOptions& options) {
            return make_in_process_communicators(devices, options);
          }};
}

Run::Run(ModelSpec model, OptimizerConfig optimizer, std::uint64_t seed, int devices,
         const RunOptions& options)
    : Run(std::move(model), optimizer, seed, one_process(devices), options) {}

Run::Run(ModelSpec model, OptimizerConfig optimizer, std::uint64_t seed, RunWorld world,
         const RunOptions& options)
    : options_(options),
      home_of_(world.place.process_of),
      setup_(std::move(world.setup)),
      join_(std::move(world.join)),
      connect_(std::move(world.connect)),
      door_(std::move(world.door)),
      pool_(std::move(model), optimizer, seed, world.place, options) {
  if (!world.members.empty() || door_) {
    group_ = std::make_unique<ControlGroup>(
        [this](int process) { return name_of(process); },
        ControlGroup::Calls{.abort = [this](const std::string& sentence) { pool_.abort(sentence); },
                            .suspect = world.warn});
    for (auto& [process, socket] : world.members) group_->admit(process, std::move(socket));
    ask_done(SetupJob{setup_}, [] {});
  }
  enter_world();
}

void Run::ask_done(Job job, const std::function<void()>& own) {
  (void)ask<Done>(std::move(job), [&] {
    own();
    return Done{};
  });
}

// Returns what members have answered; throws the failure that explains the others.
std::vector<MemberReply> Run::collect(std::exception_ptr own_failure) {
  std::vector<MemberReply> replies = group_->collect();
  const std::optional<std::string> cause = group_->cause();
  if (!cause && !own_failure) {
    // What is committed is done. Who has failed since then may not have done it, and is out.
    for (const MemberReply& reply : replies) {
      if (!reply.failure) continue;
      group_->give_up(reply.process,
                      "has failed in a step that all others have done: " + reply.failure->sentence);
    }
    std::erase_if(replies, [](const MemberReply& reply) { return reply.failure.has_value(); });
    return replies;
  }
  throw_explaining(own_failure, replies, cause, group_->has_lost());
}

TransitionReport Run::transition_to(const Plan& plan) {
  TransitionReport report;
  SteadyTime now = std::chrono::steady_clock::now();
  const auto lap = [&now] {
    const Duration part = since(now);
    now += part;
    return part;
  };
  // The program is made before anything moves: a plan that cannot run must leave the old one in
  // force.
  pool_.prepare(plan);
  if (group_) {
    const std::uint64_t own = pool_.prepared_hash();
    for (const std::uint64_t hash :
         ask<std::uint64_t>(PrepareJob{to_json(plan)}, [own] { return own; })) {
      ENSURE(hash == own, "all processes make the same program of a plan");
    }
  }
  report.program_time = lap();
  try {
    for (const MoveReport& moved : ask<MoveReport>(TakeJob{}, [this] { return pool_.take(); })) {
      report.move += moved;
    }
    // What is lost before anybody adopts the plan leaves the old one in force; once the order is
    // out, all that live have the new one.
    if (group_ && group_->has_lost()) {
      throw StepUndone(group_->cause().value_or("a process of the run is lost"));
    }
  } catch (const StepUndone&) {
    pool_.revert();
    throw;
  }
  report.move_time = lap();
  ask_done(AdoptJob{}, [this] { pool_.adopt(); });
  report.executor_time = lap();
  use_cache();
  report.cache_time = lap();
  expect_step(kNoTime);
  return report;
}

// Processes of a host read each other's features, new ones too.
void Run::share_stores() {
  if (!group_ || shared_in_ == epoch_) return;
  std::vector<StoreOffer> offers =
      ask<StoreOffer>(OfferStoreJob{}, [this] { return pool_.offer_store(); });
  std::sort(offers.begin(), offers.end(),
            [](const StoreOffer& a, const StoreOffer& b) { return a.process < b.process; });
  ask_done(TakeStoreJob{offers}, [&] { pool_.take_store(offers); });
  shared_in_ = epoch_;
}

void Run::note(CacheTally tally) {
  for (const std::string& warning : std::exchange(tally.warnings, {})) {
    cache_warnings_.push_back(name_of(tally.process) + ": " + warning);
  }
  const auto before = cache_before_.find(tally.process);
  if (before != cache_before_.end()) add_done(tally, before->second);
  cache_tallies_[tally.process] = std::move(tally);
}

void Run::use_cache() {
  const auto cached = static_cast<std::size_t>(pool_.program().activity.cached);
  if (!pool_.has_cache()) return;
  share_stores();
  const std::vector<std::uint64_t> hashes =
      hash_by_layer(joined(ask<std::vector<LayerDigest>>(
                        CachedWeightsJob{}, [this] { return pool_.cached_weights(); })),
                    cached);
  const FeatureRoom room = pool_.room_for(hashes);
  for (CacheTally& tally :
       ask<CacheTally>(UseCacheJob{hashes, room}, [&] { return pool_.use_cache(hashes, room); })) {
    note(std::move(tally));
  }
}

void Run::restore(std::vector<LayerState> layers) {
  ask_done(RestoreJob{}, [&] { pool_.restore(std::move(layers)); });
}

// A wait lasts no longer than the window that it is in.
void Run::expect_step(Duration predicted, int window) {
  step_deadline_.begin_plan(predicted * window);
  limit_waits();
}

void Run::limit_waits() {
  if (!options_.predicts_deadline) return;
  pool_.limit_waits(step_deadline_.time());
  if (group_) group_->set_patience(step_deadline_.time());
}

PairTimes Run::measure_pair(const PairQuestion& question) {
  for (PairTimes& times :
       ask<PairTimes>(MeasurePairJob{question}, [&] { return pool_.measure_pair(question); })) {
    if (!times.one_way.empty() || !times.reductions.empty()) return std::move(times);
  }
  return {};
}

std::vector<Duration> Run::measure_commits(int rounds) {
  ENSURE(group_ != nullptr, "a run over processes");
  std::vector<Duration> waits;
  for (Step round = 0; round < rounds; ++round) {
    for (const std::vector<Duration>& some : ask<std::vector<Duration>>(
             MeasureCommitJob{round}, [&] { return pool_.measure_commit(round); }, processes(),
             round)) {
      waits.insert(waits.end(), some.begin(), some.end());
    }
  }
  return waits;
}

std::vector<LayerSample> Run::take_layer_samples() {
  return joined(ask<std::vector<LayerSample>>(LayerSamplesJob{},
                                              [this] { return pool_.take_layer_samples(); }));
}

}  // namespace frazil
