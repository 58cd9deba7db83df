// Measures whole programs from start to exit: how long `plan` and `simulate` take to start, and
// what a large what-if costs as a process. Times are wall time per run; `cpu` is the CPU time of
// the child processes in s.

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <array>
#include <initializer_list>
#include <string>
#include <vector>

extern char** environ;

namespace {

// Runs a program of the build's folder and discards its output; returns false unless it exits with
// 0.
bool run_program(const std::string& program, const std::vector<std::string>& arguments) {
  const std::string path = std::string(FRAZIL_PROGRAM_FOLDER) + "/" + program;
  std::vector<std::string> words{path};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failed = posix_spawn(&child, path.c_str(), &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  int status = 1;
  return failed == 0 && waitpid(child, &status, 0) == child && status == 0;
}

double children_cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void run_all(benchmark::State& state, const std::string& program,
             const std::vector<std::string>& arguments) {
  const double before = children_cpu_seconds();
  for (auto _ : state) {
    if (!run_program(program, arguments)) {
      state.SkipWithError("the program failed");
      return;
    }
  }
  state.counters["cpu"] = benchmark::Counter((children_cpu_seconds() - before) /
                                             static_cast<double>(state.iterations()));
}

std::vector<std::string> what_if(int stages, int micro_batches) {
  return {"--stages",
          std::to_string(stages),
          "--micro-batches",
          std::to_string(micro_batches),
          "--schedule",
          "1f1b",
          "--forward",
          "1ms",
          "--backward-input",
          "1ms",
          "--backward-weight",
          "1ms",
          "--hop",
          "0.313ms"};
}

void start_plan(benchmark::State& state) { run_all(state, "frazil-plan", {"--help"}); }
void start_simulate(benchmark::State& state) { run_all(state, "frazil-simulate", what_if(4, 8)); }
void start_through_the_front_door(benchmark::State& state) {
  std::vector<std::string> arguments = what_if(4, 8);
  arguments.insert(arguments.begin(), "simulate");
  run_all(state, "frazil", arguments);
}
void large_what_if(benchmark::State& state) {
  run_all(state, "frazil-simulate", what_if(32, 1024));
}

BENCHMARK(start_plan)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(start_simulate)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(start_through_the_front_door)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(large_what_if)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
