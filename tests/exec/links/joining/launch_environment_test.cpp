// Variables as launchers set them: recorded from torchrun 2.11, OpenMPI 4.1.4 and, from their
// documentation, MPICH 4.0 and Slurm 22.05.

#include "exec/links/joining/launch_environment.h"

#include <gtest/gtest.h>

#include "profiles/error.h"

namespace frazil {
namespace {

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

Variables torchrun_standalone() {
  return {{"GROUP_RANK", "0"},
          {"GROUP_WORLD_SIZE", "1"},
          {"LOCAL_RANK", "1"},
          {"LOCAL_WORLD_SIZE", "2"},
          {"MASTER_ADDR", "localhost"},
          {"MASTER_PORT", "41241"},
          {"OMP_NUM_THREADS", "1"},
          {"RANK", "1"},
          {"ROLE_NAME", "default"},
          {"ROLE_RANK", "1"},
          {"ROLE_WORLD_SIZE", "2"},
          {"TORCHELASTIC_ERROR_FILE", "/tmp/torchelastic_t1056nm_/attempt_0/1/error.json"},
          {"TORCHELASTIC_MAX_RESTARTS", "0"},
          {"TORCHELASTIC_RESTART_COUNT", "0"},
          {"TORCHELASTIC_RUN_ID", "c46b614d-cba5-4600-bd7b-a636e31b66d1"},
          {"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT"},
          {"TORCHELASTIC_USE_AGENT_STORE", "True"},
          {"WORLD_SIZE", "2"}};
}

Variables torchrun_elastic() {
  return {{"GROUP_RANK", "1"},
          {"GROUP_WORLD_SIZE", "2"},
          {"LOCAL_RANK", "0"},
          {"LOCAL_WORLD_SIZE", "1"},
          {"MASTER_ADDR", "node-1"},
          {"MASTER_PORT", "38657"},
          {"RANK", "1"},
          {"ROLE_RANK", "1"},
          {"ROLE_WORLD_SIZE", "2"},
          {"TORCHELASTIC_ERROR_FILE", "/tmp/torchelastic__n0rjpa_/attempt_2/0/error.json"},
          {"TORCHELASTIC_MAX_RESTARTS", "3"},
          {"TORCHELASTIC_RESTART_COUNT", "2"},
          {"TORCHELASTIC_RUN_ID", "job7"},
          {"TORCHELASTIC_USE_AGENT_STORE", "True"},
          {"WORLD_SIZE", "2"}};
}

Variables open_mpi() {
  return {{"OMPI_APP_CTX_NUM_PROCS", "2"},
          {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"},
          {"OMPI_COMM_WORLD_NODE_RANK", "0"},
          {"OMPI_COMM_WORLD_RANK", "1"},
          {"OMPI_COMM_WORLD_SIZE", "2"},
          {"OMPI_MCA_ess_base_jobid", "1960837121"},
          {"OMPI_UNIVERSE_SIZE", "2"},
          {"PMIX_NAMESPACE", "1960837121"},
          {"PMIX_RANK", "1"}};
}

Variables mpich() {
  return {{"MPI_LOCALNRANKS", "4"},
          {"MPI_LOCALRANKID", "3"},
          {"PMI_FD", "9"},
          {"PMI_RANK", "3"},
          {"PMI_SIZE", "4"}};
}

// The sixth of seven tasks on nodes with 3, 3 and 1 of them.
Variables srun() {
  return {{"SLURM_JOB_ID", "4711"},
          {"SLURM_JOB_NODELIST", "node[01-03]"},
          {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.1"},
          {"SLURM_LOCALID", "2"},
          {"SLURM_NNODES", "3"},
          {"SLURM_NODEID", "1"},
          {"SLURM_NTASKS", "7"},
          {"SLURM_PROCID", "5"},
          {"SLURM_STEP_ID", "0"},
          {"SLURM_STEP_NUM_TASKS", "7"},
          {"SLURM_STEP_TASKS_PER_NODE", "3(x2),1"}};
}

std::optional<LaunchPlace> find(const Variables& variables, const LaunchFlags& flags = {}) {
  return find_launch_place(flags, variables);
}

std::string refusal(const Variables& variables, const LaunchFlags& flags = {}) {
  try {
    (void)find_launch_place(flags, variables);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(LaunchEnvironment, OfATerminalIsNoLaunch) {
  EXPECT_FALSE(find({{"HOME", "/root"}, {"MASTER_ADDR", "left-over"}}).has_value());
}

TEST(LaunchEnvironment, OfTorchrunHasTheAgentsStoreAndIsTheOneOfRanks) {
  const auto place = find(torchrun_standalone());
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->launcher, Launcher::kTorchrun);
  EXPECT_EQ(place->process, 1);
  EXPECT_EQ(place->processes, 2);
  EXPECT_EQ(place->local, (LocalPlace{1, 2}));
  EXPECT_EQ(place->meeting, (LaunchAddress{"localhost", 41241}));
  EXPECT_TRUE(place->agent_store);
  EXPECT_EQ(place->job, "c46b614d-cba5-4600-bd7b-a636e31b66d1");
  EXPECT_EQ(place->restarts, 0);
  EXPECT_EQ(place->error_file, "/tmp/torchelastic_t1056nm_/attempt_0/1/error.json");
  EXPECT_FALSE(place->is_leader());
}

TEST(LaunchEnvironment, OfElasticTorchrunCountsRestartsAndMayHaveNoStore) {
  const auto place = find(torchrun_elastic());
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->restarts, 2);
  EXPECT_EQ(place->most_restarts, 3);
  EXPECT_EQ(place->local, (LocalPlace{0, 1}));
  EXPECT_EQ(place->meeting, (LaunchAddress{"node-1", 38657}));
  const auto free = find(with(torchrun_elastic(), {{"TORCHELASTIC_USE_AGENT_STORE", "False"}}));
  ASSERT_TRUE(free.has_value());
  EXPECT_FALSE(free->agent_store);
}

TEST(LaunchEnvironment, SetByHandIsNotTorchrun) {
  const auto place = find(
      {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "29500"}});
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->launcher, Launcher::kVariables);
  EXPECT_FALSE(place->local.has_value());
  EXPECT_FALSE(place->agent_store);
  EXPECT_TRUE(place->is_leader());
}

TEST(LaunchEnvironment, OfMpirunNamesItsJob) {
  const auto place = find(open_mpi());
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->launcher, Launcher::kOpenMpi);
  EXPECT_EQ(place->process, 1);
  EXPECT_EQ(place->processes, 2);
  EXPECT_EQ(place->local, (LocalPlace{0, 1}));
  EXPECT_EQ(place->job, "1960837121");
  EXPECT_FALSE(place->meeting.has_value());
}

TEST(LaunchEnvironment, OfMpichIsFoundByPmi) {
  const auto place = find(mpich());
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->launcher, Launcher::kPmi);
  EXPECT_EQ(place->process, 3);
  EXPECT_EQ(place->local, (LocalPlace{3, 4}));
  EXPECT_EQ(place->job, "");
}

