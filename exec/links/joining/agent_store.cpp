#include "exec/links/joining/agent_store.h"

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <chrono>
#include <vector>

#include "profiles/error.h"

namespace frazil {
namespace {

c10d::TCPStore connect(const LaunchAddress& agent, Duration limit) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(agent.port);
  options.isServer = false;
  options.waitWorkers = false;
  options.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(limit);
  return c10d::TCPStore(agent.host, options);
}

// c10d throws errors of many lines, with the places in its sources.
template <class Call>
auto or_lost(const LaunchAddress& agent, const std::string& what, const Call& call) {
  try {
    return call();
  } catch (const std::exception&) {
    throw PeerLost("the store of torchrun's agent at " + to_text(agent) + " " + what);
  }
}

}  // namespace

void publish_in_agent_store(const LaunchAddress& agent, const std::string& key,
                            const std::string& value, Duration limit) {
  or_lost(agent, "cannot be written to", [&] {
    connect(agent, limit).set(key, std::vector<std::uint8_t>(value.begin(), value.end()));
    return 0;
  });
}

std::string find_in_agent_store(const LaunchAddress& agent, const std::string& key,
                                Duration limit) {
  return or_lost(agent, "does not say where the first process listens (" + key + ")", [&] {
    c10d::TCPStore store = connect(agent, limit);
    store.wait({key}, std::chrono::duration_cast<std::chrono::milliseconds>(limit));
    const std::vector<std::uint8_t> value = store.get(key);
    return std::string(value.begin(), value.end());
  });
}

}  // namespace frazil
