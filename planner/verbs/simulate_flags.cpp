#include "planner/verbs/simulate_flags.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "planner/verbs/cluster_flag.h"
#include "planner/verbs/what_if_flags.h"
#include "planner/verbs/what_if_memory_flags.h"
#include "profiles/quantity_text.h"

namespace frazil {

namespace po = boost::program_options;

void describe_simulate(po::options_description& flags) {
  describe_what_if(flags);
  describe_what_if_memory(flags);
  describe_processes(flags);
  flags.add_options()("compare", po::bool_switch(),
                      "every synchronous (flushing) schedule, ranked")                 //
      ("fits", text_value("N"), "with --compare: micro-batches that fit on a device")  //
      ("plan", text_value("FILE"), "plan to simulate")                                 //
      ("profile", text_value("FILE"), "profile of its model")                          //
      ("cluster", text_value("FILE"), "its cluster")                                   //
      ("change", po::value<std::vector<std::string>>()->composing()->value_name("TEXT"),
       "what if: `device 2 x1.5`, `straggler 3 +30%`, `link 0>1 x2`, `layer 5 x0.5`; may be "
       "repeated; layer 0 of a what-if has no cost, layer s+1 is stage s")                     //
      ("explain", po::bool_switch(), "where the time of each device goes; the critical path")  //
      ("messages", po::bool_switch(), "whether messages come through: three ways of sending")  //
      ("share-links", po::bool_switch(), "with --plan: links shared by max-min fair rates")    //
      ("block-sends", po::bool_switch(),
       "with --plan: a SEND stops its device until it is through")  //
      ("buffers", text_value("N"),
       "with --plan: messages on their way per pair of devices; 0: rendezvous")                //
      ("wait-for-memory", po::bool_switch(), "what finds no room on its device waits for it")  //
      ("overlap-reductions", po::bool_switch(),
       "reductions begin among the backwards: mode fast bucket by bucket, exact node by node")  //
      ("bucket", text_value("SIZE"), "with --overlap-reductions in mode fast, default 25MiB")   //
      ("jitter", text_value("PERCENT"),
       "each time varies by so many percent, such as 2.5: p10, median, p90")                      //
      ("draws", text_value("N"), "with --jitter, default 200")                                    //
      ("seed", text_value("N"), "with --jitter, default 0")                                       //
      ("clip", po::bool_switch(), "steps with a global gradient norm: a barrier before updates")  //
      ("max-memory", text_value("SIZE"),
       "with --stages: refuse a question that takes more memory to answer (default 4GiB)")  //
      ("out", text_value("FILE"), "write the time line as CSV")                             //
      ("chrome", text_value("FILE"), "write the time line as a Chrome trace")               //
      ("json", po::bool_switch(), "answer in JSON");
}

void refuse_with_compare(const Flags& values) {
  refuse_together(values, "--compare",
                  {"schedule", "objective", "budget", "chunks", "in-flight", "out", "chrome",
                   "explain", "messages", "share-links", "block-sends", "buffers",
                   "wait-for-memory", "overlap-reductions", "bucket", "jitter", "draws", "seed"});
}

void refuse_contention_of_what_if(const Flags& values) {
  for (const char* const flag : {"share-links", "block-sends", "buffers"}) {
    if (values.count(flag) == 0 || values[flag].defaulted()) continue;
    refuse_flags(fmt::format("--{} with --stages", flag),
                 "--plan, for a what-if's messages are pure latency");
  }
}

ContentionOptions read_contention(const Flags& values) {
  ContentionOptions options;
  options.share_links = is_set(values, "share-links");
  options.block_sends = is_set(values, "block-sends");
  options.wait_for_memory = is_set(values, "wait-for-memory");
  options.buffers = optional_integer(values, "buffers", 0, kMostCounted);
  for (const char* flag : {"draws", "seed"}) {
    if (values.count(flag) > 0 && values.count("jitter") == 0) {
      refuse_flags(fmt::format("--{} without --jitter", flag), "both");
    }
  }
  if (values.count("jitter") == 0) return options;
  Jitter& jitter = options.jitter.emplace();
  jitter.amplitude_ppm = required_percent_ppm(values, "jitter");
  jitter.draws = integer_or(values, "draws", jitter.draws, 1, 100'000);
  if (values.count("seed") > 0) {
    jitter.seed = static_cast<std::uint64_t>(
        required_integer(values, "seed", 0, std::numeric_limits<int>::max()));
  }
  return options;
}

StepOptions read_step_options(const Flags& values, const Plan& plan) {
  StepOptions options{.clip = is_set(values, "clip")};
  if (is_set(values, "overlap-reductions")) options.overlap.emplace();
  if (values.count("bucket") > 0) {
    if (!options.overlap) refuse_flags("--bucket without --overlap-reductions", "both");
    if (plan.reduction != ReductionMode::kFast) {
      refuse_flags("--bucket for a plan of mode exact", "mode fast, which alone has buckets");
    }
    options.overlap->bucket = parse_bytes(required_text(values, "bucket"), "--bucket");
  }
  return options;
}

}  // namespace frazil
