#pragma once
// Reads memory of another process of this host and user by process_vm_readv. Whether the system
// allows it is found out by trying: containers, other users and Yama forbid it.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace frazil {

// Lets all processes of the same user read this one's memory where Yama asks for that, which can
// name none or one or all of them; does nothing elsewhere.
void allow_reading();

// Fills `bytes` bytes from the other process's `address`. Returns false, and leaves any contents,
// if not all of them could be read. An answer of true means what the other process had there if it
// still lives afterwards: ask its socket.
bool read_memory(pid_t process, std::uint64_t address, void* into, std::size_t bytes);

// Returns 16 random bytes, by which a process is recognised whose number may mean another one here.
std::string draw_mark();
// Returns whether the process has these bytes at the address.
bool finds_mark(pid_t process, std::uint64_t address, const std::string& mark);

}  // namespace frazil
