#pragma once
// Reads the cluster of a question: the file of --cluster, its devices dealt to processes as --procs
// says.

#include "planner/verbs/flags.h"
#include "profiles/cluster.h"

namespace frazil {

// Adds --procs. The caller describes --cluster.
void describe_processes(boost::program_options::options_description& flags);

// Returns the cluster. Throws InputError for a missing --cluster, for what read_cluster() refuses
// and for processes that deal_processes() (profiles/processes.h) cannot make.
Cluster read_given_cluster(const Flags& values);

}  // namespace frazil
