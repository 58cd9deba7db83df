// A run over processes whose frozen prefix is cached ends with the bits of one process that caches
// nothing, whichever processes read what one of them has computed, wherever pipelines move, and
// whoever is lost; and every sample of a step is found or missed in exactly one process.

#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <thread>

#include "exec/cache/cache_tally.h"
#include "exec/data/dataset.h"
#include "tests/exec/support/cached_courses.h"
#include "tests/exec/support/process_run.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

constexpr std::uint64_t kCourseSeed = 7;  // that of take_course()

PlanShape replicated(std::vector<int> owned, const std::string& mask) {
  PlanShape shape;
  shape.cuts.assign(owned.size(), {});
  shape.owned = std::move(owned);
  shape.mask = mask;
  return shape;
}

// Pipelines come and go, and take over other micro-batches, while blocks freeze and thaw.
std::vector<PlanShape> moving_pipelines() {
  const PlanShape two_stages{.cuts = {{5}, {6}}, .owned = {2, 4}, .mask = "00111"};
  return {replicated({3, 3}, "11111"),       two_stages,
          replicated({2, 1, 1, 2}, "00111"), replicated({1, 2, 1, 2}, "00011"),
          replicated({4, 2}, "00011"),       replicated({2, 1, 1, 2}, "00001"),
          replicated({2, 1, 1, 2}, "00001"), replicated({2, 2, 2}, "01111")};
}

// A process is lost so long into the transition that begins an epoch; 0: before it.
struct Loss {
  int process = 0;
  std::size_t epoch = 0;
  PlanShape after;  // in force from the loss to the end of the epoch
  microseconds into{0};
};

struct CachedOutcome {
  std::vector<std::uint64_t> losses;
  std::uint64_t weights = 0;
  CacheTally all;
  int caches = 0;
  std::map<int, CacheTally> tallies = {};
  std::vector<std::string> warnings = {};
};

class CachedProcesses {
 public:
  CachedProcesses(std::vector<int> process_of, const PrefixCacheOptions& options)
      : data_(make_synthetic(static_cast<int>(kCourseSamples), 1, 1, 8, 10, kCourseSeed)),
        options_(options),
        run_(model(), {.clip_norm = 1}, kCourseSeed,
             ProcessShape{std::move(process_of), ProcessLinks::kUnix,
                          [this](const ModelSpec& spec) { return make_cache(spec); }}),
        own_(make_cache(run_.model())) {
    run_.attach(*own_);
  }

  CachedOutcome take(const std::vector<PlanShape>& epochs, const std::optional<Loss>& loss = {}) {
    CachedOutcome outcome;
    Step step = 0;
    for (std::size_t epoch = 0; epoch < epochs.size(); ++epoch) {
      const bool loses = loss && loss->epoch == epoch;
      std::jthread killer;
      if (loses) {
        killer = std::jthread([&] {
          std::this_thread::sleep_for(loss->into);
          run_.kill(loss->process);
        });
      }
      if (loses && loss->into == microseconds{0}) killer.join();
      survive([&] { put_in_force(epochs[epoch]); }, loss);
      const auto order = epoch_order(kCourseSamples, kCourseSeed, static_cast<int>(epoch));
      for (std::int64_t first = 0; first < kCourseSamples; first += kCourseBatch, ++step) {
        const auto micro_batches =
            gather_micro_batches(data_.train, order, first, kCourseBatch, kSmallMicroBatch);
        const std::vector<std::int64_t> ids{order.begin() + first,
                                            order.begin() + first + kCourseBatch};
        StepResult result;
        const auto take_step = [&] {
          result = run_.step(step, 3e-3, micro_batches, false, {}, ids);
        };
        if (survive(take_step, loss)) take_step();
        outcome.losses.push_back(std::bit_cast<std::uint64_t>(result.loss));
      }
    }
    outcome.weights = run_.weight_hash();
    outcome.tallies = run_.cache_tallies();
    outcome.all = join_tallies(outcome.tallies, run_.processes());
    outcome.caches = count_stores(outcome.tallies, run_.processes());
    outcome.warnings = run_.take_cache_warnings();
    return outcome;
  }

