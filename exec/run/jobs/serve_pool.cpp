#include "exec/run/jobs/serve_pool.h"

#include <stdexcept>
#include <utility>

#include "exec/run/jobs/job_codec.h"
#include "exec/run/jobs/member_faults.h"
#include "planner/plan/plan_json.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// Does each kind of job and returns the bytes of its answer.
class JobServer {
 public:
  JobServer(DevicePool& pool, ControlMember& member, const MemberSource& source,
            const RunOptions& options)
      : pool_(pool), member_(member), source_(source), options_(options) {}

  std::string operator()(const SetupJob&) {
    throw std::logic_error("a member is set up once, before it serves");
  }
  std::string operator()(const ConnectJob& job) {
    source_.connect(job, [this] {
      if (const auto cause = member_.cause()) throw StepUndone(*cause);
    });
    return done();
  }
  std::string operator()(const JoinJob& job) {
    member_.renew();
    pool_.join(
        {.communicators = source_.join(job.epoch, job.process_of,
                                       {.deadline = options_.deadline,
                                        .check_order = options_.order == MessageOrder::kAsSent,
                                        .limit = pool_.wait_limit()}),
         .process_of = job.process_of,
         .held = job.held,
         .commit = &member_.round()});
    return done();
  }
  std::string operator()(const PrepareJob& job) {
    pool_.prepare(parse_plan(job.plan, "plan of the leader"));
    return encode(pool_.prepared_hash());
  }
  std::string operator()(const TakeJob&) { return encode(pool_.take()); }
  std::string operator()(const AdoptJob&) {
    pool_.adopt();
    return done();
  }
  std::string operator()(const RevertJob&) {
    pool_.revert();
    return done();
  }
  std::string operator()(const CachedWeightsJob&) { return encode(pool_.cached_weights()); }
  std::string operator()(const OfferStoreJob&) { return encode(pool_.offer_store()); }
  std::string operator()(const TakeStoreJob& job) {
    pool_.take_store(job.offers);
    return done();
  }
  std::string operator()(const UseCacheJob& job) {
    return encode(pool_.use_cache(job.hashes, job.room));
  }
  std::string operator()(const RestoreJob&) {
    pool_.restore({});
    return done();
  }
  std::string operator()(const StepJob& job) {
    if (job.order.longest_wait > Duration{0}) member_.set_patience(job.order.longest_wait);
    const std::vector<std::int64_t> numbers =
        job.order.uses_cache ? source_.cache_numbers(job.range) : std::vector<std::int64_t>();
    const std::vector<Samples> micro_batches = source_.micro_batches(job.range);
    if (job.order.next && source_.expect) source_.expect(*job.order.next);
    if (job.order.next && job.order.reads_ahead) {
      pool_.read_ahead(source_.cache_numbers(*job.order.next),
                       pool_.program().plan.micro_batch_size);
    }
    return encode(pool_.step(job.order, micro_batches, numbers));
  }
  std::string operator()(const EvaluateJob& job) {
    return encode(pool_.evaluate(source_.part(job.part), job.micro_batch_size));
  }
  std::string operator()(const SketchJob&) {
    return encode(pool_.sketch_blocks(source_.part(SamplePart::kProbe).whole()));
  }
  std::string operator()(const IntervalGradientsJob&) { return encode(pool_.interval_gradients()); }
  std::string operator()(const ClearSumsJob&) {
    pool_.clear_gradient_sums();
    return done();
  }
  std::string operator()(const DigestsJob&) { return encode(pool_.digests()); }
  std::string operator()(const NonFiniteJob&) { return encode(pool_.find_non_finite()); }
  std::string operator()(const GatherJob&) {
    (void)pool_.gather_states();
    return done();
  }
  std::string operator()(const MeasurePairJob& job) {
    return encode(pool_.measure_pair(job.question));
  }
  std::string operator()(const MeasureCommitJob& job) {
    return encode(pool_.measure_commit(job.round));
  }
  std::string operator()(const LayerSamplesJob&) { return encode(pool_.take_layer_samples()); }

 private:
  static std::string done() { return encode(Done{}); }

  DevicePool& pool_;
  ControlMember& member_;
  const MemberSource& source_;
  const RunOptions& options_;
};

// Jobs that need no other process are done whoever is lost. A plan that the leader has begun to
// adopt is adopted by all that live, or some would be left with the old one.
bool is_done_alone(const Job& job) {
  return std::holds_alternative<JoinJob>(job) || std::holds_alternative<AdoptJob>(job) ||
         std::holds_alternative<RevertJob>(job);
}

}  // namespace

StopMessage serve(DevicePool& pool, ControlMember& member, const MemberSource& source,
                  const RunOptions& options) {
  JobServer server(pool, member, source, options);
  while (const std::optional<OrderMessage> order = member.next()) {
    try {
      const auto job = decode<Job>(order->job);
      // A job that was ended before it began has nobody to talk to. What all have taken is adopted,
      // though, by all who live: nobody goes back to the plan before.
      const std::optional<std::string> cause = member.cause();
      if (cause && !is_done_alone(job)) throw StepUndone(*cause);
      member.answer(order->number, std::visit(server, job));
    } catch (...) {
      member.fail(tell_failure(order->number));
    }
  }
  return *member.stopped();
}

}  // namespace frazil
