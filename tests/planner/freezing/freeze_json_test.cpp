// Tests configurations and states of freezing as files: how they are read, written and refused.

#include "planner/freezing/freeze_json.h"

#include <gtest/gtest.h>

#include "planner/freezing/freeze_schedule.h"
#include "profiles/error.h"
#include "profiles/text_file.h"
#include "tests/planner/freezing/freezing_cases.h"
#include "tests/support/write_freeze_trace.h"
#include "traces/freeze_trace.h"

namespace frazil {
namespace {

TEST(FreezeConfigJson, EveryPolicyAndAnyDecoratorsRoundTrip) {
  const unsigned seed = 21;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int trial = 0; trial < 50; ++trial) {
    for (const FreezePolicy& policy : sample_policies()) {
      const FreezeConfig config{policy, draw_decorators(random)};
      const std::string text = to_json(config);
      ASSERT_EQ(parse_config(text, kSampleBlocks), config) << text;
      ASSERT_EQ(to_json(parse_config(text, kSampleBlocks)), text);
    }
  }
}

TEST(FreezeConfigJson, IsWrittenWithEveryKey) {
  EXPECT_EQ(to_json(parse_config(R"({"policy": {"kind": "none"}})", 9)),
            R"({"policy": {"kind": "none"}, "decorators": {}})");
  EXPECT_EQ(to_json(parse_config(R"({"policy": {"kind": "alpha", "alpha": 0.25}})", 9)),
            R"({"policy": {"kind": "alpha", "alpha": 0.25, "start_epoch": 1, )"
            R"("interval_epochs": 1}, "decorators": {}})");
  EXPECT_EQ(
      to_json(parse_config(R"({"policy": {"kind": "plasticity", "start_step": 100},
                                     "decorators": {"prefix": true, "validation_guard": {},
                                                    "amortisation": {"within_epochs": 2}}})",
                           9)),
      R"({"policy": {"kind": "plasticity", "tolerance": 0.1, "patience": 1, )"
      R"("smoothing": 1, "per_rate": false, "thaw_at_rate": 0, "start_step": 100, )"
      R"("interval_steps": 1}, "decorators": {"prefix": true, "validation_guard": )"
      R"({"metric": "accuracy", "sigmas": 3, "tolerance": 0.005, "smoothing": 0.2, )"
      R"("hold_evaluations": 2, "wait_while_improving": false}, "amortisation": {"margin_percent": 100, )"
      R"("within_epochs": 2}}})");
}

TEST(FreezeConfigJson, EpochsCountFromOneAndStepsFromZero) {
  const FreezeConfig epochs = parse_config(
      R"({"policy": {"kind": "alpha", "alpha": 0.5, "start_epoch": 3, "interval_epochs": 2}})", 9);
  EXPECT_EQ(in_steps(epochs.policy, 45),
            FreezePolicy(AlphaFreeze{.alpha = 0.5, .start = 90, .interval = 90}));
  const FreezeConfig steps = parse_config(
      R"({"policy": {"kind": "alpha", "alpha": 0.5, "start_step": 7, "interval_steps": 2}})", 9);
  EXPECT_EQ(in_steps(steps.policy, 45),
            FreezePolicy(AlphaFreeze{.alpha = 0.5, .start = 7, .interval = 2}));
}

std::string refusal_of(const std::string& text, int blocks = 9) {
  try {
    parse_config(text, blocks);
  } catch (const InputError& error) {
    return error.what();
  }
  return "taken";
}

