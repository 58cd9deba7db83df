#pragma once
// What the verbs of this folder share: the run and the data that their flags name.

#include <string>

#include "exec/config/run_config.h"
#include "exec/data/dataset.h"
#include "exec/devices/compute_device.h"
#include "planner/verbs/flags.h"

namespace frazil {

// The run configuration of --run, with --seed put in when given.
RunConfig read_config(const Flags& flags);
// What --device names: the cores, or the GPUs of this machine. Throws InputError for another word
// and where there is no GPU to use; to be asked first, before anything is computed.
DeviceChoice read_processors(const Flags& flags);
// The data a configuration names, with what it validates with taken from the training samples.
// Throws InputError when it does not fit the model.
Dataset load_data(const RunConfig& config);

// An epoch has at least one whole batch. Throws InputError of the run's file where it has none.
void refuse_larger_batch(const RunConfig& config, const Dataset& data, const std::string& file);

// A validation guard has something to read. Throws InputError of the run's file where it has not.
void refuse_unwatched_guard(const RunConfig& config, const std::string& file);

// Tries the rules of exec/devices/numerics.h, before anything is computed: a machine that breaks
// one is told of on stderr, unless `quiet`, in one sentence that begins with the verb.
void check_machine(const std::string& verb, const DeviceChoice& choice, int devices, bool quiet);

// Before minutes of work: a place that cannot be written is said now. Nothing is
// made yet. Both throw InputError.
void check_output_folder(const std::string& folder);
void check_output_file(const std::string& file);

// "frazil train --run digits.json ...": for provenance.
std::string command_text(int argc, char** argv);

}  // namespace frazil
