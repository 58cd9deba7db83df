#pragma once
// Writes weights alone as a safetensors file that any reader opens: 8 bytes with the size of the
// header, little endian; the header, JSON, filled up with spaces to a multiple of 8; the tensors,
// float32 or (counters) int64, one directly behind the other in the order given.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "exec/disk/file_system.h"
#include "exec/models/named_tensor.h"

namespace frazil {

// Writes the file beside its place, syncs it and renames it; an earlier file is replaced whole or
// stays. `metadata` becomes the header's "__metadata__", beside "format": "pt", which Hugging
// Face's readers ask for. Equal arguments give equal bytes. Throws InputError; no temporary file is
// then left as far as one can be removed. Requires: a folder that exists; float32 or int64
// tensors with names that differ.
void write_weights(const FileSystem& files, const std::filesystem::path& path,
                   const std::vector<NamedTensor>& weights,
                   const std::map<std::string, std::string>& metadata);

}  // namespace frazil
