#pragma once
// clang-format off
// Reads a model profile from graph.txt, PipeDream's profile of a model (SOSP'19). Its lines come in
// any order:
//   node7 -- LSTM(2048, 1024) -- forward_compute_time=3.190, backward_compute_time=5.348,
//       activation_size=[6291456.0; 131072.0], parameter_size=50364416.000   (one line)
//   <tab>node6 -- node7
// Times are ms, sizes bytes, both of one micro-batch. A description may hold the separator. A last
// " -- stage_id=N" (from a graph that was partitioned before) is read and left out.
// - A node that reads nothing and is called Input, or Input and a number, loads the data. It is no
//   layer: its times are kept in the provenance alone (data_loading_ns), and its sizes are what
//   the layers without an incoming edge read.
// - Layers stand in the topological order that prefers the first node by name; each is a block.
// - The loss is at every layer that nobody reads, except an unread __getitem__; if there is no
//   such layer, the last layer has the loss.
// - Backward is one number: the rule of profiles/split_backward.h makes I (dgrad) and W (wgrad), and the
//   profile carries the flag.
// - An edge carries the activation of the node that it leaves, a list as several tensors. A stash
//   (saved activations) is a layer's input alone, a lower bound. Bytes per sample are rounded up.
// clang-format on

#include <string>
#include <string_view>

#include "profiles/import/imported_profile.h"

namespace frazil {

// Throws InputError for anything else: a cycle, a node that is repeated or unknown, a bad number,
// ...
ImportedProfile parse_pipedream_graph(std::string_view text, const std::string& file,
                                      const ImportOptions& options);

}  // namespace frazil
