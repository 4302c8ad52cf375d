// One event file of a run for TensorBoard, RUN/tensorboard/events.out.tfevents.TIME.HOST.PROCESS.
//
// A run that is resumed opens a new file. Readers take files in the order of their names, so TIME is always larger than that of
// the files that are there, even if the clock was set back; a start record makes them drop what the earlier files hold of steps
// that are now trained again. Nothing here fails a run: the first error is a warning, and nothing is written afterwards.
// Thread: the main thread of rank 0.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "core/train/event_record.hpp"
#include "nsp/log.hpp"

namespace nsp {

class EventFile {
 public:
  // first_step: of what follows; 0 for a new run. The folder is made if it is not there.
  EventFile(std::string folder, int64_t first_step, Log& log);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  void add(int64_t step, std::span<const Scalar> scalars);
  void flush();  // by itself after 64 KiB, and with the first scalars that come more than 2 s after the last time

 private:
  void fail(const std::string& what);

  std::string folder_, path_;
  Log& log_;
  int descriptor_ = -1;  // -1: closed, or given up
  std::string waiting_;  // records that are not written yet
  std::chrono::steady_clock::time_point flushed_;
};

}  // namespace nsp
