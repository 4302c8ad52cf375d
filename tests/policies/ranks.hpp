// Threads of this process as ranks, each with a device, a stream, a communicator and a host wait of its own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "nsp/communicator.hpp"
#include "nsp/device.hpp"

namespace nsp::test {

// cpu: the CPU backend itself. fake: behind a device whose memory the host cannot touch and whose streams are late.
enum class Kind { cpu, fake };
std::string name_of(Kind kind);

struct Rank {
  int rank = 0, size = 1;
  Device& device;
  Stream& stream;
  Communicator& comm;  // of all ranks, for memory of the device
  HostWait& wait;      // drives comm
};

// Runs body on every rank. If one throws, all others are ended, and the first error is thrown here.
void run_ranks(Kind kind, int ranks, const std::function<void(Rank&)>& body);

// Device memory with these values, once the stream gets there; and back to the host, which waits.
Buffer upload(Rank& rank, const std::vector<float>& values);
void write(Rank& rank, TensorView to, const std::vector<float>& values);
std::vector<float> read(Rank& rank, TensorView from);
inline TensorView vector_view(const Buffer& buffer) {
  return {buffer.data(), DType::f32, {buffer.bytes() / 4}};
}

// An event behind everything that is enqueued now.
EventPtr now(Rank& rank);

// Values in [-1, 1) that depend on the arguments alone.
std::vector<float> values(int64_t n, unsigned seed);

// x_0 + sum w_m (x_m - x_0), in fp32 and replica order: what a weighted mean gives bit for bit.
std::vector<float> serial_mean(const std::vector<std::vector<float>>& x, const std::vector<double>& weights);

}  // namespace nsp::test
