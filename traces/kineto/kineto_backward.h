#pragma once
// Which forward operation each backward node of a trace belongs to, and what it computes.
//
// Autograd numbers nodes as forwards make them, thread by thread, and the profiler gives an
// operation the number of the next node when it begins ("Sequence number"). So node n was made by
// the last operation of its forward thread whose number is at most n. "Fwd thread id" counts
// threads in the profiler's own way: it stands for the host thread on which most of its nodes'
// numbers are found. AccumulateGrad has no number; the engine runs it right after the node that
// made the gradient, and it goes where that node goes.

#include <cstdint>
#include <string_view>
#include <vector>

#include "traces/kineto/kineto_join.h"

namespace frazil {

enum class BackwardPart : std::uint8_t {
  kInput,   // I: gradients of activations
  kWeight,  // W: gradients of parameters
  kBoth,    // one node computes both
};

// The rule, by the kind of node: AccumulateGrad, Embedding* and T (a transposed weight) are W;
// convolutions, matrix products with a weight (Mm, Addmm, Linear), normalisations, recurrent cells,
// compiled functions, and any other node with AccumulateGrad right behind it compute both; the rest
// is I.
BackwardPart part_of_node(std::string_view node);

// By work of the trace, in their order.
struct BackwardMatch {
  std::vector<std::int32_t> owner;  // the forward of a backward; -1: none, or not in the trace
  std::vector<BackwardPart> part;   // of forwards without meaning
};

BackwardMatch match_backward(const JoinedTrace& trace);

}  // namespace frazil
