#pragma once
// Finds and opens the plug-in for NCCL. Once opened it stays.

#include <filesystem>
#include <string>

#include "exec/communication/nccl_table.h"

namespace frazil {

// Returns where the build puts the plug-in: beside the one for GPUs.
std::filesystem::path default_nccl_plugin();

// Opens the plug-in and returns its table. Throws InputError, one sentence each: there is no such
// file, it does not load (with the loader's words), it is no plug-in, it is of another version.
const NcclTable& load_nccl(const std::filesystem::path& plugin = default_nccl_plugin());

// Returns the name of the network interface that has this address, "lo" for 127.0.0.1. Throws
// InputError if none has.
std::string interface_of(const std::string& address);
// Has NCCL listen and connect through the interface of this address alone (NCCL_SOCKET_IFNAME),
// unless the environment names one. Called before the first call of the table; no other thread
// reads the environment meanwhile.
void bind_nccl(const std::string& address = "127.0.0.1");

}  // namespace frazil
