#include "exec/communication/load_nccl.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "exec/devices/load_plugin.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// True if the interface's address is these bytes.
bool has_address(const ::ifaddrs& interface, int family, const void* bytes) {
  const ::sockaddr* const own = interface.ifa_addr;
  if (own == nullptr || own->sa_family != family) return false;
  if (family == AF_INET) {
    ::sockaddr_in address{};
    std::memcpy(&address, own, sizeof(address));
    return std::memcmp(&address.sin_addr, bytes, sizeof(address.sin_addr)) == 0;
  }
  ::sockaddr_in6 address{};
  std::memcpy(&address, own, sizeof(address));
  return std::memcmp(&address.sin6_addr, bytes, sizeof(address.sin6_addr)) == 0;
}

}  // namespace

std::filesystem::path default_nccl_plugin() { return plugin_of_this_build("libfrazil_nccl.so"); }

const NcclTable& load_nccl(const std::filesystem::path& plugin) {
  const PluginWords words = {
      .asked_by = "NCCL",
      .built_how =
          "one built where CMake finds the CUDA toolkit, a libtorch with CUDA and NCCL with its "
          "header",
      .needs = "all libraries of torch 2.11 for CUDA 13 where they were built against"};
  const auto function = reinterpret_cast<NcclFunction>(open_plugin(plugin, kNcclSymbol, words));
  const NcclTable* const table = function();
  check_plugin_version(plugin, table->version, kNcclVersion, words);
  return *table;
}

std::string interface_of(const std::string& address) {
  std::array<unsigned char, sizeof(::in6_addr)> bytes{};
  int family = AF_INET;
  if (::inet_pton(AF_INET, address.c_str(), bytes.data()) != 1) {
    family = AF_INET6;
    if (::inet_pton(AF_INET6, address.c_str(), bytes.data()) != 1) {
      throw InputError("NCCL", 0, "address '" + address + "'", "an IPv4 or IPv6 address");
    }
  }
  ::ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0) {
    fail_system("NCCL", errno, "getifaddrs", "a list of the network interfaces");
  }
  const std::unique_ptr<::ifaddrs, void (*)(::ifaddrs*)> list(found, ::freeifaddrs);
  for (const ::ifaddrs* one = found; one != nullptr; one = one->ifa_next) {
    if (has_address(*one, family, bytes.data())) return one->ifa_name;
  }
  throw InputError("NCCL", 0, "no network interface with address " + address,
                   "an address of this host");
}

void bind_nccl(const std::string& address) {
  constexpr int kKeepExisting = 0;
  // The sign has NCCL take this name and none that begins so.
  const std::string name = "=" + interface_of(address);
  ::setenv("NCCL_SOCKET_IFNAME", name.c_str(), kKeepExisting);
}

}  // namespace frazil