TEST(FreezeConfigJson, RefusesNonsenseInOneSentenceWithFileAndLine) {
  const auto policy = [](const std::string& members) {
    return refusal_of("{\"policy\":\n {" + members + "}}");
  };
  const auto around = [](const std::string& members) {
    return refusal_of("{\"policy\": {\"kind\": \"none\"},\n \"decorators\": {" + members + "}}");
  };
  EXPECT_EQ(policy(R"("kind": "alpha", "alpha": 1)"),
            "run.json:2: found `1` at $.policy.alpha, expected above 0 and below 1");
  EXPECT_EQ(policy(R"("kind": "alpha", "alhpa": 0.5)").substr(0, 43),
            "run.json:2: found the unknown key \"alhpa\" a");
  EXPECT_EQ(policy(R"("kind": "alfa")"),
            "run.json:2: found `\"alfa\"` at $.policy.kind, expected one of \"none\", \"static\", "
            "\"alpha\", \"pt-paper\", \"autofreeze\", \"linear\", \"freezeout\", \"plasticity\", "
            "\"gradual-unfreeze\", \"random\", \"trace\"; did you mean alpha?");
  EXPECT_EQ(policy(R"("kind": "alpha", "start_step": 3, "interval_epochs": 1)"),
            "run.json:2: found a number of steps beside one of epochs at $.policy.start_step, "
            "expected a pace in steps or one in epochs");
  EXPECT_EQ(
      policy(R"("kind": "static", "mask": "0111")"),
      "run.json:2: found a mask of 4 blocks at $.policy.mask, expected one of 9, as the model "
      "has");
  EXPECT_EQ(
      policy(R"("kind": "static", "mask": "011111110")"),
      "run.json:2: found mask \"011111110\" at $.policy.mask, expected a 0 or 1 per block, and a "
      "1 for the last, which never freezes");
  EXPECT_EQ(around(R"("minimum_interval": {})"),
            "run.json:2: found no length at $.decorators.minimum_interval, expected a number of "
            "\"steps\" or \"epochs\"");

  const std::vector<std::string> bad_policies{
      R"("alpha": 0.5)",
      R"("kind": "none", "alpha": 0.5)",
      R"("kind": "alpha", "alpha": 0)",
      R"("kind": "alpha", "alpha": -0.1)",
      R"("kind": "alpha", "alpha": "0.5")",
      R"("kind": "alpha", "alpha": 0.5, "alpha": 0.5)",
      R"("kind": "alpha", "start_epoch": 0)",
      R"("kind": "alpha", "interval_epochs": 0)",
      R"("kind": "alpha", "interval_steps": 1.5)",
      R"("kind": "alpha", "interval_steps": 10000000000)",
      R"("kind": "static", "frozen_layers": 8)",
      R"("kind": "static", "frozen_layers": -1)",
      R"("kind": "static", "frozen_layers": 1, "mask": "001111111")",
      R"("kind": "pt-paper", "alpha": 1.5)",
      R"("kind": "pt-paper", "percentile": 50)",
      R"("kind": "autofreeze", "percentile": 0)",
      R"("kind": "autofreeze", "percentile": 101)",
      R"("kind": "linear", "freeze_start": 1)",
      R"("kind": "linear", "freeze_level": 0)",
      R"("kind": "linear", "start_epoch": 1)",
      R"("kind": "freezeout", "t0": 1.1)",
      R"("kind": "freezeout", "power": 4)",
      R"("kind": "freezeout", "scaled": 1)",
      R"("kind": "plasticity", "tolerance": 1)",
      R"("kind": "plasticity", "patience": 0)",
      R"("kind": "plasticity", "smoothing": 0)",
      R"("kind": "plasticity", "thaw_at_rate": 1)",
      R"("kind": "gradual-unfreeze", "blocks_per_interval": 0)",
      R"("kind": "random", "active_layers": 8)",
      R"("kind": "trace")",
      R"("kind": "trace", "path": "")",
      R"("kind": "trace", "path": "no such file")"};
  for (const std::string& members : bad_policies) {
    const std::string refusal = policy(members);
    EXPECT_NE(refusal, "taken") << members;
    EXPECT_NE(refusal.find("expected"), std::string::npos) << refusal;
  }
  const std::vector<std::string> bad_decorators{
      R"("hysteresys": {"steps": 3})",
      R"("hysteresis": 3)",
      R"("hysteresis": {"steps": 0})",
      R"("hysteresis": {"steps": 3, "epochs": 1})",
      R"("hysteresis": {"seconds": 3})",
      R"("prefix": 1)",
      R"("validation_guard": {"metric": "f1"})",
      R"("validation_guard": {"sigmas": -1})",
      R"("validation_guard": {"tolerance": -1})",
      R"("validation_guard": {"smoothing": 0})",
      R"("validation_guard": {"hold_evaluations": 0})",
      R"("minimum_interval": {"epochs": 0})",
      R"("amortisation": {"margin_percent": 0})",
      R"("amortisation": {"within_steps": 1, "within_epochs": 1})",
      R"("amortisation": {"steps": 1})"};
  for (const std::string& members : bad_decorators) {
    const std::string refusal = around(members);
    EXPECT_EQ(refusal.substr(0, 18), "run.json:2: found ") << members << ": " << refusal;
  }
  EXPECT_NE(refusal_of("{}"), "taken");
  EXPECT_NE(refusal_of(R"({"policy": {"kind": "none"}, "decorator": {}})"), "taken");
}

class TraceFile : public ::testing::Test {
 protected:
  ~TraceFile() override { std::filesystem::remove_all(folder_); }

