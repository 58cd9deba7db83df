// Lets two threads of many processes meet in the first call of MKL's vector math.
//   first_calls PROCESSES [--unprepared]
// Exit code 0: in each process both threads find roots of the same bits. 1: in some they do not.
// With --unprepared numerics are not prepared, as in a program of PyTorch alone, and the count of
// processes in which roots differ is only told.

#include <ATen/ATen.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>

#include "exec/devices/kernel_choice.h"
#include "exec/devices/numerics.h"

namespace {

constexpr int kNumbers = 64;
constexpr int kThreads = 2;
using Roots = std::array<float, kNumbers>;

// Returns the roots that each thread has found in its first call, which all begin at once.
std::array<Roots, kThreads> find_roots_at_once(const at::Tensor& numbers) {
  std::array<Roots, kThreads> found{};
  std::array<std::thread, kThreads> threads;
  std::atomic<int> ready{0};
  for (int t = 0; t < kThreads; ++t) {
    threads[t] = std::thread([&, t] {
      (void)at::sqrt(at::empty({0}));  // readies all but MKL
      ++ready;
      while (ready < kThreads) {
      }
      const at::Tensor roots = at::sqrt(numbers);
      std::memcpy(found[t].data(), roots.const_data_ptr<float>(), sizeof(Roots));
    });
  }
  for (std::thread& thread : threads) thread.join();
  return found;
}

// Whether two threads of a new process find the same bits.
bool agree(const at::Tensor& numbers, bool prepares) {
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("no process can be started");
  if (child == 0) {
    if (prepares) frazil::prepare_numerics(frazil::list_branches().back());
    const at::Tensor square = numbers.view({8, 8});
    (void)at::matmul(square, square);  // programs have readied MKL's products by then
    const auto found = find_roots_at_once(numbers);
    ::_exit(found[0] == found[1] ? 0 : 1);
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
    throw std::runtime_error("a process has not ended by itself");
  }
  return WEXITSTATUS(status) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int processes = std::atoi(argv[1]);
  const bool prepares = argc < 3 || std::string(argv[2]) != "--unprepared";
  ::setenv("MKL_CBWR", frazil::list_branches().back().c_str(), /*overwrite=*/0);
  const at::Tensor numbers = at::arange(1, kNumbers + 1, at::kFloat);
  int differing = 0;
  for (int p = 0; p < processes; ++p) differing += agree(numbers, prepares) ? 0 : 1;
  std::printf("first_calls: roots of two threads differ in %d of %d processes%s\n", differing,
              processes, prepares ? "" : ", unprepared");
  return prepares && differing > 0 ? 1 : 0;
}
