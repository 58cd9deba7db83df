#include "planner/verbs/cluster_flag.h"

#include "profiles/cluster_json.h"
#include "profiles/processes.h"

namespace frazil {

void describe_processes(boost::program_options::options_description& flags) {
  flags.add_options()("procs", text_value("N"),
                      "what if: the cluster's devices in N processes, neighbours together and "
                      "equally many processes on each host; default: as its file says");
}

Cluster read_given_cluster(const Flags& values) {
  Cluster cluster = read_cluster(required_text(values, "cluster"));
  if (const auto processes = optional_integer(values, "procs", 1, kMostCounted)) {
    deal_processes(cluster, *processes, "--procs");
  }
  return cluster;
}

}  // namespace frazil
