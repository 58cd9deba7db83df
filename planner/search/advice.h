#pragma once
// What would make a plan fit where none does: the least change of each kind, found by searching
// again with it. With the change some plan fits, with one unit less none does.

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
    kDevices,       // `amount` more devices like the last
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
// The same question with the change made. Requires: amount >= 0; 0 changes nothing, and of samples
// a micro-batch has at least 1.
SearchCase with_advice(const SearchCase& question, const Advice& advice);

// In the order of the kinds; none where a kind does not help, or is in use already. The one device
// is that of the plan that misses least. Requires: no plan of the case fits.
std::vector<Advice> find_advice(const ModelProfile& profile, const SearchCase& question,
                                const Ranking& ranking);

// "3.1 GiB more on device2", "micro-batch 4", ...
std::string to_text(const Advice& advice, const Cluster& cluster);
// "another plan would fit with micro-batch 4, or recompute"; where the first is of a plan that was
// named before: "it would fit with 3.1 GiB more on device2; another plan would fit with ..".
std::string list_advice(const std::vector<Advice>& all_advice, const Cluster& cluster,
                        bool first_is_of_named = false);
// The plan that the first change, of memory, makes fit, judged without it, where it misses just so
// much; else nothing.
std::vector<Candidate> find_relieved(const ModelProfile& profile, const SearchCase& question,
                                     const std::vector<Advice>& all_advice);
// Why no plan fits and what would help, in the one sentence that every verb ends with there. The
// plan that it names is the relieved one, if any, else the ranking's nearest. Without `all_advice`
// they are found first.
std::string explain_no_plan(const ModelProfile& profile, const SearchCase& question,
                            const Ranking& ranking);
std::string explain_no_plan(const ModelProfile& profile, const SearchCase& question,
                            const Ranking& ranking, const std::vector<Advice>& all_advice);

}  // namespace frazil
