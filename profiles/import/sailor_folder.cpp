#include "profiles/import/sailor_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <tuple>

#include "profiles/error.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> list_folder(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (auto entry = fs::directory_iterator(folder, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    entries.push_back(entry->path());
  }
  if (error) throw InputError(folder.string(), 0, "no such folder", "a folder to read");
  std::sort(entries.begin(), entries.end());
  return entries;
}

fs::path take_only(const fs::path& folder, const std::string& noun) {
  const std::vector<fs::path> entries = list_folder(folder);
  if (entries.size() != 1) {
    throw InputError(folder.string(), 0, fmt::format("{} entries", entries.size()), "one " + noun);
  }
  return entries.front();
}

// Adds the .json files of a folder and of the folders below. Links to folders are not followed.
void add_plan_files(const fs::path& folder, std::vector<fs::path>& files) {
  for (const fs::path& entry : list_folder(folder)) {
    std::error_code ignored;
    if (fs::is_directory(fs::symlink_status(entry, ignored))) {
      add_plan_files(entry, files);
    } else if (entry.extension() == ".json") {
      files.push_back(entry);
    }
  }
}

std::vector<SailorPlan> read_plans(const fs::path& folder, const SailorFolder& read) {
  std::vector<fs::path> files;
  add_plan_files(folder, files);
  if (files.empty()) throw InputError(folder.string(), 0, "no plan", "at least one .json");
  std::vector<SailorPlan> plans;
  for (const fs::path& file : files) {
    SailorPlan plan = parse_sailor_plan(read_text_file(file), file.string());
    refuse_other_layers(plan, read.config.layers, file.string());
    if (plan.gpu != read.gpu) {
      throw InputError(file.string(), 0, fmt::format("GPU \"{}\"", to_one_line(plan.gpu)),
                       fmt::format("\"{}\", whose times were measured", read.gpu));
    }
    plans.push_back(std::move(plan));
  }
  const auto order = [](const SailorPlan& a, const SailorPlan& b) {
    const auto devices = [](const SailorPlan& plan) {
      return plan.stages.size() * static_cast<std::size_t>(plan.replicas);
    };
    return std::tuple(devices(a), a.replicas, a.batch_size, a.name) <
           std::tuple(devices(b), b.replicas, b.batch_size, b.name);
  };
  std::sort(plans.begin(), plans.end(), order);
  return plans;
}

}  // namespace

SailorFolder read_sailor_measurements(const fs::path& folder) {
  SailorFolder read;
  const fs::path config = take_only(folder / "configs", "training configuration");
  read.config = parse_sailor_config(read_text_file(config), config.string());
  const fs::path gpu = take_only(folder / "layer_profiles" / read.config.model, "kind of GPU");
  read.gpu = gpu.filename().string();
  const fs::path times = gpu / "profile.json";
  const fs::path sizes = folder / "llm_info.json";
  const fs::path links = folder / "providers" / "network_coeffs_all_homo.json";
  read.times = parse_sailor_times(read_text_file(times), times.string());
  read.sizes = parse_sailor_sizes(read_text_file(sizes), sizes.string(), read.config.model);
  read.links = parse_sailor_links(read_text_file(links), links.string(), read.gpu);
  return read;
}

SailorFolder read_sailor_folder(const fs::path& folder) {
  SailorFolder read = read_sailor_measurements(folder);
  read.plans = read_plans(folder / "validation", read);
  return read;
}

}  // namespace frazil