  std::string refusal_of_trace(const std::string& text) const {
    write_text_file(folder_ / "t.jsonl", text);
    try {
      parse_freeze_config(
          parse_json(R"({"policy": {"kind": "trace", "path": "t.jsonl"}})", "run.json"), 3,
          folder_);
    } catch (const InputError& error) {
      return error.what();
    }
    return "taken";
  }

  const std::filesystem::path folder_ = std::filesystem::temp_directory_path() /
                                        ("frazil-trace-" + std::to_string(std::random_device()()));
};

TEST_F(TraceFile, OfAnotherModelOrNoRunIsRefusedByItsName) {
  const auto header = [](const char* blocks, int steps) {
    return std::string(
               R"({"format":"frazil.freeze_trace","version":1,"model_hash":"0","blocks":)") +
           blocks + R"(,"steps":)" + std::to_string(steps) + R"(,"batch_size":1,"provenance":{}})" +
           "\n";
  };
  const std::string file = (folder_ / "t.jsonl").string();
  EXPECT_EQ(refusal_of_trace(header(R"(["a","b","c"])", 5)), "taken");
  EXPECT_EQ(refusal_of_trace(header(R"(["a","b"])", 5)),
            file + ":1: found 2 blocks, expected 3, as the model has");
  EXPECT_EQ(refusal_of_trace(header(R"(["a","b","c"])", 0)),
            file + ":1: found a run of no steps, expected a step or more");
}

TEST_F(TraceFile, TellsTheRatesOfItsBlocks) {
  FreezeTrace trace;
  trace.model_hash = "0";
  trace.blocks = {"a", "b", "c"};
  trace.steps = 5;
  const FreezeOut rates{.t0 = 0.25, .power = 2, .scaled = false};
  const auto read = [&] {
    write_freeze_trace(trace, folder_ / "t.jsonl");
    const FreezeConfig config = parse_freeze_config(
        parse_json(R"({"policy": {"kind": "trace", "path": "t.jsonl"}})", "run.json"), 3, folder_);
    return find_rates(config.policy);
  };
  EXPECT_EQ(read(), std::nullopt);
  trace.provenance["rates"] = to_json(FreezePolicy(rates));
  EXPECT_EQ(read(), rates);
  EXPECT_EQ(find_rates(rates), rates);
  EXPECT_EQ(find_rates(AlphaFreeze{}), std::nullopt);
  for (const std::string bad :
       {"", "7", R"({"kind": "alpha"})", R"({"kind": "freezeout", "t": 1})"}) {
    trace.provenance["rates"] = bad;
    EXPECT_THROW(read(), InputError) << bad;
  }
}

TEST(FreezeStateJson, RefusesTheStateOfAnotherConfigurationOrModel) {
  const FreezeConfig config{PaperFreeze{}, {.guard = ValidationGuard{}}};
  FreezeState state = initial_state(config);
  const std::string text = to_json(state, config);
  EXPECT_EQ(
      text,
      R"({"format": "frazil.freeze_state", "version": 1, "policy": {"kind": "pt-paper", )"
      R"("decided": 0, "reached": 0}, "validation_guard": {"variance": 0, "hold": 0, "improves": true, )"
      R"("thaws": 0}})");
  const auto refusal = [](const std::string& json, const FreezeConfig& wanted) -> std::string {
    try {
      parse_freeze_state(parse_json(json, "state.json"), wanted, 5);
    } catch (const InputError& error) {
      return error.what();
    }
    return "taken";
  };
  EXPECT_EQ(refusal(text, config), "taken");
  EXPECT_EQ(refusal(text, {AutoFreeze{}, config.decorators}),
            "state.json:1: found `\"pt-paper\"` at $.policy.kind, expected the state of policy "
            "\"autofreeze\"");
  EXPECT_NE(refusal(text, {PaperFreeze{}, {}}), "taken") << "a guard's state, and no guard";
  EXPECT_NE(
      refusal(text, {PaperFreeze{}, {.hysteresis = Hysteresis{}, .guard = ValidationGuard{}}}),
      "taken");
  state.step = 7;
  state.mask = FreezeMask::all_active(6);
  EXPECT_EQ(
      refusal(to_json(state, config), config),
      "state.json:1: found a mask of 6 blocks at $.mask, expected one of 5, as the model has");
  state.mask = FreezeMask::all_active(5);
  state.changed = 8;
  EXPECT_NE(refusal(to_json(state, config), config), "taken") << "changed after it was decided";
  state.changed = 7;
  state.policy = PaperState{.decided = 1, .reached = 3.5};
  EXPECT_EQ(
      refusal(to_json(state, config), config),
      "state.json:1: found a state of another model at $.policy, expected one of a model of 5 "
      "blocks");
}

}  // namespace
}  // namespace frazil
