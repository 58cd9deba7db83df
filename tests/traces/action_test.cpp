#include "traces/action.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "profiles/error.h"
#include "tests/traces/random_action.h"

namespace frazil {
namespace {

constexpr PipelineId kFirst{0};

TEST(Action, HasOneTextThatIsReadBack) {
  for (const char* text : {"2F0",
                           "2I0",
                           "2W0",
                           "2B0",
                           "2R0",
                           "2U",
                           "2SEND_F0",
                           "2RECV_F0",
                           "2SEND_B0",
                           "2RECV_B0",
                           "2REDUCE_GRAD",
                           "2UNSHARD",
                           "2RESHARD",
                           "BARRIER",
                           "1:BARRIER",
                           "(2F1;2B0)OVERLAP_F_B",
                           "(2F1;5I0)OVERLAP_F_B",
                           "3:(2F1;2B0)OVERLAP_F_B",
                           "(2F1;1:5B0)OVERLAP_F_B",
                           "(1:2F1;5B0)OVERLAP_F_B",
                           "(1:2F1;2:5B0-3.2)OVERLAP_F_B",
                           "1:2F0",
                           "2W0-3",
                           "2F0.1",
                           "2F10-12.1",
                           "2SEND_F0>5",
                           "7:2RECV_B1-2.3>0",
                           "2SEND_F0.1>3.0",
                           "2SEND_F0>3.2",
                           "1:2RECV_B4.3>0",
                           "2MOVE(parameters d0>host)",
                           "2MOVE(optimizer[3] host>disk)",
                           "2MOVE(stash[3-5]0-1.2@7 d0>d11)",
                           "1:0MOVE(kv4 disk>host)",
                           "0MOVE(features@2 d2147483647>host)",
                           "2147483647F2147483647"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(to_text(parse_action(text)), text);
  }
}

TEST(Action, IsReadFieldByField) {
  const Action send = parse_action("7:2SEND_B1-4.3>0");
  EXPECT_EQ(send.pipeline, PipelineId{7});
  EXPECT_EQ(send.stage, StageId{2});
  EXPECT_EQ(send.kind, ActionKind::kSendBackward);
  EXPECT_EQ(send.micro_batches, (MicroBatches{MicroBatchId{1}, MicroBatchId{4}}));
  EXPECT_EQ(send.micro_batches->count(), 4);
  EXPECT_EQ(send.slice, 3);
  EXPECT_EQ(send.peer, StageId{0});
  EXPECT_EQ(send.step, 0);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(send.detail));

  const Action relayed = parse_action("2SEND_F0.1>3.4");
  EXPECT_EQ(relayed.slice, 1);
  EXPECT_EQ(relayed.peer, StageId{3});
  EXPECT_EQ(relayed.peer_slice, 4);
  EXPECT_EQ(send.peer_slice, std::nullopt);

  const Action plain = parse_action("2F0");
  EXPECT_EQ(plain.pipeline, kFirst);
  EXPECT_EQ(plain.slice, std::nullopt);
  EXPECT_EQ(plain.peer, std::nullopt);
  EXPECT_EQ(plain.micro_batches->count(), 1);

  const Action move = parse_action("2MOVE(stash[3-5]0-1.2@7 d9>disk)");
  EXPECT_EQ(move.kind, ActionKind::kMove);
  EXPECT_EQ(move.micro_batches, (MicroBatches{MicroBatchId{0}, MicroBatchId{1}}));
  EXPECT_EQ(move.slice, 2);
  const CellMove expected{.cell = CellKind::kStash,
                          .layers = std::pair{LayerId{3}, LayerId{5}},
                          .version = 7,
                          .from = {Place::Kind::kDevice, DeviceId{9}},
                          .to = {Place::Kind::kDisk, DeviceId{}}};
  EXPECT_EQ(std::get<CellMove>(move.detail), expected);
}

TEST(Action, GivesThePrefixOfAPairToBothHalves) {
  const Action pair = parse_action("3:(2F1;4B0)OVERLAP_F_B");
  const Action forward =
      make_action(PipelineId{3}, StageId{2}, ActionKind::kForward, MicroBatchId{1});
  const Action backward =
      make_action(PipelineId{3}, StageId{4}, ActionKind::kBackward, MicroBatchId{0});
  EXPECT_EQ(pair.pipeline, PipelineId{3});
  EXPECT_EQ(pair.stage, StageId{0});
  EXPECT_EQ(std::get<ActionPair>(pair.detail).halves, (std::vector<Action>{forward, backward}));
  EXPECT_EQ(pair, make_pair_action(forward, backward));
}

TEST(Action, LetsTheHalvesOfAPairBelongToTwoPipelines) {
  const Action pair = parse_action("(1:2F1;4B0)OVERLAP_F_B");
  EXPECT_EQ(pair.pipeline, PipelineId{1});
  const auto& halves = std::get<ActionPair>(pair.detail).halves;
  EXPECT_EQ(halves[0].pipeline, PipelineId{1});
  EXPECT_EQ(halves[1].pipeline, PipelineId{0});
}

TEST(Action, IsMadeOfItsParts) {
  const Action forward = make_action(kFirst, StageId{2}, ActionKind::kForward, MicroBatchId{5});
  const Action input =
      make_action(PipelineId{1}, StageId{2}, ActionKind::kBackwardInput, MicroBatchId{5});
  EXPECT_EQ(to_text(forward), "2F5");
  EXPECT_EQ(to_text(input), "1:2I5");
  EXPECT_EQ(to_text(make_stage_action(kFirst, StageId{3}, ActionKind::kReduceGradients)),
            "3REDUCE_GRAD");
  EXPECT_EQ(to_text(make_pair_action(forward, input)), "(2F5;1:2I5)OVERLAP_F_B");
  std::string text = "then ";
  append_text(text, forward);
  EXPECT_EQ(text, "then 2F5");
}

TEST(Action, CarriesItsStepBesideTheText) {
  Action forward = make_action(kFirst, StageId{2}, ActionKind::kForward, MicroBatchId{5});
  const Action backward = make_action(kFirst, StageId{2}, ActionKind::kBackward, MicroBatchId{4});
  set_step(forward, 9);
  EXPECT_EQ(to_text(forward), "2F5");
  EXPECT_NE(forward, parse_action("2F5"));
  Action pair = make_pair_action(forward, backward);
  EXPECT_EQ(pair.step, 9);
  EXPECT_EQ(std::get<ActionPair>(pair.detail).halves[1].step, 9);
  set_step(pair, 11);
  EXPECT_EQ(pair.step, 11);
  EXPECT_EQ(std::get<ActionPair>(pair.detail).halves[0].step, 11);
}

TEST(Action, DiffersWhenOnlyAHalfDiffers) {
  EXPECT_EQ(parse_action("(2F1;2B0)OVERLAP_F_B"), parse_action("(2F1;2B0)OVERLAP_F_B"));
  EXPECT_NE(parse_action("(2F1;2B0)OVERLAP_F_B"), parse_action("(2F1;2I0)OVERLAP_F_B"));
  EXPECT_NE(parse_action("(2F1;2B0)OVERLAP_F_B"), parse_action("(2F1.0;2B0)OVERLAP_F_B"));
}

TEST(ActionKind, HasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int kind = 0; kind < kActionKinds; ++kind) {
    names.insert(kind_name(static_cast<ActionKind>(kind)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kActionKinds));
  EXPECT_EQ(kind_name(ActionKind::kForward), "F");
  EXPECT_EQ(kind_name(ActionKind::kReceiveBackward), "RECV_B");
  EXPECT_EQ(kind_name(ActionKind::kPair), "OVERLAP_F_B");
  EXPECT_EQ(kind_name(ActionKind::kMove), "MOVE");
}

std::set<std::string_view> names_where(bool (*holds)(ActionKind)) {
  std::set<std::string_view> names;
  for (int kind = 0; kind < kActionKinds; ++kind) {
    const auto value = static_cast<ActionKind>(kind);
    if (holds(value)) names.insert(kind_name(value));
  }
  return names;
}

TEST(ActionKind, SaysWhatItCarriesAndWhetherItComputes) {
  using Names = std::set<std::string_view>;
  EXPECT_EQ(names_where(has_micro_batch),
            (Names{"F", "I", "W", "B", "R", "SEND_F", "RECV_F", "SEND_B", "RECV_B"}));
  EXPECT_EQ(names_where(takes_peer), (Names{"SEND_F", "RECV_F", "SEND_B", "RECV_B"}));
  EXPECT_EQ(names_where(is_compute), (Names{"F", "I", "W", "B", "R", "U", "OVERLAP_F_B"}));
}

TEST(Action, OfAnyKindGoesToTextAndBack) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomActions random(seed);
    for (int i = 0; i < 500; ++i) {
      const Action action = random.action();
      const std::string text = to_text(action);
      const Action again = parse_action(text);
      ASSERT_EQ(again, action) << text;
      ASSERT_EQ(to_text(again), text);
    }
  }
}