 private:
  static ModelSpec model() {
    VitConfig config = small_config();
    config.dropout = 0.1;
    return make_vit(config);
  }
  std::unique_ptr<PrefixCache> make_cache(const ModelSpec& spec) {
    return std::make_unique<PrefixCache>(spec, example_outputs(spec, data_.train.narrow(0, 1)),
                                         kCourseSamples, files_, options_);
  }
  // Returns true if a process was lost in the job; the plan without it is then in force.
  bool survive(const std::function<void()>& job, const std::optional<Loss>& loss) {
    try {
      job();
      return false;
    } catch (const StepUndone&) {
      EXPECT_EQ(run_.regroup().size(), 1U);
      EXPECT_TRUE(run_.lost_layers().empty());
      put_in_force(loss.value().after);
      return true;
    }
  }
  void put_in_force(const PlanShape& shape) {
    Plan plan = make_small_plan(run_.structure(), shape);
    plan.cache_frozen_prefix = true;
    run_.transition_to(plan);
  }

  Dataset data_;
  PrefixCacheOptions options_;
  FileSystem files_ = real_file_system();
  ProcessRun run_;
  std::unique_ptr<PrefixCache> own_;
};

PrefixCacheOptions options_of(bool shares, bool on_disk = false) {
  PrefixCacheOptions options = ample_memory();
  options.shares = shares;
  if (on_disk) options.limits = {{}, Bytes{1 << 24}, std::filesystem::temp_directory_path()};
  return options;
}

// Samples of the steps under masks that freeze the embedding at least.
std::int64_t count_asked(const std::vector<PlanShape>& epochs) {
  std::int64_t count = 0;
  for (const PlanShape& shape : epochs) count += shape.mask[0] == '0' ? kCourseSamples : 0;
  return count;
}

std::int64_t looked_for(const FeatureCounts& counts) {
  return counts.found + counts.found_before + counts.missed;
}

const std::vector<std::vector<int>> kSpreads{{0, 0, 1, 1}, {0, 1, 2, 3}};

TEST(CachedProcesses, OfOneHostFindWhatOneProcessWouldAndHaveItsBits) {
  const std::vector<PlanShape> epochs = moving_pipelines();
  const Course plain = take_course(epochs, {});
  const Course cached = take_course(epochs, {.cache = ample_memory()});
  ASSERT_EQ(cached.weights, plain.weights);
  for (const std::vector<int>& process_of : kSpreads) {
    for (const bool on_disk : {false, true}) {
      const CachedOutcome outcome =
          CachedProcesses(process_of, options_of(true, on_disk)).take(epochs);
      EXPECT_EQ(outcome.losses, plain.losses);
      EXPECT_EQ(outcome.weights, plain.weights);
      EXPECT_EQ(outcome.caches, 1);
      EXPECT_EQ(outcome.all.counts.found, cached.counts.found);
      EXPECT_EQ(outcome.all.counts.found_before, cached.counts.found_before);
      EXPECT_EQ(outcome.all.counts.missed, cached.counts.missed);
      EXPECT_EQ(looked_for(outcome.all.counts), count_asked(epochs));
      EXPECT_TRUE(outcome.warnings.empty());
    }
  }
}

TEST(CachedProcesses, OfOneHostRoundAsOneProcessDoes) {
  const std::vector<PlanShape> epochs = moving_pipelines();
  PrefixCacheOptions rounds = options_of(true);
  rounds.precision = FeaturePrecision::kBfloat16;
  PrefixCacheOptions of_one = rounds;
  of_one.shares = false;
  const Course cached = take_course(epochs, {.cache = of_one});
  const CachedOutcome outcome = CachedProcesses({0, 1, 2, 3}, rounds).take(epochs);
  EXPECT_EQ(outcome.losses, cached.losses);
  EXPECT_EQ(outcome.weights, cached.weights);
}

TEST(CachedProcesses, WithCachesOfTheirOwnMissWhatLiesElsewhereAndHaveTheBits) {
  const std::vector<PlanShape> epochs = moving_pipelines();
  const Course cached = take_course(epochs, {.cache = ample_memory()});
  for (const std::vector<int>& process_of : kSpreads) {
    const CachedOutcome outcome = CachedProcesses(process_of, options_of(false)).take(epochs);
    EXPECT_EQ(outcome.losses, cached.losses);
    EXPECT_EQ(outcome.weights, cached.weights);
    EXPECT_EQ(outcome.caches, process_of.back() + 1);
    EXPECT_EQ(looked_for(outcome.all.counts), count_asked(epochs));
    EXPECT_GT(outcome.all.counts.missed, cached.counts.missed);
    EXPECT_GT(outcome.all.counts.found, 0);
  }
}

