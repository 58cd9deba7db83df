#pragma once
// The subcommands of this folder share these functions: they read the run and the data that flags
// name and check the machine and the output places.

#include <functional>
#include <set>
#include <string>

#include "exec/config/configured_data.h"
#include "exec/config/run_config.h"
#include "exec/data/dataset.h"
#include "exec/devices/compute_device.h"
#include "planner/verbs/flags.h"
#include "profiles/error.h"

namespace frazil {

// Returns the run configuration in the file of --run, with the seed of --seed (0 to 10^9) if that
// is given. Throws InputError.
RunConfig read_config(const Flags& flags);
// Puts the seed of --seed, if that is given, in the place of the configuration's own.
void choose_seed(const Flags& flags, RunConfig& config);
// Returns what --device names: "cpu", the cores, also if the flag is not given, or "cuda", the GPUs
// of --gpus, or else all of this machine. `word` stands for --device where that is not given. With
// FRAZIL_GPU_WAITS=1 in the environment the host waits for GPUs after every action. Throws
// InputError for another word, for --gpus of cores, and if there is no GPU to use. Must be called
// before the first backward pass, for it opens the plug-in (exec/devices/load_accelerator.h).
DeviceChoice read_processors(const Flags& flags, const std::string& word = "cpu");
// Refuses each flag but `allowed` beside --join, for the leader of the run has decided all else.
void refuse_beside_join(const Flags& flags, const std::set<std::string>& allowed);
// Makes sure that an epoch has at least one whole batch. Throws InputError naming `file`, the
// run's, if not.
void refuse_larger_batch(const RunConfig& config, const Dataset& data, const std::string& file);

// Makes sure that a validation guard (planner/freezing/decorators.h), if the run has one, has
// samples to read. Throws InputError naming `file`, the run's, if not.
void refuse_unwatched_guard(const RunConfig& config, const std::string& file);

// Tries the rules of exec/devices/numerics.h and exec/devices/device_numerics.h, the latter on
// `devices` devices of the choice (cores: at most as many as there are). The first rule that the
// machine breaks is told on stderr, in one sentence that begins with the subcommand, and so is that
// there are more devices than cores; the run goes on. If `quiet`, nothing is tried or told. Throws
// InputError if a GPU cannot be used.
void check_machine(const std::string& verb, const DeviceChoice& choice, int devices, bool quiet);

// Checks the model file of the run, if it has one, against what PyTorch computed when it was
// exported (exec/models/imported/witness.h), and tells on stderr if that held to a tolerance only;
// nothing is told if `quiet`. Returns what provenance says of it; "" for a model of Frazil's own.
// Throws InputError for a file that computes anything else.
std::string check_model_file(const std::string& verb, const RunConfig& config, bool quiet);

// Throw InputError if a place cannot be written, so that it is known before minutes of work: if no
// folder can be made in the nearest folder that exists, or if an output file is a folder or a
// special file. Nothing is left behind.
void check_output_folder(const std::string& folder);
void check_output_file(const std::string& file);

// Prepares this process for torch, with the kernels that --kernels names, and calls `body`. What
// torch throws goes on in one sentence (rethrow_told() in exec/devices/step_fault.h).
ExitCode run_with_torch(const Flags& flags, const std::function<ExitCode()>& body);

// Returns "frazil train --run digits.json ...", for provenance.
std::string command_text(int argc, char** argv);

}  // namespace frazil
