#pragma once
// Finds the forward operation that each backward node of a trace belongs to, and what the node
// computes.
// Autograd numbers nodes as forwards make them, thread by thread, and the profiler gives an
// operation the number of the next node when it begins ("Sequence number"). So node n was made by
// the last operation of its forward thread whose number is at most n. "Fwd thread id" counts
// threads in the profiler's own way: it stands for the host thread on which most of its nodes'
// numbers are found. AccumulateGrad has no number; the engine runs it right after the node that
// made the gradient, so it gets the owner of that node.

#include <cstdint>
#include <string_view>
#include <vector>

#include "traces/kineto/kineto_join.h"

namespace frazil {

enum class BackwardPart : std::uint8_t {
  kInput,   // I: gradients of activations (dgrad)
  kWeight,  // W: gradients of parameters (wgrad)
  kBoth,    // one node computes both
};

// Decides by the name of the node. AccumulateGrad, Embedding* and T (a transposed weight) are W.
// Convolutions, matrix products with a weight (Mm, Addmm, Linear), normalisations, recurrent cells
// and compiled functions compute both. All others are I; match_backward makes such a node both if
// AccumulateGrad comes right behind it.
BackwardPart part_of_node(std::string_view node);

// The result for each work of the trace, in the order of JoinedTrace::works.
struct BackwardMatch {
  // The forward of each backward; -1 for a forward, and for a backward whose forward is not found.
  std::vector<std::int32_t> owner;
  std::vector<BackwardPart> part;  // has no meaning for forwards
};

BackwardMatch match_backward(const JoinedTrace& trace);

}  // namespace frazil