// The store of the host keeps what a lost process has computed; its own cache goes with it.
TEST(CachedProcesses, KeepTheBitsWhereOneIsLost) {
  const std::vector<PlanShape> epochs(8, replicated({2, 1, 1, 2}, "00011"));
  const Course plain = take_course(epochs, {});
  for (const bool shares : {true, false}) {
    SCOPED_TRACE(shares ? "one cache" : "a cache each");
    CachedProcesses run({0, 1, 2, 3}, options_of(shares));
    const std::vector<PlanShape> before(epochs.begin(), epochs.begin() + 5);
    std::vector<PlanShape> all = before;
    all.resize(8, replicated({2, 3, 1}, "00011"));
    const CachedOutcome outcome = run.take(all, Loss{3, 4, replicated({2, 3, 1}, "00011")});
    EXPECT_EQ(outcome.losses, plain.losses);
    EXPECT_EQ(outcome.weights, plain.weights);
    EXPECT_EQ(outcome.tallies.size(), 4U);
    EXPECT_EQ(outcome.caches, shares ? 1 : 3);
    EXPECT_EQ(outcome.all.in_memory, shares ? kCourseSamples : outcome.all.in_memory);
    if (shares) {
      EXPECT_EQ(outcome.all.counts.missed, kCourseSamples);
      EXPECT_EQ(outcome.all.counts.stored, kCourseSamples);
    } else {
      EXPECT_GT(outcome.all.counts.missed, kCourseSamples);
    }
  }
}

TEST(CachedProcesses, KeepTheBitsWhereOneIsLostWhileACacheIsTakenUp) {
  const PlanShape before = replicated({2, 1, 1, 2}, "00111");
  const PlanShape deeper = replicated({1, 2, 1, 2}, "00011");
  const PlanShape after = replicated({2, 3, 1}, "00011");
  const std::vector<PlanShape> epochs{before, before, deeper, after, after};
  const Course plain = take_course(epochs, {});
  std::mt19937_64 random(27);
  for (int trial = 0; trial < 10; ++trial) {
    const bool shares = trial % 2 == 0;
    const std::size_t epoch = trial % 4 < 2 ? 0 : 2;  // processes share their rows in the first
    const microseconds into(1 + random() % 4'000);
    SCOPED_TRACE("lost " + std::to_string(into.count()) + " us into the transition to epoch " +
                 std::to_string(epoch));
    std::vector<PlanShape> all = epochs;
    PlanShape then = after;
    if (epoch == 0) {
      for (std::size_t e = 1; e < 3; ++e) all[e] = replicated({2, 3, 1}, all[e].mask);
      then.mask = before.mask;
    }
    const CachedOutcome outcome =
        CachedProcesses({0, 1, 2, 3}, options_of(shares)).take(all, Loss{3, epoch, then, into});
    EXPECT_EQ(outcome.losses, plain.losses);
    EXPECT_EQ(outcome.weights, plain.weights);
  }
}

TEST(CachedProcesses, AreToldHowManyFeaturesTheyMayKeep) {
  const std::vector<PlanShape> epochs(4, replicated({2, 1, 1, 2}, "00111"));
  const Course plain = take_course(epochs, {});
  PrefixCacheOptions some = options_of(true);
  some.limits.memory = Bytes{17 * 32 * 4 * 40};  // of 40 samples
  const CachedOutcome outcome = CachedProcesses({0, 1, 2, 3}, some).take(epochs);
  EXPECT_EQ(outcome.weights, plain.weights);
  EXPECT_EQ(outcome.all.in_memory, 40);
  EXPECT_EQ(outcome.all.counts.found, 3 * 40);
  EXPECT_EQ(outcome.all.counts.missed, 4 * kCourseSamples - 3 * 40);
}

}  // namespace
}  // namespace frazil
