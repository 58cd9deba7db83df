#pragma once
// Implements frazil plan --graph, which cuts a work graph over devices and prints a table or one
// JSON object.

#include <string>

#include "planner/partition/partition_graph.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/flags.h"

namespace frazil {

// Adds --graph, --devices and --states.
void add_graph_flags(boost::program_options::options_description& flags);
// Runs the subcommand plan if --graph is given. Throws InputError and InfeasibleError.
ExitCode plan_graph_verb(const Flags& values);

std::string print_graph_partition(const WorkGraph& graph, const GraphPartition& partition,
                                  const std::string& file);
std::string graph_partition_json(const WorkGraph& graph, const GraphPartition& partition);

}  // namespace frazil
