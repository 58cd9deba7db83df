#include "tests/exec/communication/gloo_worlds.h"

#include <future>

namespace frazil {
namespace {

std::shared_ptr<GlooLinks> join_group(int process, int processes, const SocketAddress& store,
                                      Descriptor listener) {
  GlooPlace place{.process = process,
                  .processes = processes,
                  .store = store,
                  .listener = std::move(listener),
                  .name = "test"};
  return std::make_shared<GlooLinks>(std::make_unique<GlooGroup>(std::move(place)),
                                     GlooLinkOptions{.linger = std::chrono::milliseconds(100)});
}

}  // namespace

// Every process waits for all others, so each comes on a thread of its own.
AllGlooLinks make_gloo_links(int processes) {
  Descriptor listener = listen_at({});
  const SocketAddress store = address_of(listener);
  std::vector<std::future<std::shared_ptr<GlooLinks>>> joining;
  for (int process = 0; process < processes; ++process) {
    Descriptor own = process == 0 ? std::move(listener) : Descriptor();
    joining.push_back(
        std::async(std::launch::async, join_group, process, processes, store, std::move(own)));
  }
  AllGlooLinks links;
  for (auto& one : joining) links.push_back(one.get());
  return links;
}

Ranks make_gloo_ranks(const AllGlooLinks& links, std::uint32_t epoch,
                      const std::vector<int>& process_of_rank, const CommunicatorOptions& options) {
  Ranks ranks;
  for (std::size_t process = 0; process < links.size(); ++process) {
    const ProcessPlace place{static_cast<int>(process), process_of_rank};
    for (auto& rank : make_gloo_communicators(links[process], epoch, place, options)) {
      ranks.push_back(std::move(rank));
    }
  }
  return ranks;
}

}  // namespace frazil
