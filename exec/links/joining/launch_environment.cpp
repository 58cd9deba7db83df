#include "exec/links/joining/launch_environment.h"

#include <unistd.h>

#include <array>
#include <utility>

#include "exec/links/joining/launch_variables.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// A launcher's variables for number and count.
struct Names {
  Launcher launcher;
  const char* number;
  const char* count;
};
constexpr Names kRanks{Launcher::kVariables, "RANK", "WORLD_SIZE"};
constexpr Names kOpenMpi{Launcher::kOpenMpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"};
constexpr Names kPmi{Launcher::kPmi, "PMI_RANK", "PMI_SIZE"};
constexpr Names kSlurm{Launcher::kSlurm, "SLURM_PROCID", "SLURM_NTASKS"};

bool has_any(const LaunchVariables& variables, const Names& names) {
  return variables.has(names.number) || variables.has(names.count);
}

// Only srun starts a process for each task; the script of a batch job has these variables too.
bool has_slurm(const LaunchVariables& variables) {
  return variables.has("SLURM_STEP_ID") && variables.has(kSlurm.number);
}

std::optional<LocalPlace> find_local(const LaunchVariables& variables, const std::string& number,
                                     const std::string& count, int processes) {
  if (!variables.has(number) && !variables.has(count)) return std::nullopt;
  const auto [local, locals] = variables.pair(number, count);
  if (locals > processes) {
    refuse_variables(count + "=" + variables.text(count) + " in a launch of " +
                         std::to_string(processes) + " processes",
                     "no more processes on one host than in all");
  }
  return LocalPlace{local, locals};
}

// Slurm tells the tasks of its nodes as "2(x3),1": two on each of three nodes, one on the next.
int tasks_of_node(const std::string& text, int node) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const std::size_t open = part.find("(x");
    const std::optional<int> tasks = parse_count(part.substr(0, open));
    std::optional<int> nodes = 1;
    if (open != std::string_view::npos) {
      nodes = part.back() == ')' ? parse_count(part.substr(open + 2, part.size() - open - 3))
                                 : std::nullopt;
    }
    if (!tasks || !nodes) break;
    if (node < *nodes) return *tasks;
    node -= *nodes;
  }
  refuse_variables("SLURM_STEP_TASKS_PER_NODE=" + text, "the tasks of every node, as 2(x3),1");
}

std::optional<LocalPlace> find_local_of_slurm(const LaunchVariables& variables, int processes) {
  const std::optional<int> local = variables.find("SLURM_LOCALID", 0, kMostProcesses);
  const std::optional<int> node = variables.find("SLURM_NODEID", 0, kMostProcesses);
  const std::string tasks = variables.text("SLURM_STEP_TASKS_PER_NODE");
  if (!local || !node || tasks.empty()) return std::nullopt;
  const int locals = tasks_of_node(tasks, *node);
  if (*local >= locals || locals > processes) {
    refuse_variables("SLURM_LOCALID=" + variables.text("SLURM_LOCALID") +
                         " beside SLURM_STEP_TASKS_PER_NODE=" + tasks,
                     "a task of its node");
  }
  return LocalPlace{*local, locals};
}

LaunchPlace read_pair(const LaunchVariables& variables, const Names& names) {
  const auto [process, processes] = variables.pair(names.number, names.count);
  LaunchPlace place;
  place.launcher = names.launcher;
  place.process = process;
  place.processes = processes;
  return place;
}

LaunchPlace read_ranks(const LaunchVariables& variables) {
  LaunchPlace place = read_pair(variables, kRanks);
  place.local = find_local(variables, "LOCAL_RANK", "LOCAL_WORLD_SIZE", place.processes);
  place.job = variables.text("TORCHELASTIC_RUN_ID");
  if (place.job.empty()) return place;
  place.launcher = Launcher::kTorchrun;
  place.restarts = variables.find("TORCHELASTIC_RESTART_COUNT", 0, kMostProcesses).value_or(0);
  place.most_restarts = variables.find("TORCHELASTIC_MAX_RESTARTS", 0, kMostProcesses).value_or(0);
  place.error_file = variables.text("TORCHELASTIC_ERROR_FILE");
  const std::string store = variables.text("TORCHELASTIC_USE_AGENT_STORE");
  if (!store.empty() && store != "True" && store != "False") {
    refuse_variables("TORCHELASTIC_USE_AGENT_STORE=" + store, "True or False");
  }
  place.agent_store = store == "True";
  return place;
}

LaunchPlace read_open_mpi(const LaunchVariables& variables) {
  LaunchPlace place = read_pair(variables, kOpenMpi);
  place.local = find_local(variables, "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
                           place.processes);
  place.job = variables.text("PMIX_NAMESPACE");
  return place;
}

LaunchPlace read_pmi(const LaunchVariables& variables) {
  LaunchPlace place = read_pair(variables, kPmi);
  place.local = find_local(variables, "MPI_LOCALRANKID", "MPI_LOCALNRANKS", place.processes);
  place.job = variables.text("PMI_JOBID");
  return place;
}

LaunchPlace read_slurm(const LaunchVariables& variables) {
  Names names = kSlurm;
  if (variables.has("SLURM_STEP_NUM_TASKS")) names.count = "SLURM_STEP_NUM_TASKS";
  LaunchPlace place = read_pair(variables, names);
  place.local = find_local_of_slurm(variables, place.processes);
  place.job = variables.text("SLURM_JOB_ID") + "." + variables.text("SLURM_STEP_ID");
  return place;
}

