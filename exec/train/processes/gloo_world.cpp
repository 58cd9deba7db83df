#include "exec/train/processes/gloo_world.h"

#include <memory>
#include <utility>

#include "exec/communication/gloo_communicator.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr const char* kGroupName = "run";

// The links of a process, once they are there.
class GlooMeeting {
 public:
  explicit GlooMeeting(GlooPlace place) : place_(std::move(place)) {}

  const std::shared_ptr<GlooLinks>& links() {
    if (links_) return links_;
    try {
      links_ = std::make_shared<GlooLinks>(std::make_unique<GlooGroup>(std::move(place_)));
    } catch (const GlooError& error) {
      throw PeerLost(error.what());
    }
    return links_;
  }

 private:
  GlooPlace place_;
  std::shared_ptr<GlooLinks> links_;
};

void refuse_newcomers(const std::vector<int>& process_of, int processes) {
  for (const int process : process_of) {
    if (process < processes) continue;
    throw InputError("--transport gloo", 0,
                     "process " + std::to_string(process) + ", which came later",
                     "the " + std::to_string(processes) + " processes that the run began with");
  }
}

}  // namespace

GlooPlace lead_by_gloo(const std::string& host, int processes) {
  GlooPlace place{.process = 0, .processes = processes, .own_host = host, .name = kGroupName};
  place.listener = listen_at({host, 0});
  place.store = address_of(place.listener);
  return place;
}

GlooPlace follow_by_gloo(const ProcessHosts& hosts, std::uint16_t port, int process,
                         int processes) {
  return {.process = process,
          .processes = processes,
          .own_host = hosts.own,
          .store = {hosts.other, port},
          .listener = {},
          .name = kGroupName};
}

RunWorld::Join join_over_gloo(GlooPlace place) {
  const int process = place.process;
  const auto meeting = std::make_shared<GlooMeeting>(std::move(place));
  return [meeting, process](std::uint32_t epoch, const std::vector<int>& process_of,
                            const CommunicatorOptions& options) {
    const std::shared_ptr<GlooLinks>& links = meeting->links();
    refuse_newcomers(process_of, links->processes());
    return make_gloo_communicators(links, epoch, {process, process_of}, options);
  };
}

}  // namespace frazil
