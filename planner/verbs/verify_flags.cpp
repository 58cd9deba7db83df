#include "planner/verbs/verify_flags.h"

#include <filesystem>
#include <system_error>

#include "planner/verbs/kernels_flag.h"
#include "planner/verbs/known_words.h"
#include "profiles/error.h"

namespace frazil {

Verb verify_verb() {
  return {"verify", "Checks that a plan still runs as its costs say, or as on a good day.",
          "frazil verify --run FILE --cluster FILE --plan FILE [--blocks N] [--baseline FILE]\n"
          "   or: frazil verify --trace TRACE --baseline FILE [--layer-ranges TEXT]\n"
          "   or: frazil verify ... --write-baseline FILE [--force]"};
}

void describe_verify(boost::program_options::options_description& flags) {
  namespace po = boost::program_options;
  flags.add_options()                                                            //
      ("run", text_value("FILE"), "run configuration: model, data, optimizer")   //
      ("cluster", text_value("FILE"), "cluster (frazil profile --cluster-out)")  //
      ("plan", text_value("FILE"), "plan to verify")                             //
      ("device", known_value("KIND", kDeviceWords),
       "what the cluster's devices are here: cpu (default) or cuda")  //
      ("gpus", text_value("LIST"),
       "with --device cuda: which GPUs, as 0,1; devices take them in turn; default: all")  //
      ("procs", text_value("N"),
       "spread the devices over so many processes of this machine; default: 1")  //
      ("blocks", text_value("N"), "blocks of profile and run, default 40")       //
      ("steps", text_value("N"), "steps of each half of a block, default 8")     //
      ("accept-load", po::bool_switch(),
       "counts blocks however busy other programs keep the machine; a baseline is of such days or "
       "of quiet ones")  //
      ("baseline", text_value("FILE"),
       "what a good day took (--write-baseline), to compare with")  //
      ("write-baseline", text_value("FILE"),
       "a good day is today: stores what it takes, and compares nothing")  //
      ("force", po::bool_switch(),
       "with --write-baseline: takes the place of a baseline that is there")  //
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

std::optional<BaselineFile> read_baseline_file(const Flags& flags) {
  const std::optional<std::string> written = optional_text(flags, "write-baseline");
  const std::optional<std::string> compared = optional_text(flags, "baseline");
  if (written) refuse_together(flags, "--write-baseline", {"baseline", "bar"});
  const bool is_forced = is_set(flags, "force");
  if (is_forced && !written) refuse_flags("--force without --write-baseline", "both");
  if (!written && !compared) return std::nullopt;
  // What cannot be looked at is refused where it is opened.
  std::error_code error;
  const auto found = std::filesystem::status(written ? *written : *compared, error).type();
  const bool is_there = found != std::filesystem::file_type::not_found;
  if (written) {
    if (is_there && found != std::filesystem::file_type::none && !is_forced) {
      refuse_flags("--write-baseline " + *written + ", which is there already",
                   "another name, or --force to take its place");
    }
    return BaselineFile{*written, true};
  }
  if (!is_there && !compared->empty()) {
    refuse_flags("--baseline " + *compared + ", and no such file",
                 "what --write-baseline stored on a good day");
  }
  return BaselineFile{*compared, false};
}

}  // namespace frazil