TEST(LaunchEnvironment, OfSrunCountsTheTasksOfItsNode) {
  const auto place = find(srun());
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->launcher, Launcher::kSlurm);
  EXPECT_EQ(place->process, 5);
  EXPECT_EQ(place->processes, 7);
  EXPECT_EQ(place->local, (LocalPlace{2, 3}));
  EXPECT_EQ(place->job, "4711.0");
  const auto last =
      find(with(srun(), {{"SLURM_PROCID", "6"}, {"SLURM_LOCALID", "0"}, {"SLURM_NODEID", "2"}}));
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->local, (LocalPlace{0, 1}));
}

// A step may be smaller than its job.
TEST(LaunchEnvironment, OfSrunIsThatOfTheStepNotOfTheJob) {
  const auto place = find(with(srun(), {{"SLURM_NTASKS", "28"}}));
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->processes, 7);
}

TEST(LaunchEnvironment, OfTheScriptOfABatchJobIsNoLaunch) {
  EXPECT_FALSE(find({{"SLURM_JOB_ID", "4711"},
                     {"SLURM_NTASKS", "4"},
                     {"SLURM_PROCID", "0"},
                     {"SLURM_LOCALID", "0"},
                     {"SLURM_NODEID", "0"}})
                   .has_value());
}

TEST(LaunchEnvironment, SlurmMayStandAroundTorchrunAndMpirun) {
  const Variables node = with(srun(), {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}});
  EXPECT_EQ(find(with(node, torchrun_standalone()))->launcher, Launcher::kTorchrun);
  EXPECT_EQ(find(with(node, open_mpi()))->launcher, Launcher::kOpenMpi);
  EXPECT_EQ(find(with(srun(), {{"PMI_RANK", "5"}, {"PMI_SIZE", "7"}}))->process, 5);
}

