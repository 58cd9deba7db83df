#pragma once
// Makes steps for tests of the Chakra export and reads exported files back.

#include <cstdint>
#include <random>
#include <vector>

#include "planner/interop/chakra.h"
#include "planner/what_if/what_if.h"
#include "tests/planner/interop/chakra_replay.h"

namespace frazil {

using ChakraFiles = std::vector<std::vector<ChakraFileNode>>;  // by device

inline int below(std::mt19937_64& random, int limit) {
  return static_cast<int>(random() % static_cast<std::uint64_t>(limit));
}

// Makes a question with F, I and W of 1 ms each and hops of 313 us.
WhatIf make_question(ScheduleKind kind, int stages, int micro_batches);

// Makes a chain with one layer per device, without updates; F, I and W take 1 ms each.
WhatIfInputs make_chain_inputs(int stages, int micro_batches, Bytes boundary, const Link& link);

ChakraTraces to_chakra(const WhatIfInputs& inputs, const SimulatedStep& step);
ChakraFiles read_all(const ChakraTraces& traces);

}  // namespace frazil
