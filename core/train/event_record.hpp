// The records of a TensorBoard event file, encoded by hand: TFRecord framing around the protocol buffer Event.
//
// A record is: length (u64), masked CRC-32C of these 8 bytes (u32), the bytes of an Event, masked CRC-32C of them (u32); all
// little-endian. Of Event (tensorflow/core/util/event.proto) these fields are written: wall_time = 1 (double), step = 2 (int64),
// file_version = 3 (string), summary = 5 { value = 1 { tag = 1 (string), simple_value = 2 (float) } },
// session_log = 7 { status = 1 (START = 1) }.
// Pure functions: any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace nsp {

struct Scalar {
  const char* tag;  // "train/loss"; TensorBoard groups by what stands before the slash
  double value;     // stored as float
};

// Times are seconds since 1970.
std::string version_record(double wall_time);  // the first one of every file
// The run begins, or goes on: readers drop what earlier files hold at `step` and after it.
std::string start_record(double wall_time, int64_t step);
std::string scalars_record(double wall_time, int64_t step, std::span<const Scalar> scalars);

}  // namespace nsp
