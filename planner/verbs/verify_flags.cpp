#include "planner/verbs/verify_flags.h"

#include "planner/verbs/flags.h"
#include "planner/verbs/kernels_flag.h"

namespace frazil {

Verb verify_verb() {
  return {"verify", "Checks that a plan still runs as its costs say, or as on a good day.",
          "frazil verify --run FILE --cluster FILE --plan FILE [--blocks N] [--baseline FILE]\n"
          "   or: frazil verify --trace TRACE --baseline FILE [--layer-ranges TEXT]"};
}

void describe_verify(boost::program_options::options_description& flags) {
  namespace po = boost::program_options;
  flags.add_options()                                                            //
      ("run", text_value("FILE"), "run configuration: model, data, optimizer")   //
      ("cluster", text_value("FILE"), "cluster (frazil profile --cluster-out)")  //
      ("plan", text_value("FILE"), "plan to verify")                             //
      ("device", text_value("KIND"),
       "what the cluster's devices are here: cpu (default) or cuda")          //
      ("blocks", text_value("N"), "blocks of profile and run, default 40")    //
      ("steps", text_value("N"), "steps of each half of a block, default 8")  //
      ("baseline", text_value("FILE"),
       "what a good day took: written if there is no such file, else compared")  //
      ("trace", po::value<std::vector<std::string>>()->value_name("FILE"),
       "trace of PyTorch's profiler to compare with the baseline, instead of a plan; of several "
       "ranks one each")                                                                      //
      ("micro-batches", text_value("N"), "with --trace: micro-batches of a step, default 1")  //
      ("layer-ranges", text_value("TEXT"),
       "with --trace: names of ranges that mark layers begin so, default layer:")  //
      ("bar", text_value("PERCENT"),
       "largest accepted deviation in percent, default 10; with --baseline 3, and twice the noise "
       "where that is more")  //
      ("plant", text_value("LAYER:PERCENT"),
       "self-test LAYER:PERCENT: that layer runs slower in the run halves")  //
      ("seed", text_value("N"), "instead of the run's own")                  //
      ("quiet", po::bool_switch(), "no progress")                            //
      ("json", po::bool_switch(), "answer in JSON");
  add_kernels_flag(flags);
}

}  // namespace frazil
