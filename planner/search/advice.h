#pragma once
// Feasibility advice: what would make a plan fit where none does. It is the least change of each
// kind, found by searching again with the change, with amounts that double and are then bisected:
// with it some plan fits, with one unit less none does (of micro-batch sizes it is the largest that
// fits). At most three times the devices and all blocks but one are tried.

#include <cstdint>
#include <string>
#include <vector>

#include "planner/search/search.h"

namespace frazil {

struct Advice {
  enum class Kind : std::uint8_t {
    kMemoryOfOne,   // `amount` bytes more on `device`
    kMemoryOfEach,  // `amount` bytes more on every device
    kMicroBatch,    // micro-batches of `amount` samples, fewer than any that was offered
    kRecompute,     // stages recompute
    kFast,          // reductions in mode fast, which sums up in any order
    kFreeze,        // the first `amount` blocks are frozen
    kDevices,       // `amount` more copies of the cluster's last device
  };
  Kind kind = Kind::kMemoryOfEach;
  DeviceId device;
  std::int64_t amount = 1;
  friend bool operator==(const Advice&, const Advice&) = default;
};

struct SearchCase {
  Cluster cluster;
  SearchOptions options;
};
// Returns the question with the advised change made. Requires: amount >= 0; for a micro-batch at
// least 1. Amount 0 adds nothing; for recompute it means without.
SearchCase with_advice(const SearchCase& question, const Advice& advice);

// Returns the advice in the order of the kinds. Kinds that do not help are left out, and so are
// kRecompute and kFast if the question has them already. The device of kMemoryOfOne is that of the
// plan nearest to fitting, the ranking's first. Requires: no plan of the case fits.
std::vector<Advice> find_advice(const ModelProfile& profile, const SearchCase& question,
                                const Ranking& ranking);

// Returns "3.1 GiB (3328599654 bytes) more on device2", "micro-batch 4", ...
std::string to_text(const Advice& advice, const Cluster& cluster);
// Returns "another plan would fit with micro-batch 4, or recompute"; if the first advice is for a
// plan that was named before, "it would fit with .. more on device2; another plan would fit with
// ..". Without advice: "no single change makes a plan fit".
std::string list_advice(const std::vector<Advice>& all_advice, const Cluster& cluster,
                        bool first_is_of_named = false);
// Returns the plan that fits with the first advice, judged without the advice, so that its
// shortfall is the advised amount, or which is feasible where the search, which may estimate memory
// too high, missed it. Returns nothing if the first advice is not about memory, or if the plan
// misses another amount.
std::vector<Candidate> find_relieved(const ModelProfile& profile, const SearchCase& question,
                                     const std::vector<Advice>& all_advice);
// Returns why no plan fits and what would help, in the one sentence that every subcommand ends with
// in this case. The plan that it names is the relieved one (find_relieved), if any, else the
// ranking's nearest. If `all_advice` is not given it is found first.
std::string explain_no_plan(const ModelProfile& profile, const SearchCase& question,
                            const Ranking& ranking);
std::string explain_no_plan(const ModelProfile& profile, const SearchCase& question,
                            const Ranking& ranking, const std::vector<Advice>& all_advice);

}  // namespace frazil