void mutate(std::string& text, RandomActions& random) {
  constexpr std::string_view kAlphabet =
      "0123456789FIWBRUSENDCVOL_AP:;()>-.@[] dhostk\n\x00"
      "2";
  const auto at =
      static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(text.size()) - 1));
  const char letter = kAlphabet[static_cast<std::size_t>(
      random.integer(0, static_cast<std::int64_t>(kAlphabet.size()) - 1))];
  switch (random.integer(0, 3)) {
    case 0:
      text[at] = letter;
      break;
    case 1:
      text.insert(at, 1, letter);
      break;
    case 2:
      text.erase(at, 1);
      break;
    default:
      text.resize(at);
      break;
  }
}

// Any text that can be read at all is already in its one form.
TEST(Action, IsNeverReadFromASecondForm) {
  int read = 0;
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomActions random(seed);
    for (int i = 0; i < 2000; ++i) {
      std::string text = to_text(random.action());
      for (std::int64_t times = random.integer(1, 3); times > 0 && !text.empty(); --times) {
        mutate(text, random);
      }
      try {
        ASSERT_EQ(to_text(parse_action(text)), text);
        ++read;
      } catch (const InputError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(read, 1000);
  EXPECT_GT(refused, 1000);
}

struct BadText {
  const char* text;
  const char* expected;  // part of the sentence
};

TEST(Action, IsRefusedWithTheRuleItBreaks) {
  const BadText cases[] = {
      {"", "a number"},
      {"F0", "a number"},
      {"2", "a kind after the stage"},
      {"2X0", "a kind after the stage"},
      {"2BW0", "B is I and W fused"},
      {"2f0", "a kind after the stage"},
      {"2F", "a number"},
      {" 2F0", "a number"},
      {"2F0 ", "the end of the action"},
      {"2F 0", "a number"},
      {"02F0", "without leading zeros"},
      {"2F00", "without leading zeros"},
      {"-2F0", "a number"},
      {"2F-1", "a number"},
      {"2147483648F0", "below 2147483648"},
      {"2F99999999999999999999", "below 2147483648"},
      {"2F3-2", "a last number after the first"},
      {"2F3-3", "the first alone"},
      {"2F0-", "a number"},
      {"2F0-2147483647", "fewer than 2147483648 micro-batches"},
      {"2F0.", "a number"},
      {"2F0.-1", "a number"},
      {"2F.1", "a number"},
      {"2F0>3", "the end of the action"},
      {"2SEND_F0>", "a number"},
      {"2U0", "the end of the action"},
      {"2REDUCE_GRAD1", "the end of the action"},
      {"0:2F0", "no prefix for pipeline 0"},
      {":2F0", "a number"},
      {"1:2:2F0", "a kind"},
      {"2BARRIER", "a kind"},
      {"BARRIER0", "the end of the action"},
      {"(2F1;2B0)", "OVERLAP_F_B"},
      {"(2F1)OVERLAP_F_B", "\";\""},
      {"(2B1;2F0)OVERLAP_F_B", "an F and then a B or I"},
      {"(2F1;2W0)OVERLAP_F_B", "an F and then a B or I"},
      {"(2F1;BARRIER)OVERLAP_F_B", "an F and then a B or I"},
      {"((2F1;2B0)OVERLAP_F_B;2B0)OVERLAP_F_B", "a number"},
      {"2OVERLAP_F_B", "a kind"},
      {"1:(1:2F1;2B0)OVERLAP_F_B", "one pipeline before the pair"},
      {"(1:2F1;1:2B0)OVERLAP_F_B", "one pipeline before the pair"},
      {"(0:2F1;1:2B0)OVERLAP_F_B", "no prefix for pipeline 0"},
      {"2MOVE", "\"(\""},
      {"2MOVE(weights d0>host)", "a cell"},
      {"2MOVE(stash[5-3] d0>host)", "a last number after the first"},
      {"2MOVE(stash[3 d0>host)", "\"]\""},
      {"2MOVE(stash  d0>host)", "a place"},
      {"2MOVE(stash d0>gpu)", "a place"},
      {"2MOVE(stash d>host)", "a number"},
      {"2MOVE(stash d0)", "\">\""},
      {"2MOVE(stash@ d0>host)", "a number"},
      {"2MOVE(stash d0>host", "\")\""},
  };
  for (const BadText& bad : cases) {
    SCOPED_TRACE(bad.text);
    try {
      parse_action(bad.text, "orders.csv", 12);
      FAIL() << "read";
    } catch (const InputError& error) {
      EXPECT_EQ(error.file(), "orders.csv");
      EXPECT_EQ(error.line(), 12);
      EXPECT_EQ(error.found(), "action \"" + std::string(bad.text) + "\"");
      EXPECT_NE(error.expected().find(bad.expected), std::string::npos) << error.what();
    }
  }
}

TEST(Action, IsQuotedOnlyInPartWhenLong) {
  const std::string text = "2F" + std::string(100'000, '1');
  try {
    parse_action(text);
    FAIL() << "read";
  } catch (const InputError& error) {
    EXPECT_LT(error.found().size(), 120U);
    EXPECT_NE(error.found().find("...\""), std::string::npos);
  }
}

TEST(Action, OutsideTheGrammarIsABug) {
  const Action forward = make_action(kFirst, StageId{2}, ActionKind::kForward, MicroBatchId{5});
  const auto refuses = [&forward](void (*spoil)(Action&)) {
    Action action = forward;
    spoil(action);
    EXPECT_FALSE(broken_rule(action).empty());
    EXPECT_THROW(to_text(action), std::logic_error);
  };
  EXPECT_TRUE(broken_rule(forward).empty());
  refuses([](Action& action) { action.micro_batches.reset(); });
  refuses([](Action& action) { action.micro_batches->last = MicroBatchId{4}; });
  refuses([](Action& action) { action.micro_batches->first = MicroBatchId{-1}; });
  refuses([](Action& action) { action.slice = -1; });
  refuses([](Action& action) { action.peer = StageId{3}; });
  refuses([](Action& action) { action = parse_action("2SEND_F0"), action.peer_slice = 1; });
  refuses([](Action& action) { action = parse_action("2SEND_F0>3"), action.peer_slice = -1; });
  refuses([](Action& action) { action.stage = StageId{-1}; });
  refuses([](Action& action) { action.kind = ActionKind::kUpdate; });
  refuses([](Action& action) { action.kind = ActionKind::kMove; });
  refuses([](Action& action) { action.kind = ActionKind::kPair; });
  refuses([](Action& action) { action.detail = CellMove{}; });
  refuses([](Action& action) {
    action = parse_action("2MOVE(stash d0>host)");
    std::get<CellMove>(action.detail).to.device = DeviceId{1};
  });
  refuses([](Action& action) {
    action = parse_action("(2F0;2B1)OVERLAP_F_B");
    action.pipeline = PipelineId{1};
  });
  refuses([](Action& action) {
    action = parse_action("BARRIER");
    action.stage = StageId{1};
  });
  EXPECT_THROW(make_action(kFirst, StageId{2}, ActionKind::kUpdate, MicroBatchId{5}),
               std::logic_error);
  EXPECT_THROW(make_stage_action(kFirst, StageId{2}, ActionKind::kForward), std::logic_error);
  EXPECT_THROW(make_pair_action(forward, forward), std::logic_error);
}

}  // namespace
}  // namespace frazil
