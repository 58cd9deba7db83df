#pragma once
// PipeDream's profile of a model (SOSP'19), graph.txt -> a model profile. Lines in any order:
//   node7 -- LSTM(2048, 1024) -- forward_compute_time=3.190, backward_compute_time=5.348,
//       activation_size=[6291456.0; 131072.0], parameter_size=50364416.000   (one line)
//   <tab>node6 -- node7
// Times are ms, sizes bytes, both of one micro-batch. A description may hold the separator; a last
// " -- stage_id=N" (of a graph that was cut before) is read and left out.
// - A node that reads nothing and is called Input, or Input and a number, is the loader of the
// data:
//   it becomes no layer, its times are kept in the provenance alone (data_loading_ns), its sizes
//   are what the layers without an incoming edge read.
// - Layers stand in a topological order, of several possible ones by the names of their nodes; one
//   block each. The loss is at every layer that nobody reads but an unread __getitem__.
// - Backward is one number: I and W by the rule of model_profile.h, and the profile carries the
// flag.
// - An edge carries the activation of the node that it leaves, a list as several tensors; a stash
// is
//   a layer's input alone, a lower bound. Bytes per sample are rounded up.

#include <string>
#include <string_view>

#include "profiles/import/imported_profile.h"

namespace frazil {

// Throws InputError for anything else: a cycle, a node again or unknown, a number that is none, ...
ImportedProfile parse_pipedream_graph(std::string_view text, const std::string& file,
                                      const ImportOptions& options);

}  // namespace frazil