TEST(LaunchEnvironment, ThatContradictsItselfIsRefused) {
  EXPECT_EQ(refusal(with(torchrun_standalone(), open_mpi())), "accepted");  // the same numbers
  EXPECT_EQ(refusal(with(torchrun_standalone(), mpich())),
            "environment: found RANK=1, WORLD_SIZE=2 beside PMI_RANK=3, PMI_SIZE=4, expected one "
            "launcher, or the same numbers from both; unset those that do not count");
  EXPECT_EQ(refusal(with(open_mpi(), mpich())),
            "environment: found OMPI_COMM_WORLD_RANK=1, OMPI_COMM_WORLD_SIZE=2 beside PMI_RANK=3, "
            "PMI_SIZE=4, expected one launcher, or the same numbers from both; unset those that do "
            "not count");
  // Set in the script of a batch job, every task would be the first.
  EXPECT_EQ(refusal(with(srun(), {{"RANK", "0"}, {"WORLD_SIZE", "7"}})),
            "environment: found RANK=0, WORLD_SIZE=7 beside SLURM_PROCID=5, SLURM_NTASKS=7, "
            "expected one launcher, or the same numbers from both; unset those that do not count");
}

TEST(LaunchEnvironment, ThatIsIncompleteIsRefused) {
  EXPECT_EQ(refusal({{"RANK", "0"}}),
            "environment: found RANK without WORLD_SIZE, expected both of them, or none");
  EXPECT_EQ(refusal({{"WORLD_SIZE", "2"}}),
            "environment: found WORLD_SIZE without RANK, expected both of them, or none");
  EXPECT_EQ(refusal(without(torchrun_standalone(), "LOCAL_WORLD_SIZE")),
            "environment: found LOCAL_RANK without LOCAL_WORLD_SIZE, expected both of them, or "
            "none");
  EXPECT_EQ(refusal(without(torchrun_standalone(), "MASTER_PORT")),
            "environment: found MASTER_ADDR without MASTER_PORT, expected both of them, or none");
  EXPECT_EQ(refusal(without(torchrun_standalone(), "MASTER_ADDR")),
            "environment: found MASTER_PORT without MASTER_ADDR, expected both of them, or none");
}

TEST(LaunchEnvironment, WithAnythingButWholeNumbersInTheirRangeIsRefused) {
  for (const char* text :
       {"", " 1", "1 ", "+1", "-1", "01", "1.0", "0x1", "1000001", "99999999999999999999", "one"}) {
    EXPECT_EQ(refusal({{"RANK", text}, {"WORLD_SIZE", "2"}}),
              "environment: found RANK=" + std::string(text) +
                  ", expected a whole number from 0 to 1000000");
  }
  EXPECT_EQ(refusal({{"RANK", "0"}, {"WORLD_SIZE", "0"}}),
            "environment: found WORLD_SIZE=0, expected a whole number from 1 to 1000000");
  EXPECT_EQ(refusal({{"RANK", "2"}, {"WORLD_SIZE", "2"}}),
            "environment: found RANK=2 beside WORLD_SIZE=2, expected a RANK below WORLD_SIZE");
  EXPECT_EQ(refusal(with(torchrun_standalone(), {{"LOCAL_WORLD_SIZE", "3"}})),
            "environment: found LOCAL_WORLD_SIZE=3 in a launch of 2 processes, expected no more "
            "processes on one host than in all");
  EXPECT_EQ(refusal(with(torchrun_standalone(), {{"MASTER_PORT", "65536"}})),
            "environment: found MASTER_PORT=65536, expected a whole number from 1 to 65535");
  EXPECT_EQ(refusal(with(torchrun_standalone(), {{"TORCHELASTIC_USE_AGENT_STORE", "1"}})),
            "environment: found TORCHELASTIC_USE_AGENT_STORE=1, expected True or False");
}

