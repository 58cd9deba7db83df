#pragma once
// Shares resources among flows. A flow draws at one rate on all its resources, and at most at a
// rate of its own. Rates are max-min fair: no flow can have more without taking from a flow that
// has no more than it (Bertsekas & Gallager 1992, Data Networks, section 6.5.2: raise all rates
// together; a flow stops at its own limit, or where one of its resources is full). Rates are exact
// fractions. Where a denominator exceeds kLargestPer, as only long chains of unequal bottlenecks
// make it, numbers are rounded down and rounded() is true from then on; other flows may then have a
// little more than their exact rate. A resource is scarce if the own limits of its flows add up to
// more than its capacity. Others limit nobody, so a flow that joins or leaves concerns only the
// flows that are reached from it over scarce resources. Capacities, limits and rates have one unit.

#include <cstdint>
#include <span>
#include <vector>

namespace frazil {

using ResourceId = std::uint32_t;  // a place in `capacities`
using FlowId = std::uint32_t;
__extension__ using WideInteger = __int128;

// The rate amount / per. The rate of a flow is in lowest terms unless it was rounded.
struct Rate {
  WideInteger amount = 0;
  std::int64_t per = 1;
  friend bool operator==(const Rate&, const Rate&) = default;
};

inline constexpr std::int64_t kLargestPer = std::int64_t{1} << 31;

class FairShares {
 public:
  // Requires: capacities from 1 to kLargestQuantity.
  explicit FairShares(std::span<const std::int64_t> capacities);

  // Adds a flow under a number that no present flow has; reused small numbers keep the table small.
  // Requires: most > 0; resources differ from each other, and their memory is kept until the flow
  // leaves.
  void join(FlowId flow, std::int64_t most, std::span<const ResourceId> resources);
  void leave(FlowId flow);  // requires: a present flow
  // Shares out anew what joins and leaves have changed. Returns the flows whose rate has changed,
  // new flows among them, valid until the next call.
  std::span<const FlowId> settle();

  // Returns the rate since the last settle(); 0 for a flow that has joined since.
  const Rate& rate(FlowId flow) const { return flows_[flow].rate; }
  bool rounded() const { return rounded_; }

 private:
  struct Resource {
    std::int64_t capacity = 0;
    WideInteger wanted = 0;  // the sum of its flows' own limits
    std::vector<FlowId> flows;
    std::uint64_t seen = 0;  // the last round that shared it out
    std::uint32_t open = 0;  // its flows that have no rate in this round
    Rate left;               // capacity for these open flows
    Rate level;              // left / open
    bool is_level_old = false;
  };
  struct Flow {
    std::int64_t most = 0;  // the flow's own limit; 0: no such flow
    std::span<const ResourceId> resources;
    Rate rate;
    std::uint64_t seen = 0;
    bool open = false;
  };

  bool is_scarce(const Resource& resource) const { return resource.wanted > resource.capacity; }
  void reach(FlowId flow);
  void reach_all();
  void share_out();
  const Resource* find_fullest();
  void fix(FlowId flow, const Rate& rate);

  std::vector<Resource> resources_;
  std::vector<Flow> flows_;
  std::vector<FlowId> touched_;  // affected since the last settle()
  std::vector<FlowId> reached_;
  std::vector<ResourceId> scarce_;
  std::vector<FlowId> changed_;
  std::uint64_t round_ = 0;
  bool rounded_ = false;
};

}  // namespace frazil
