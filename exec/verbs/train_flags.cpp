#include "exec/verbs/train_flags.h"

#include "planner/named/run_plan.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/kernels_flag.h"
#include "planner/verbs/known_words.h"
#include "planner/verbs/plan_options.h"

namespace frazil {

namespace po = boost::program_options;

void add_train_flags(po::options_description& flags) {
  flags.add_options()                                                                     //
      ("run", text_value("FILE"), "run configuration: model, data, optimizer, freezing")  //
      ("profile", text_value("FILE"), "model profile (frazil profile --out)")             //
      ("cluster", text_value("FILE"), "cluster (frazil profile --cluster-out)")           //
      ("plan", text_value("FILE"),
       "plan to begin with; default: the first that frazil plan --forecast holds for these files, "
       "or, "
       "if nothing freezes, the one that frazil plan ranks first")  //
      ("schedules", known_value("LIST", list_schedule_words(/*with_search=*/false)),
       "schedules to choose from now and when blocks freeze, a comma list; default: all that are "
       "synchronous")  //
      ("max-replicas", text_value("N"),
       "most pipelines, and most devices of a stage, of any plan of the run; default: as many as "
       "fit")  //
      ("planner", known_value("NAME", list_leading_planners()),
       "go on under each mask with the plan that another system's planner has for it, whatever the "
       "transition costs; its pipelines get the run's micro-batches")  //
      ("device", known_value("KIND", kDeviceWords),
       "what the cluster's devices are here: cpu (default) or cuda")  //
      ("gpus", text_value("LIST"),
       "with --device cuda: which GPUs, as 0,1; devices take them in turn; default: all")  //
      ("procs", text_value("N"),
       "spread the devices over so many processes of this machine (default: 1, all are threads of "
       "one); with --listen: over so many that come together")  //
      ("places", text_value("N"),
       "spread the devices over N processes of which --procs are there at the beginning; others "
       "come "
       "while the run goes on")  //
      ("restart-lost", po::bool_switch(),
       "with --procs: begin a new process in each place that is vacant")  //
      ("listen", text_value("ADDRESS:PORT"),
       "lead a run over processes that --join it here, or where a launcher has begun them")  //
      ("join", text_value("ADDRESS:PORT"),
       "serve the run that is led from there; no other flag "
       "but --token-file")  //
      ("token-file", text_value("FILE"),
       "32 random bytes, mode 0600, that prove who belongs to a run beyond this host")  //
      ("transport", known_value("WORD", kTransportWords),
       "what carries tensors between processes: sockets (default), gloo, PyTorch's own and slower, "
       "or nccl between the GPUs of --device cuda")                         //
      ("keep-plan", po::bool_switch(), "never re-plan when blocks freeze")  //
      ("switch-time", text_value("TIME"),
       "fixed cost of changing plans, besides moving state, by which plans are chosen; default: "
       "what "
       "the run measures as it begins")                                //
      ("no-freeze", po::bool_switch(), "train all blocks to the end")  //
      ("freeze", text_value("FILE"),
       "instead of the run's own \"freeze\": that JSON object itself, or a file that holds it")  //
      ("init-from", text_value("FILE"),
       "start from the weights of this safetensors file, which names them as weights.safetensors "
       "of such a run does")                                 //
      ("seed", text_value("N"), "instead of the run's own")  //
      ("steps", text_value("N"),
       "end after so many steps; default: all epochs; with --resume: go on to so many")  //
      ("out", text_value("FOLDER"),
       "folder for weights.safetensors, trace.jsonl, events.jsonl, plans and time lines (for "
       "frazil report)")                                                      //
      ("force", po::bool_switch(), "replace the run in the folder of --out")  //
      ("checkpoint-every", text_value("N"),                                   //
       "steps from checkpoint to checkpoint, under the folder of --out; the last one is of the "
       "end, "
       "or of the step at which SIGTERM or SIGINT ended the run (exit code 143 or 130)")  //
      ("resume", po::bool_switch(),                                                       //
       "frazil train --resume FOLDER: go on with the run of this folder from its newest good "
       "checkpoint, with the flags it was begun with, or under another plan, profile and cluster; "
       "steps done again must give the losses recorded, or the exit code is 1")  //
      ("accept-other-kernels", po::bool_switch(),
       "with --resume: go on even if this process has other kernels than those that the run was "
       "computed by; bits differ from there on, and journal and report say so")  //
      ("check", po::bool_switch(),
       "read and check all inputs, say so, and end: nothing is trained or written")  //
      ("quiet", po::bool_switch(), "no progress, but warnings")                      //
      ("json", po::bool_switch(), "answer in JSON");
  add_kernels_flag(flags);
}

}  // namespace frazil
