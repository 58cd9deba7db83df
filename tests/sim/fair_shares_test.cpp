#include "sim/fair_shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/sim/event_reference.h"
#include "tests/sim/random_graph.h"

namespace frazil {
namespace {

// Writes a rate such as "3/2".
std::string to_text(const Rate& rate) {
  const std::string above = std::to_string(static_cast<std::int64_t>(rate.amount));
  return rate.per == 1 ? above : above + "/" + std::to_string(rate.per);
}

// Returns the rates, by flow, of flows that join one after another.
std::vector<std::string> rates_of(const std::vector<std::int64_t>& capacities,
                                  const std::vector<ReferenceFlow>& flows) {
  FairShares shares(capacities);
  for (FlowId flow = 0; flow < flows.size(); ++flow) {
    shares.join(flow, flows[flow].most, flows[flow].resources);
  }
  shares.settle();
  std::vector<std::string> rates;
  for (FlowId flow = 0; flow < flows.size(); ++flow) rates.push_back(to_text(shares.rate(flow)));
  return rates;
}

using Rates = std::vector<std::string>;

TEST(FairShares, AFlowAloneHasWhatItWantsOrWhatThereIs) {
  EXPECT_EQ(rates_of({10}, {{7, {0}}}), Rates({"7"}));
  EXPECT_EQ(rates_of({10}, {{70, {0}}}), Rates({"10"}));
  EXPECT_EQ(rates_of({10, 3}, {{70, {0, 1}}}), Rates({"3"}));
}

TEST(FairShares, EqualFlowsShareExactly) {
  EXPECT_EQ(rates_of({10}, {{10, {0}}, {10, {0}}, {10, {0}}}), Rates({"10/3", "10/3", "10/3"}));
}

TEST(FairShares, WhatASmallFlowLeavesGoesToTheOthers) {
  EXPECT_EQ(rates_of({10}, {{1, {0}}, {10, {0}}, {10, {0}}}), Rates({"1", "9/2", "9/2"}));
}

// One flow crosses both resources, one is alone on each: the crossing flow has no less than its
// fair share of the smaller, and the larger is used up (Bertsekas & Gallager, 6.5.2).
TEST(FairShares, AFlowOverTwoResourcesHasItsShareOfTheFullerOne) {
  EXPECT_EQ(rates_of({10, 4}, {{10, {0, 1}}, {10, {0}}, {10, {1}}}), Rates({"2", "8", "2"}));
}

// Flows come and go at random, and their rates are compared with those of all flows filled anew.
class ComingAndGoing {
 public:
  explicit ComingAndGoing(std::uint64_t seed) : random_(seed) {
    const int resources = draw(random_, 1, 5);
    for (int i = 0; i < resources; ++i) capacities_.push_back(draw(random_, 1, 12));
  }

  void run(int settles) {
    FairShares shares(capacities_);
    for (int i = 0; i < settles; ++i) {
      const int changes = draw(random_, 1, 3);
      for (int change = 0; change < changes; ++change) come_or_go(shares);
      for (const FlowId flow : shares.settle()) {
        ASSERT_NE(shares.rate(flow), known_[flow]) << "a change that is none";
        known_[flow] = shares.rate(flow);
      }
      compare(shares);
    }
    EXPECT_FALSE(shares.rounded());
  }

 private:
  void come_or_go(FairShares& shares) {
    const auto id = static_cast<FlowId>(draw(random_, 0, 7));
    if (there_.contains(id)) {
      shares.leave(id);
      there_.erase(id);
      known_.erase(id);
      return;
    }
    ReferenceFlow flow{.most = draw(random_, 1, 10), .resources = {}};
    for (ResourceId resource = 0; resource < capacities_.size(); ++resource) {
      if (draw(random_, 0, 1) == 0) flow.resources.push_back(resource);
    }
    const ReferenceFlow& kept = there_[id] = flow;
    shares.join(id, kept.most, kept.resources);
  }

  void compare(const FairShares& shares) {
    std::vector<ReferenceFlow> flows;
    for (const auto& [id, flow] : there_) flows.push_back(flow);
    const std::vector<Fraction> expected = fill_with_water(capacities_, flows);
    std::size_t i = 0;
    for (const auto& [id, flow] : there_) {
      const Rate& rate = shares.rate(id);
      EXPECT_TRUE((expected[i++] == Fraction{rate.amount, rate.per})) << "flow " << id;
      EXPECT_EQ(rate, known_[id]) << "a change that was not told";
    }
  }

  Random random_;
  std::vector<std::int64_t> capacities_;
  std::map<FlowId, ReferenceFlow> there_;
  std::map<FlowId, Rate> known_;
};

TEST(FairShares, AgreesWithWaterFillingWhileFlowsComeAndGo) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    ComingAndGoing(seed).run(10);
    if (HasFailure()) return;
  }
}

struct Network {
  std::vector<std::int64_t> capacities;
  std::vector<ReferenceFlow> flows;
};