// Throws unless `other`, where it is set, says what `place` says.
void check_agrees(const LaunchVariables& variables, const LaunchPlace& place, const Names& names,
                  const Names& other) {
  const auto [process, processes] = variables.pair(other.number, other.count);
  if (process == place.process && processes == place.processes) return;
  const auto told = [&](const Names& set) {
    return std::string(set.number) + "=" + variables.text(set.number) + ", " + set.count + "=" +
           variables.text(set.count);
  };
  refuse_variables(told(names) + " beside " + told(other),
                   "one launcher, or the same numbers from both; unset those that do not count");
}

std::optional<LaunchPlace> read_launcher(const LaunchVariables& variables) {
  const bool mpi[] = {has_any(variables, kOpenMpi), has_any(variables, kPmi)};
  if (has_any(variables, kRanks)) {
    const LaunchPlace place = read_ranks(variables);
    if (mpi[0]) check_agrees(variables, place, kRanks, kOpenMpi);
    if (mpi[1]) check_agrees(variables, place, kRanks, kPmi);
    if (place.launcher == Launcher::kVariables && has_slurm(variables)) {
      check_agrees(variables, place, kRanks, kSlurm);
    }
    return place;
  }
  if (mpi[0]) {
    const LaunchPlace place = read_open_mpi(variables);
    if (mpi[1]) check_agrees(variables, place, kOpenMpi, kPmi);
    return place;
  }
  if (mpi[1]) return read_pmi(variables);
  if (has_slurm(variables)) return read_slurm(variables);
  return std::nullopt;
}

std::optional<LaunchAddress> find_master(const LaunchVariables& variables) {
  if (!variables.has("MASTER_ADDR") && !variables.has("MASTER_PORT")) return std::nullopt;
  const int port = variables.need("MASTER_PORT", "MASTER_ADDR", 1, kMostPort);
  const std::string host = variables.text("MASTER_ADDR");
  if (host.empty()) refuse_variables("MASTER_PORT without MASTER_ADDR", "both of them, or none");
  return LaunchAddress{host, port};
}

LaunchPlace read_flags(const LaunchFlags& flags) {
  LaunchPlace place;
  if (flags.join.empty()) {
    place.process = 0;
    place.processes = flags.processes == 0 ? 1 : flags.processes;
    place.meeting = parse_address(flags.listen, "--listen");
    return place;
  }
  place.processes = 0;
  place.meeting = parse_address(flags.join, "--join");
  if (place.meeting->port == 0) {
    throw InputError("--join", 0, "port 0", "the port that the leader listens at");
  }
  return place;
}

// Where process 0 listens is a flag's to say; an agent's store stays where the launcher says.
void place_meeting(const LaunchVariables& variables, const LaunchFlags& flags, LaunchPlace& place) {
  if (!flags.join.empty()) {
    throw InputError("--join", 0,
                     "--join beside the variables of " + std::string(to_text(place.launcher)),
                     "--listen for all processes: the first listens there, the others join it");
  }
  place.meeting = find_master(variables);
  if (flags.listen.empty()) return;
  place.meeting = parse_address(flags.listen, "--listen");
  place.agent_store = false;
  if (place.meeting->port == 0 && place.processes > 1) {
    throw InputError("--listen", 0,
                     "port 0 beside the variables of " + std::string(to_text(place.launcher)),
                     "a port that all processes know");
  }
}

}  // namespace

std::string_view to_text(Launcher launcher) {
  switch (launcher) {
    case Launcher::kFlags:
      return "--listen and --join";
    case Launcher::kTorchrun:
      return "torchrun";
    case Launcher::kVariables:
      return "RANK and WORLD_SIZE";
    case Launcher::kOpenMpi:
      return "mpirun (OpenMPI)";
    case Launcher::kPmi:
      return "mpiexec (PMI)";
    case Launcher::kSlurm:
      return "srun (Slurm)";
  }
  fail_ensure(__FILE__, __LINE__, "a launcher has a name");
}

LaunchAddress parse_address(std::string_view text, const std::string& name) {
  const auto refuse = [&] {
    throw InputError(name, 0, to_one_line(text),
                     "an address or host name and a port, as 127.0.0.1:29400 or [::1]:29400");
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) refuse();
  std::string_view host = text.substr(0, colon);
  const std::optional<int> port = parse_count(text.substr(colon + 1));
  if (!port || *port > kMostPort) refuse();
  const bool in_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (in_brackets) host = host.substr(1, host.size() - 2);
  if (host.empty() || (host.find(':') != std::string_view::npos) != in_brackets) refuse();
  if (host.find_first_of("[]/ \t\n") != std::string_view::npos) refuse();
  return {std::string(host), *port};
}

std::string to_text(const LaunchAddress& address) {
  const bool is_v6 = address.host.find(':') != std::string::npos;
  return (is_v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

std::optional<LaunchPlace> find_launch_place(const LaunchFlags& flags, const Variables& variables) {
  if (!flags.listen.empty() && !flags.join.empty()) {
    throw InputError("--join", 0, "--join beside --listen",
                     "one of them: a process leads a run or joins it");
  }
  const LaunchVariables launch(variables);
  std::optional<LaunchPlace> place = read_launcher(launch);
  if (!place) {
    if (flags.listen.empty() && flags.join.empty()) return std::nullopt;
    return read_flags(flags);
  }
  place_meeting(launch, flags, *place);
  return place;
}

Variables read_environment() {
  Variables variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

}  // namespace frazil
