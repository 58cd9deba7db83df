#pragma once
// Finds out from flags and environment variables which process of a launch this one is. Pure: the
// variables come as a map, and nothing is opened or asked of the system.
//
// The first of these that says anything counts:
//   --listen, --join       without a launcher; beside one, --listen only says where process 0
//   listens RANK, WORLD_SIZE       torchrun (known by TORCHELASTIC_RUN_ID), or set by hand
//   OMPI_COMM_WORLD_*      OpenMPI's mpirun
//   PMI_RANK, PMI_SIZE     MPICH and what follows it
//   SLURM_PROCID           srun (a batch script outside srun is no launch: it has no SLURM_STEP_ID)
// RANK and MPI's variables must say the same. Slurm may stand around torchrun and mpirun, whose
// numbers then count; RANK set by hand must agree with SLURM_PROCID.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace frazil {

using Variables = std::map<std::string, std::string>;

enum class Launcher : std::uint8_t {
  kFlags,      // --listen or --join
  kTorchrun,   //
  kVariables,  // RANK and WORLD_SIZE without torchrun
  kOpenMpi,
  kPmi,
  kSlurm,
};

// "torchrun", "mpirun (OpenMPI)", ...
std::string_view to_text(Launcher launcher);

// A place to listen or connect: an address or host name, and a port (0: any that is free).
struct LaunchAddress {
  std::string host;
  int port = 0;

  friend bool operator==(const LaunchAddress&, const LaunchAddress&) = default;
};

// Reads "127.0.0.1:29400", "node-1:29400" or "[::1]:29400"; `name` is the flag or variable that a
// refusal names. Throws InputError.
LaunchAddress parse_address(std::string_view text, const std::string& name);
std::string to_text(const LaunchAddress& address);

struct LaunchFlags {
  std::string listen = {};  // empty: not given
  std::string join = {};
  int processes = 0;  // with --listen: how many to wait for, this one included; 0: not given
};

// A process among those of its host.
struct LocalPlace {
  int process = 0;
  int processes = 1;

  friend bool operator==(const LocalPlace&, const LocalPlace&) = default;
};

struct LaunchPlace {
  Launcher launcher = Launcher::kFlags;
  std::optional<int> process;            // none with --join: the leader gives numbers
  int processes = 1;                     // 0 with --join: the leader knows
  std::optional<LocalPlace> local;       // none where the launcher does not say
  std::optional<LaunchAddress> meeting;  // where process 0 listens; none: not said
  // torchrun's agent keeps a c10d store at `meeting`, so process 0 listens elsewhere and says there
  // where.
  bool agent_store = false;
  std::string job;         // names this launch, the same in all its processes; empty: unknown
  int restarts = 0;        // how often torchrun has started this process again
  int most_restarts = 0;   // how often it will
  std::string error_file;  // where torchrun looks for a failure's words; empty: nowhere

  bool is_leader() const { return process == 0; }
};

// Returns none if nothing launched this process. Throws InputError, in one sentence that names the
// variables, for a set that is incomplete, malformed or contradicts another.
std::optional<LaunchPlace> find_launch_place(const LaunchFlags& flags, const Variables& variables);

// The environment of this process.
Variables read_environment();

}  // namespace frazil
