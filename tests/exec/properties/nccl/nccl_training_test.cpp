// Trainings whose ranks reach each other over NCCL alone, in the place of which the fake stands: it
// matches messages in their order, holds a send up until its receive is there, and finds a GPU that
// two threads serve. Every schedule has the bits of ranks that hand tensors over by pointer.

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <thread>

#include "exec/state/optimizer.h"
#include "planner/actions/deadlock.h"
#include "planner/plan/schedule_facts.h"
#include "profiles/error.h"
#include "tests/exec/communication/fake_nccl_world.h"
#include "tests/exec/support/family_plans.h"
#include "tests/exec/support/rank_failures.h"
#include "tests/exec/support/rank_training.h"

namespace frazil {
namespace {

constexpr std::uint64_t kSeed = 7;
constexpr int kSteps = 2;

using Hashes = std::map<LayerId, std::uint64_t>;

OptimizerConfig make_optimizer() {
  OptimizerConfig optimizer;
  optimizer.clip_norm = 0.5;
  return optimizer;
}

ModelSpec make_model() {
  VitConfig config = small_config();
  config.dropout = 0.1;
  return make_vit(config);
}

ModelProfile make_structure_of(const ModelSpec& model) {
  return make_structure(model, optimizer_bytes_per_parameter_byte(make_optimizer()));
}

// Trains on a thread per rank and returns the hashes of all layers. `failures` are of the ranks.
Hashes train(const Plan& plan, int devices, MessageOrder order,
             const std::vector<std::unique_ptr<Communicator>>& ranks,
             std::vector<std::string>& failures) {
  const ModelSpec model = make_model();
  const OptimizerConfig optimizer = make_optimizer();
  const StepProgram program =
      make_program(plan, make_structure_of(model), devices, /*clip=*/true, order);
  std::vector<Hashes> own(ranks.size());
  failures = sentences_of(failures_of(ranks, [&](Communicator& self) {
    at::set_num_threads(1);
    RankTraining training(model, optimizer, kSeed, program, self);
    try {
      for (Step step = 0; step < kSteps; ++step) {
        (void)training.step(step, 1e-2, small_micro_batches(step, plan.micro_batches()));
      }
    } catch (const std::exception& error) {
      self.abort(error.what());
      throw;
    }
    own[static_cast<std::size_t>(self.rank())] = training.hashes();
  }));
  Hashes all;
  for (Hashes& some : own) all.merge(some);
  return all;
}

Hashes train_in_process(const Plan& plan, int devices) {
  std::vector<std::string> failures;
  const auto ranks = make_in_process_communicators(devices);
  Hashes hashes = train(plan, devices, MessageOrder::kByTag, ranks, failures);
  EXPECT_EQ(failures, std::vector<std::string>(failures.size()));
  return hashes;
}

struct Trained {
  Hashes hashes;
  std::string refusal;  // the sentence of all ranks
};

Trained train_over_nccl(const Plan& plan, int devices, MessageOrder order) {
  reset_fake_nccl();
  Trained trained;
  std::vector<std::string> failures;
  {
    const auto ranks = make_fake_nccl_communicators(devices, {.check_order = false});
    trained.hashes = train(plan, devices, order, ranks, failures);
  }
  EXPECT_EQ(std::set<std::string>(failures.begin(), failures.end()).size(), 1U)
      << "all ranks say the same";
  trained.refusal = failures.front();
  EXPECT_EQ(fake_nccl_violations(), std::vector<std::string>());
  EXPECT_EQ(fake_nccl_counts().live_ends, 0);
  EXPECT_EQ(fake_nccl_counts().live_marks, 0);
  return trained;
}

// Returns the forms of every schedule that flushes.
std::vector<FamilyForm> all_forms() {
  std::vector<FamilyForm> forms;
  for (const ScheduleFacts& facts : all_schedules()) {
    if (facts.versions != WeightVersions::kSync) continue;
    for (const int devices : {2, 4}) {
      const int chunks = chunks_of(facts).front();
      if (devices * chunks > kSmallLayers) continue;
      forms.push_back({facts.kind, devices, chunks, devices == 2 ? 6 : 8});
    }
  }
  return forms;
}

TEST(OverNcclRuns, EveryScheduleIsProvedForAStreamThatWaitsAndHasTheBitsOfPointers) {
  std::set<ScheduleKind> seen;
  for (const FamilyForm& form : all_forms()) {
    SCOPED_TRACE(name_of(form));
    const ModelProfile structure = make_structure_of(make_model());
    const Plan plan = place_family(form, structure);
    const StepProgram program =
        make_program(plan, structure, form.devices, true, MessageOrder::kAsSent);
    EXPECT_EQ(find_deadlock(program.schedule, MessageLowering::kJustInTime), std::nullopt);
    const Trained trained = train_over_nccl(plan, form.devices, MessageOrder::kAsSent);
    EXPECT_EQ(trained.refusal, "");
    EXPECT_EQ(trained.hashes, train_in_process(plan, form.devices));
    EXPECT_EQ(trained.hashes.size(), static_cast<std::size_t>(kSmallLayers));
    seen.insert(form.kind);
  }
  EXPECT_EQ(seen.size(), synchronous_schedules().size());
}

// Lists with their RECVs where a world with tags may have them. One stream that waits could not
// serve all of these, but every lane has a stream of its own, and within a lane they keep the order
// in which messages are sent: none is refused.
TEST(OverNcclRuns, ListsForTagsKeepTheOrderOfEveryLane) {
  int for_many_streams = 0;
  for (const FamilyForm& form : all_forms()) {
    if (form.devices != 2) continue;
    SCOPED_TRACE(name_of(form));
    const ModelProfile structure = make_structure_of(make_model());
    const Plan plan = place_family(form, structure);
    const StepProgram program =
        make_program(plan, structure, form.devices, true, MessageOrder::kByTag);
    if (find_deadlock(program.schedule, MessageLowering::kJustInTime)) ++for_many_streams;
    const Trained trained = train_over_nccl(plan, form.devices, MessageOrder::kByTag);
    EXPECT_EQ(trained.refusal, "");
    EXPECT_EQ(trained.hashes, train_in_process(plan, form.devices));
  }
  EXPECT_GT(for_many_streams, 0);
}

// Replicas, whose gradients are added in a fixed tree over messages; a frozen prefix.
TEST(OverNcclRuns, ReplicasHaveTheBitsOfPointers) {
  for (const std::string mask : {"11111", "00111"}) {
    SCOPED_TRACE(mask);
    const Plan plan =
        make_small_plan(make_structure_of(make_model()),
                        {.micro_batches = 7, .cuts = {{4}, {3}}, .owned = {4, 3}, .mask = mask});
    const Trained trained = train_over_nccl(plan, 4, MessageOrder::kAsSent);
    EXPECT_EQ(trained.refusal, "");
    EXPECT_EQ(trained.hashes, train_in_process(plan, 4));
    EXPECT_EQ(fake_nccl_counts().all_reduces, 0);
  }
}

// In mode fast the world adds in an order of its own; all replicas have the same bits.
TEST(OverNcclRuns, FastReductionsAreAllReduces) {
  Plan plan = make_small_plan(make_structure_of(make_model()),
                              {.micro_batches = 6, .cuts = {{}, {}}, .owned = {3, 3}});
  plan.reduction = ReductionMode::kFast;
  const Trained trained = train_over_nccl(plan, 2, MessageOrder::kAsSent);
  EXPECT_EQ(trained.refusal, "");
  EXPECT_GT(fake_nccl_counts().all_reduces, 0);
  EXPECT_EQ(trained.hashes, train_in_process(plan, 2)) << "two addends have one order";
}

// NCCL loses a peer in the middle of a step.
TEST(OverNcclRuns, ALostPeerIsOneSentenceForAllRanks) {
  const Plan plan = make_small_plan(make_structure_of(make_model()), {.cuts = {{4}}});
  reset_fake_nccl({.kind = FakeNcclFault::Kind::kError, .gpu = 1, .group = 4});
  std::vector<std::string> failures;
  {
    const auto ranks = make_fake_nccl_communicators(2);
    (void)train(plan, 2, MessageOrder::kAsSent, ranks, failures);
  }
  EXPECT_EQ(failures[0], failures[1]);
  EXPECT_EQ(failures[0].find("rank 1 cannot "), 0U) << failures[0];
  EXPECT_NE(failures[0].find("(step 0)"), std::string::npos) << failures[0];
  EXPECT_EQ(fake_nccl_counts().live_ends, 0);
}

}  // namespace
}  // namespace frazil
