#include "io/h5.hpp"

#include <algorithm>
#include <utility>

namespace nsp::h5 {
namespace {

// One per process, since the library's state is: see Session.
std::recursive_mutex& library_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

herr_t collect(unsigned, const H5E_error2_t* error, void* out) {
  auto& lines = *static_cast<std::vector<std::string>*>(out);
  if (error->desc != nullptr && *error->desc != '\0') lines.emplace_back(error->desc);
  return 0;
}

}  // namespace

Session::Session() : lock_(library_mutex()) {
  H5Eget_auto2(H5E_DEFAULT, &printer_, &printer_data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}
Session::~Session() noexcept {
  H5Eset_auto2(H5E_DEFAULT, printer_, printer_data_);
}

std::string error_text() {
  std::vector<std::string> lines;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, collect, &lines);
  if (lines.empty()) return "HDF5 gives no reason";
  lines.resize(std::min<std::size_t>(lines.size(), 2));
  std::string text = "HDF5 says: " + lines[0] + (lines.size() > 1 ? "; " + lines[1] : "");
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

void Check::fail(const std::string& why) const {
  throw Error(kind_, what_ + ". " + why + ". " + advice_);
}

Id& Id::operator=(Id&& other) noexcept {
  if (this != &other) {
    reset();
    id_ = other.release();
    close_ = other.close_;
  }
  return *this;
}

void Id::reset() noexcept {
  if (id_ < 0) return;
  Session session;
  close_(std::exchange(id_, H5I_INVALID_HID));
}

hid_t Id::release() noexcept {
  return std::exchange(id_, H5I_INVALID_HID);
}

hid_t type_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::f32:
      return H5T_IEEE_F32LE;
    case DType::bf16:
      return H5T_STD_U16LE;
    case DType::f64:
      return H5T_IEEE_F64LE;
    case DType::i32:
      return H5T_STD_I32LE;
    case DType::u8:
      return H5T_STD_U8LE;
    case DType::i64:
      return H5T_STD_I64LE;
  }
  return H5I_INVALID_HID;
}

Id file_access(const Check& check) {
  Id access(check(H5Pcreate(H5P_FILE_ACCESS)), H5Pclose);
  check(H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG));
#if H5_VERSION_GE(1, 10, 7) && !(H5_VERS_MAJOR == 1 && H5_VERS_MINOR == 12 && H5_VERS_RELEASE == 0)
  check(H5Pset_file_locking(access.get(), false, true));
#endif
  return access;
}

Id open_to_read(const std::string& path, const Check& check) {
  const Id access = file_access(check);
  return Id(check(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get())), H5Fclose);
}

}  // namespace nsp::h5
