#pragma once
// Simulates what PipeTransformer (He et al. 2021) published: its own planner
// (planner/named/pipe_transformer.h) on its machine park (planner/reproduce/rtx5000.h). Where there
// is no table, the published values were read off plots, to about 5 %.

#include <vector>

#include "planner/reproduce/result_table.h"

namespace frazil {

ResultTable reproduce_throughputs();          // single plans, from logs and notes
ResultTable reproduce_ablation();             // Fig. 9, bars
std::vector<ResultTable> reproduce_epochs();  // Fig. 9, samples/s by epoch
ResultTable reproduce_whole_runs();           // from logs
ResultTable reproduce_headline();             // Table 1
ResultTable reproduce_alpha_sweep();          // Fig. 10
ResultTable reproduce_micro_batches();        // Fig. 11
ResultTable reproduce_cache_crossover();      // Fig. 12 and the thresholds in use

// Returns all tables above, in this order.
std::vector<ResultTable> reproduce_pipetransformer_tables();

}  // namespace frazil