TEST(LaunchEnvironment, OfSlurmWithAListOfTasksThatIsNoneIsRefused) {
  for (const char* text : {"3(x", "3(x)", "(x2)", "3(x2)1", ",", "3(x1)"}) {
    EXPECT_EQ(refusal(with(srun(), {{"SLURM_STEP_TASKS_PER_NODE", text}})),
              "environment: found SLURM_STEP_TASKS_PER_NODE=" + std::string(text) +
                  ", expected the tasks of every node, as 2(x3),1");
  }
}

TEST(LaunchFlags, SayWhoLeadsAndWhoJoins) {
  const auto leader = find({}, {.listen = "127.0.0.1:0", .join = {}, .processes = 3});
  ASSERT_TRUE(leader.has_value());
  EXPECT_TRUE(leader->is_leader());
  EXPECT_EQ(leader->processes, 3);
  EXPECT_EQ(leader->meeting, (LaunchAddress{"127.0.0.1", 0}));
  const auto member = find({}, {.listen = {}, .join = "[::1]:29400"});
  ASSERT_TRUE(member.has_value());
  EXPECT_FALSE(member->process.has_value());
  EXPECT_FALSE(member->is_leader());
  EXPECT_EQ(member->processes, 0);
  EXPECT_EQ(member->meeting, (LaunchAddress{"::1", 29400}));
}

TEST(LaunchFlags, BesideALauncherSayWhereItsFirstProcessListens) {
  const auto place = find(srun(), {.listen = "node01:29400", .join = {}});
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->process, 5);
  EXPECT_EQ(place->meeting, (LaunchAddress{"node01", 29400}));
  const auto own = find(torchrun_standalone(), {.listen = "127.0.0.1:29400", .join = {}});
  ASSERT_TRUE(own.has_value());
  EXPECT_FALSE(own->agent_store);
}

TEST(LaunchFlags, ThatMakeNoSenseAreRefused) {
  EXPECT_EQ(refusal({}, {.listen = "127.0.0.1:1", .join = "127.0.0.1:1"}),
            "--join: found --join beside --listen, expected one of them: a process leads a run or "
            "joins it");
  EXPECT_EQ(refusal({}, {.listen = {}, .join = "127.0.0.1:0"}),
            "--join: found port 0, expected the port that the leader listens at");
  EXPECT_EQ(refusal(srun(), {.listen = {}, .join = "node01:29400"}),
            "--join: found --join beside the variables of srun (Slurm), expected --listen for all "
            "processes: the first listens there, the others join it");
  EXPECT_EQ(refusal(srun(), {.listen = "node01:0", .join = {}}),
            "--listen: found port 0 beside the variables of srun (Slurm), expected a port that all "
            "processes know");
}

TEST(LaunchAddress, IsAHostAndAPort) {
  EXPECT_EQ(parse_address("node-1.example:80", "--join"), (LaunchAddress{"node-1.example", 80}));
  EXPECT_EQ(to_text(parse_address("[fe80::1]:80", "--join")), "[fe80::1]:80");
  for (const char* text : {"", ":", "host", "host:", ":80", "host:65536", "host:-1", "host:8x",
                           "::1:80", "[::1]", "[]:80", "[host]:80", "a b:80", "host:80:80"}) {
    EXPECT_THROW((void)parse_address(text, "--join"), InputError) << text;
  }
}

}  // namespace
}  // namespace frazil
