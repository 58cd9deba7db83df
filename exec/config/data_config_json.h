#pragma once
// "data" of a run configuration, as text (docs/formats.md lists its keys).

#include <filesystem>
#include <string>

#include "exec/data/data_config.h"
#include "exec/tensors/sample_form.h"
#include "profiles/json_settings.h"

namespace frazil {

// Parses the object. Throws InputError. Paths stay as they are written.
DataConfig parse_data(const JsonCursor& object);
// Returns the text that parse_data() reads back as the same, without the keys of other kinds.
std::string to_json(const DataConfig& data);

// The objects of a configuration that errors point at, where it has them.
struct ModelAndData {
  Given model;
  Given data;
};
// Throws InputError unless the data, as far as the configuration tells, are what a model with these
// samples reads.
void expect_fitting(const DataConfig& data, const SampleForm& form, const ModelAndData& objects);

// Makes the paths absolute, which are relative to `place`; digits without a path are the shipped
// ones.
void find_files(DataConfig& data, const std::filesystem::path& place);

}  // namespace frazil
