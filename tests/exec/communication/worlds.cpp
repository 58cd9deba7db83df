#include "tests/exec/communication/worlds.h"

#include "exec/communication/in_process_communicator.h"
#include "exec/communication/process_communicator.h"
#include "tests/exec/communication/fake_nccl_world.h"
#include "tests/exec/communication/gloo_worlds.h"
#include "tests/exec/communication/process_worlds.h"

#if defined(__has_feature)
#define FRAZIL_HAS_FEATURE(name) __has_feature(name)
#else
#define FRAZIL_HAS_FEATURE(name) 0
#endif

namespace frazil {
namespace {

#if defined(__SANITIZE_THREAD__) || FRAZIL_HAS_FEATURE(thread_sanitizer)
constexpr bool kIsThreadSanitized = true;
#else
constexpr bool kIsThreadSanitized = false;
#endif

// `processes`: 0 for as many as ranks.
WorldKind over_links(const std::string& name, int processes, bool by_tcp) {
  return {.name = name, .make = [=](int ranks, const CommunicatorOptions& options) {
            const int count = processes == 0 ? ranks : std::min(processes, ranks);
            return make_ranks(by_tcp ? make_tcp_links(count) : make_unix_links(count), 1,
                              spread_ranks(ranks, count), options);
          }};
}

WorldKind by_gloo(const std::string& name, int processes) {
  return {.name = name,
          .make =
              [=](int ranks, const CommunicatorOptions& options) {
                const int count = processes == 0 ? ranks : std::min(processes, ranks);
                return make_gloo_ranks(make_gloo_links(count), 1, spread_ranks(ranks, count),
                                       options);
              },
          .comes_at_once = false};
}

WorldKind over_fake_nccl(const std::string& name,
                         std::function<Ranks(int, const CommunicatorOptions&)> make_host) {
  return {.name = name,
          .make =
              [make_host = std::move(make_host)](int ranks, const CommunicatorOptions& options) {
                return over_fake_nccl(make_host(ranks, options), options);
              },
          .matches_by_tag = false,
          .holds_sent = true};
}

}  // namespace

std::vector<WorldKind> common_worlds() {
  std::vector<WorldKind> worlds = {
      {.name = "in_process",
       .make = make_in_process_communicators,
       .shares_memory = true,
       .sees_all_waits = true},
      over_links("unix", 0, false),
      over_links("tcp", 0, true),
      over_links("mixed", 2, false),
      over_fake_nccl("fake_nccl", make_in_process_communicators),
      over_fake_nccl("fake_nccl_over_unix", over_links("unix", 0, false).make)};
  // Gloo's threads are libtorch's, which the thread sanitizer does not know.
  if (!kIsThreadSanitized) {
    worlds.push_back(by_gloo("gloo", 0));
    worlds.push_back(by_gloo("gloo_mixed", 2));
  }
  return worlds;
}

std::vector<WorldKind> worlds_by_tag() {
  std::vector<WorldKind> worlds = common_worlds();
  std::erase_if(worlds, [](const WorldKind& world) { return !world.matches_by_tag; });
  return worlds;
}

}  // namespace frazil
