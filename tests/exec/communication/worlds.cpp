#include "tests/exec/communication/worlds.h"

#include "exec/communication/in_process_communicator.h"

namespace frazil {

std::vector<WorldKind> common_worlds() {
  return {{.name = "in_process",
           .make = make_in_process_communicators,
           .shares_memory = true,
           .sees_all_waits = true}};
}

std::vector<WorldKind> worlds_by_tag() {
  std::vector<WorldKind> worlds = common_worlds();
  std::erase_if(worlds, [](const WorldKind& world) { return !world.matches_by_tag; });
  return worlds;
}

}  // namespace frazil
