#include "analysis/html_decisions.h"

#include <gtest/gtest.h>

namespace frazil {
namespace {

using namespace std::chrono_literals;

FreezeTrace make_trace() {
  const FreezeMask frozen = FreezeMask::frozen_prefix(3, BlockId{1});
  FreezeTrace trace;
  trace.blocks = {"a", "b", "c"};
  trace.events = {
      {0, MaskEvent{FreezeMask::all_active(3), "alpha", "Begun."}},
      {0, TransitionEvent{1ms, 2ms, 3ms, Bytes{0}}},
      {5, MaskEvent{FreezeMask::all_active(3), "amortisation", "It costs < it saves."}},
      {1200, MaskEvent{frozen, "alpha", "a < b."}},
      {1200, TransitionEvent{4ms, 5ms, 6ms, Bytes{77}, TransitionTimes{7ms, 8ms, 9ms}}}};
  return trace;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(HtmlDecisions, TellWhoChangedTheMaskAndWhy) {
  const std::string markup = draw_decisions(make_trace());
  EXPECT_TRUE(contains(markup, "Decisions (2)")) << markup;
  EXPECT_TRUE(contains(markup, "1,200"));
  EXPECT_TRUE(contains(markup, "001"));
  EXPECT_TRUE(contains(markup, "a &lt; b."));
  EXPECT_FALSE(contains(markup, "amortisation")) << "it changes nothing";
  FreezeTrace bare = make_trace();
  bare.events = {{0, MaskEvent{FreezeMask::all_active(3)}}};
  EXPECT_EQ(draw_decisions(bare), "") << "a trace that does not say who decided";
}

TEST(HtmlDecisions, SetPredictedPartsOfATransitionBesideMeasuredOnes) {
  FreezeTrace trace = make_trace();
  const std::string markup = draw_transitions(trace);
  EXPECT_TRUE(contains(markup, "moving predicted ms"));
  for (const char* const time : {"4.000", "5.000", "6.000", "7.000", "8.000", "9.000"}) {
    EXPECT_TRUE(contains(markup, time)) << time;
  }
  trace.events.pop_back();
  EXPECT_FALSE(contains(draw_transitions(trace), "predicted"));
  trace.events.clear();
  EXPECT_EQ(draw_transitions(trace), "");
}

}  // namespace
}  // namespace frazil