Network make_large_network(Random& random) {
  Network network;
  for (int i = 0; i < 12; ++i) network.capacities.push_back(draw(random, 1, 1'000'000'000));
  for (int i = 0; i < 40; ++i) {
    ReferenceFlow flow{.most = draw(random, 1, 1'000'000'000), .resources = {}};
    for (ResourceId resource = 0; resource < 12; ++resource) {
      if (draw(random, 0, 4) == 0) flow.resources.push_back(resource);
    }
    network.flows.push_back(flow);
  }
  return network;
}

double value(const Rate& rate) {
  return static_cast<double>(rate.amount) / static_cast<double>(rate.per);
}

// Returns what flows draw, by resource.
std::vector<double> load_of(const Network& network, const FairShares& shares) {
  std::vector<double> load(network.capacities.size());
  for (FlowId flow = 0; flow < network.flows.size(); ++flow) {
    for (const ResourceId resource : network.flows[flow].resources) {
      load[resource] += value(shares.rate(flow));
    }
  }
  return load;
}

// Rates are max-min fair if and only if every flow is at its own limit or crosses a full resource
// on which nobody has more (Bertsekas & Gallager, 6.5.2); and no resource gives more than it has.
TEST(FairShares, EveryFlowHasItsLimitOrABottleneck) {
  constexpr double kNear = 1e-3;  // of rates up to 10^9 in double precision
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Network network = make_large_network(random);
    FairShares shares(network.capacities);
    for (FlowId flow = 0; flow < network.flows.size(); ++flow) {
      shares.join(flow, network.flows[flow].most, network.flows[flow].resources);
    }
    shares.settle();
    const std::vector<double> load = load_of(network, shares);
    std::vector<double> most_on(load.size());
    for (FlowId flow = 0; flow < network.flows.size(); ++flow) {
      for (const ResourceId resource : network.flows[flow].resources) {
        most_on[resource] = std::max(most_on[resource], value(shares.rate(flow)));
      }
    }
    for (std::size_t resource = 0; resource < load.size(); ++resource) {
      EXPECT_LE(load[resource], static_cast<double>(network.capacities[resource]) + kNear);
    }
    for (FlowId flow = 0; flow < network.flows.size(); ++flow) {
      const double rate = value(shares.rate(flow));
      const std::vector<ResourceId>& resources = network.flows[flow].resources;
      const bool held_up = std::any_of(resources.begin(), resources.end(), [&](ResourceId at) {
        return load[at] > static_cast<double>(network.capacities[at]) - kNear &&
               rate > most_on[at] - kNear;
      });
      EXPECT_TRUE(held_up || shares.rate(flow) == (Rate{network.flows[flow].most, 1}));
    }
  }
}

// Makes resources of which the i-th has primes[i] flows of its own; the last of these also crosses
// the next, wider resource. So its level is (capacity - level before) / primes[i], with all primes
// up to there below the line.
Network make_chain(std::size_t length) {
  const std::vector<std::int64_t> primes = {3, 5, 7, 11, 13, 17, 19, 23, 29, 31};
  Network network;
  for (std::size_t i = 0; i < length; ++i) {
    network.capacities.push_back(100 * static_cast<std::int64_t>(i + 1) * primes[i] + 1);
    const auto own = static_cast<ResourceId>(i);
    for (std::int64_t flow = 0; flow < primes[i]; ++flow) {
      network.flows.push_back({1'000'000, {own}});
    }
    if (i + 1 < length) network.flows.back().resources.push_back(own + 1);
  }
  return network;
}

// The distance of a chain's rates below the exact ones; the flows on the chain's last resource come
// last.
struct ChainRates {
  std::vector<Fraction> below_exact;
  Rate last;
  bool rounded = false;
};

ChainRates share_chain(std::size_t length) {
  const Network network = make_chain(length);
  FairShares shares(network.capacities);
  for (FlowId flow = 0; flow < network.flows.size(); ++flow) {
    shares.join(flow, network.flows[flow].most, network.flows[flow].resources);
  }
  shares.settle();
  ChainRates rates{.below_exact = fill_with_water(network.capacities, network.flows),
                   .last = {},
                   .rounded = shares.rounded()};
  for (FlowId flow = 0; flow < network.flows.size(); ++flow) {
    rates.last = shares.rate(flow);
    rates.below_exact[flow] = rates.below_exact[flow] - Fraction{rates.last.amount, rates.last.per};
  }
  return rates;
}

TEST(FairShares, KeepsLongFractions) {
  const ChainRates rates = share_chain(7);
  for (const Fraction& below : rates.below_exact) EXPECT_TRUE(below == Fraction{});
  EXPECT_FALSE(rates.rounded);
  EXPECT_EQ(rates.last.per, 3 * 5 * 7 * 11 * 13 * 17 * 19);
}

TEST(FairShares, RoundsDownFractionsThatAreTooLongAndSaysSo) {
  const ChainRates rates = share_chain(10);
  for (const Fraction& below : rates.below_exact) {
    EXPECT_TRUE((below < Fraction{1, 1'000'000'000}));
    EXPECT_FALSE(below < Fraction{});
  }
  EXPECT_TRUE(rates.rounded);
}

TEST(FairShares, RefusesCapacitiesAndWantsOfNothing) {
  const std::vector<std::int64_t> none = {0};
  EXPECT_THROW(FairShares{none}, std::logic_error);
  const std::vector<std::int64_t> one = {1};
  FairShares shares(one);
  EXPECT_THROW(shares.join(0, 0, {}), std::logic_error);
  shares.join(0, 1, {});
  EXPECT_THROW(shares.join(0, 1, {}), std::logic_error);
}

}  // namespace
}  // namespace frazil
