#pragma once
// One thread per device, pinned to a core of its own while there are enough (they share cores
// otherwise), each with one intra-op thread. The threads live as long as the run; plans come and
// go.

#include <functional>
#include <memory>
#include <string>

#include "profiles/units.h"

namespace frazil {

class Workers {
 public:
  explicit Workers(int devices);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int devices() const;
  // Runs `job` once on every device's thread and waits for all. When some throw, `on_failure` is
  // called once, at the first failure, with its sentence (to wake the others); then the first
  // exception is thrown here.
  void run(const std::function<void(DeviceId)>& job,
           const std::function<void(const std::string&)>& on_failure = {});

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

}  // namespace frazil
