// The HDF5 C library (serial) as nsp uses it: owned ids, checked calls, the error stack as text.
// The library is not thread-safe and prints its errors; a Session lets one thread in and keeps it quiet.
#pragma once

#include <hdf5.h>

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "nsp/types.hpp"

namespace nsp::h5 {

// While one lives on this thread, the thread may call HDF5. Sessions nest. All HDF5 calls of nsp run under one.
class Session {
 public:
  Session();
  ~Session() noexcept;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

 private:
  std::unique_lock<std::recursive_mutex> lock_;
  H5E_auto2_t printer_ = nullptr;
  void* printer_data_ = nullptr;
};

// The innermost messages of HDF5's error stack, on one line.
std::string error_text();

// Turns a negative result into Error(kind, "what: why. advice").
class Check {
 public:
  // trouble: says what went wrong where HDF5 does not know of it, else the empty string. May be absent.
  Check(ErrorKind kind, std::string what, std::string advice, std::function<std::string()> trouble = {})
      : kind_(kind), what_(std::move(what)), advice_(std::move(advice)), trouble_(std::move(trouble)) {}
  template <class Result>
  Result operator()(Result result) const {
    const std::string trouble = trouble_ ? trouble_() : std::string();
    if (result < 0 || !trouble.empty()) fail(trouble.empty() ? error_text() : trouble);
    return result;
  }
  [[noreturn]] void fail(const std::string& why) const;

 private:
  ErrorKind kind_;
  std::string what_, advice_;
  std::function<std::string()> trouble_;
};

// Owns an id. Closing in the destructor ignores errors: what must be durable is closed by OutputFile::finish.
class Id {
 public:
  Id() = default;
  Id(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Id(Id&& other) noexcept : id_(other.id_), close_(other.close_) { other.id_ = H5I_INVALID_HID; }
  Id& operator=(Id&& other) noexcept;
  ~Id() noexcept { reset(); }
  hid_t get() const noexcept { return id_; }
  void reset() noexcept;
  hid_t release() noexcept;

 private:
  hid_t id_ = H5I_INVALID_HID;
  herr_t (*close_)(hid_t) = nullptr;
};

// How an element type lies in files: IEEE little-endian; bf16 as uint16, with the attribute dtype = "bf16" beside it.
hid_t type_of(DType dtype) noexcept;

// File access without file locks: nsp has its own (RUN/lock, rename), and flock fails on many parallel file systems.
// Takes effect from HDF5 1.10.7 on; before, the environment variable HDF5_USE_FILE_LOCKING=FALSE does the same.
Id file_access(const Check& check);
Id open_to_read(const std::string& path, const Check& check);

// Data sets and attributes of /nsp and of pieces. Groups on the way to a data set are created.
Id creates_groups(const Check& check);  // a link property list
void write_attribute(hid_t object, const char* name, const std::vector<int64_t>& values, const Check& check);
void write_attribute(hid_t object, const char* name, const std::string& text, const Check& check);
void write_column(hid_t file, const std::string& path, const std::vector<int64_t>& values, const Check& check);
void write_text(hid_t file, const std::string& path, const std::string& text, const Check& check);
void write_texts(hid_t file, const std::string& path, const std::vector<std::string>& texts, const Check& check);

// The same back. limit: no data set of this file can hold more bytes (a damaged header would else ask for any amount).
std::vector<int64_t> read_attribute(hid_t object, const char* name, const Check& check);
std::string read_text_attribute(hid_t object, const char* name, const Check& check);
std::vector<int64_t> read_column(hid_t file, const std::string& path, int64_t limit, const Check& check);
std::string read_text(hid_t file, const std::string& path, int64_t limit, const Check& check);
std::vector<std::string> read_texts(hid_t file, const std::string& path, int64_t limit, const Check& check);

}  // namespace nsp::h5
