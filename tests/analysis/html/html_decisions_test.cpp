#include "analysis/html/html_decisions.h"

#include <gtest/gtest.h>

#include "analysis/tables/cache_table.h"
#include "profiles/quantity_text.h"

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

TEST(HtmlDecisions, SetPredictedTimesOfACacheBesideMeasuredOnes) {
  FreezeTrace trace = make_trace();
  EXPECT_EQ(draw_cache(trace), "");
  EXPECT_TRUE(tabulate_cache(trace).rows.empty());
  trace.events.push_back(
      {1200, CacheEvent{CacheChange::kFilled, 5, 48, Bytes{4'000}, Bytes{0}, 3ms, 4ms, "a < b"}});
  trace.events.push_back(
      {1300, CacheEvent{CacheChange::kDeclined, 7, 0, {}, {}, 0ms, 0ms, "it does not pay"}});
  const Table table = tabulate_cache(trace);
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0],
            (std::vector<std::string>{"1200", "filled", "5", "48", to_text(Bytes{4'000}), "-",
                                      "3.000", "4.000", "0.750", "a < b"}));
  EXPECT_EQ(table.rows[1], (std::vector<std::string>{"1300", "declined", "7", "0", "-", "-", "-",
                                                     "-", "-", "it does not pay"}));
  EXPECT_TRUE(contains(draw_cache(trace), "a &lt; b"));
}

}  // namespace
}  // namespace frazil
