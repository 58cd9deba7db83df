#pragma once
// The jobs of a run as bytes, for the members of a run over processes (exec/control). One job is
// one alternative; its answer is the struct that exec/run/device_pool.h returns for it.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "exec/cache/cache_tally.h"
#include "exec/cache/store_offer.h"
#include "exec/control/wire.h"
#include "exec/run/jobs/device_runs.h"
#include "exec/run/jobs/jobs.h"
#include "exec/run/jobs/pair_times.h"
#include "exec/state/layer_moves.h"
#include "exec/tensors/sample_range.h"
#include "profiles/error.h"

namespace frazil {

// What a member needs before anything else, as whoever leads the run writes it. Answer: Done.
struct SetupJob {
  std::string setup;
};
// Get connections to a process that has come, or, as that process, to all others, for the world of
// this epoch. Answer: Done.
struct ConnectJob {
  int process = 0;
  std::uint32_t epoch = 0;
  std::vector<int> others;             // processes of the world, without the one that comes
  std::vector<std::string> addresses;  // of each of them; empty where none is needed
};
// Enter a new world; `process_of` tells where each device is, -1: nowhere, and `held` which devices
// held each layer before, where somebody does not know it. Answer: Done.
struct JoinJob {
  std::uint32_t epoch = 0;
  std::vector<int> process_of = {};
  std::optional<Holdings> held = {};
};
// Make the program of a plan, told by its file. Answer: the program's hash.
struct PrepareJob {
  std::string plan;
};
struct TakeJob {};           // answer: MoveReport
struct AdoptJob {};          // answer: Done
struct RevertJob {};         // answer: Done
struct CachedWeightsJob {};  // answer: list of LayerDigest
// Tell where this process has rows of cached features that other processes can open. Answer:
// StoreOffer.
struct OfferStoreJob {};
// Take the rows of one process of the host. Answer: Done.
struct TakeStoreJob {
  std::vector<StoreOffer> offers;  // of all processes
};
// Cache layers with these weights, which may have so many features. Answer: CacheTally.
struct UseCacheJob {
  std::vector<std::uint64_t> hashes;
  FeatureRoom room;
};
struct RestoreJob {};  // answer: Done
struct StepJob {       // answer: StepAnswer
  StepOrder order;
  SampleRange range;
};
struct EvaluateJob {  // answer: EvaluationAnswer
  SamplePart part = SamplePart::kTest;
  int micro_batch_size = 1;
};
struct SketchJob {};             // of SamplePart::kProbe; answer: list of BlockNumbers
struct IntervalGradientsJob {};  // answer: list of BlockNumbers
struct ClearSumsJob {};          // answer: Done
struct DigestsJob {};            // answer: list of LayerDigest
struct NonFiniteJob {};          // answer: LayerId, if there is one
struct GatherJob {};             // answer: Done; the states go to device 0
struct LayerSamplesJob {};       // answer: list of LayerSample
struct MeasurePairJob {          // answer: PairTimes
  PairQuestion question;
};
struct MeasureCommitJob {  // answer: list of Duration
  Step round = 0;
};

using Job =
    std::variant<SetupJob, JoinJob, PrepareJob, TakeJob, AdoptJob, RevertJob, CachedWeightsJob,
                 OfferStoreJob, TakeStoreJob, UseCacheJob, RestoreJob, StepJob, EvaluateJob,
                 SketchJob, IntervalGradientsJob, ClearSumsJob, DigestsJob, NonFiniteJob, GatherJob,
                 LayerSamplesJob, ConnectJob, MeasurePairJob, MeasureCommitJob>;

struct Done {};

template <>
struct WireEnum<SamplePart> {
  static constexpr SamplePart last = SamplePart::kProbe;
};
template <>
struct WireEnum<Lane> {
  static constexpr Lane last = Lane::kHost;
};
template <>
struct WireEnum<LayerPhase> {
  static constexpr LayerPhase last = LayerPhase::kStatistics;
};

template <class A>
void archive(A& a, SetupJob& j) {
  a(j.setup);
}
template <class A>
void archive(A& a, ConnectJob& j) {
  a(j.process, j.epoch, j.others, j.addresses);
}
template <class A>
void archive(A& a, JoinJob& j) {
  std::vector<DeviceRun> runs;
  if constexpr (!A::kReads) runs = to_device_runs(j.process_of);
  a(j.epoch, runs, j.held);
  if constexpr (A::kReads) j.process_of = from_device_runs(runs);
}
template <class A>
void archive(A& a, PrepareJob& j) {
  a(j.plan);
}
template <class A>
void archive(A&, TakeJob&) {}
template <class A>
void archive(A&, AdoptJob&) {}
template <class A>
void archive(A&, RevertJob&) {}
template <class A>
void archive(A&, CachedWeightsJob&) {}
template <class A>
void archive(A&, OfferStoreJob&) {}
template <class A>
void archive(A& a, TakeStoreJob& j) {
  a(j.offers);
}
template <class A>
void archive(A& a, UseCacheJob& j) {
  a(j.hashes, j.room);
}
template <class A>
void archive(A&, RestoreJob&) {}
template <class A>
void archive(A& a, StepJob& j) {
  a(j.order, j.range);
}
template <class A>
void archive(A& a, EvaluateJob& j) {
  a(j.part, j.micro_batch_size);
}
template <class A>
void archive(A&, SketchJob&) {}
template <class A>
void archive(A&, IntervalGradientsJob&) {}
template <class A>
void archive(A&, ClearSumsJob&) {}
template <class A>
void archive(A&, DigestsJob&) {}
template <class A>
void archive(A&, NonFiniteJob&) {}
template <class A>
void archive(A&, GatherJob&) {}
template <class A>
void archive(A&, LayerSamplesJob&) {}
template <class A>
void archive(A& a, MeasurePairJob& j) {
  a(j.question);
}
template <class A>
void archive(A& a, MeasureCommitJob& j) {
  a(j.round);
}
template <class A>
void archive(A&, Done&) {}

template <class A>
void archive(A& a, SampleRange& r) {
  a(r.epoch, r.first, r.count);
}
template <class A>
void archive(A& a, Measurement& m) {
  a(m.layers, m.split_backward, m.memory, m.gradient_squares, m.gradient_sums, m.slow_layer,
    m.slow_percent, m.slow_device);
}
template <class A>
void archive(A& a, StepOrder& o) {
  a(o.step, o.learning_rate, o.rate_factors, o.measurement, o.records, o.uses_cache, o.longest_wait,
    o.next, o.reads_ahead);
}
template <class A>
void archive(A& a, StoreOffer& o) {
  a(o.host, o.process, o.pid, o.memory, o.disk, o.id, o.changes);
}
template <class A>
void archive(A& a, FeatureRoom& r) {
  a(r.in_memory, r.on_disk);
}
template <class A>
void archive(A& a, FeatureCounts& c) {
  a(c.stored, c.found, c.found_before, c.missed, c.promoted, c.lost, c.turned_away);
}
template <class A>
void archive(A& a, PrefixCounts& c) {
  a(c.asked, c.whole, c.parts);
}
template <class A>
void archive(A& a, TierTraffic& t) {
  a(t.written, t.read, t.writing, t.reading);
}
template <class A>
void archive(A& a, FeatureCache::Source& s) {
  a(s.depth, s.feature, s.in_memory, s.on_disk);
}
template <class A>
void archive(A& a, CacheTally& t) {
  a(t.process, t.store, t.counts, t.micro_batches, t.checked, t.memory, t.disk, t.source,
    t.depth_before, t.in_memory, t.on_disk, t.used_in_memory, t.used_on_disk, t.warnings);
}
template <class A>
void archive(A& a, GradientSquares& s) {
  a(s.layer, s.value);
}
template <class A>
void archive(A& a, TimePoint& t) {
  Duration since_zero = t.time_since_epoch();
  a(since_zero);
  t = TimePoint{since_zero};
}
template <class A>
void archive(A& a, Action& action) {
  std::string text = A::kReads ? "" : to_text(action);
  Step step = action.step;
  a(text, step);
  if constexpr (A::kReads) {
    try {
      action = parse_action(text);
    } catch (const InputError& error) {
      throw WireError("found an action that there is not (" + std::string(error.what()) + ")");
    }
    set_step(action, step);
  }
}
template <class A>
void archive(A& a, Span& s) {
  a(s.device, s.lane, s.action, s.start, s.end);
}
template <class A>
void archive(A& a, MemoryMoment& m) {
  a(m.at, m.total);
}
template <class A>
void archive(A& a, MeasuredMemory& m) {
  a(m.device, m.peak, m.total_peak, m.allocator_peak, m.curve);
}
template <class A>
void archive(A& a, WeightRead& r) {
  a(r.stage, r.micro_batch, r.version, r.lag);
}
template <class A>
void archive(A& a, ComputeTime& c) {
  a(c.device, c.time);
}
template <class A>
void archive(A& a, StepAnswer& s) {
  a(s.losses, s.non_finite_gradient, s.gradient_squares, s.compute, s.spans, s.memory,
    s.weight_reads, s.note, s.cache, s.zero);
}
template <class A>
void archive(A& a, LossTerm& t) {
  a(t.micro_batch, t.layer, t.value, t.count);
}
template <class A>
void archive(A& a, EvaluationAnswer& e) {
  a(e.losses, e.right, e.judged);
}
template <class A>
void archive(A& a, LayerDigest& d) {
  a(d.layer, d.device, d.hash);
}
template <class A>
void archive(A& a, BlockNumbers& n) {
  a(n.block, n.layer, n.values);
}
template <class A>
void archive(A& a, MoveReport& r) {
  a(r.layers_handed_over, r.layers_copied, r.moved, r.copied);
}
template <class A>
void archive(A& a, LayerSample& s) {
  a(s.layer, s.phase, s.samples, s.duration, s.device);
}

}  // namespace frazil
