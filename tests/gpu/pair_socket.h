#pragma once
// A socket between the two processes of a test, whose every wait ends.

#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>

namespace frazil {

// The other process is gone.
class PeerGone : public std::runtime_error {
 public:
  PeerGone() : std::runtime_error("the other process is gone") {}
};

class PairSocket {
 public:
  // Takes the descriptor over.
  explicit PairSocket(int descriptor) : descriptor_(descriptor) {}
  ~PairSocket();
  PairSocket(const PairSocket&) = delete;
  PairSocket& operator=(const PairSocket&) = delete;

  // Throw PeerGone, or std::runtime_error after `limit` without an end.
  void write(const void* bytes, std::size_t count) const;
  void read(void* bytes, std::size_t count,
            std::chrono::milliseconds limit = std::chrono::seconds(20)) const;
  template <class Value>
  void put(const Value& value) const {
    write(&value, sizeof(value));
  }
  template <class Value>
  Value get() const {
    Value value;
    read(&value, sizeof(value));
    return value;
  }
  // Both call it: neither goes on before the other has come.
  void meet() const {
    put('m');
    (void)get<char>();
  }
  // True if the other process is gone and has left nothing to read.
  bool is_gone() const;

 private:
  int descriptor_;
};

}  // namespace frazil
