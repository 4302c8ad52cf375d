#include "io/h5_driver.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

namespace nsp::h5 {
namespace {

constexpr std::size_t most_bytes_per_call = std::size_t{256} << 20;

struct Unwritten {
  haddr_t at;
  std::vector<char> bytes;
};

struct File : H5FD_t {
  std::shared_ptr<WriteState> state;
  int fd = -1;
  haddr_t eoa = 0, eof = 0;
  struct stat info {};
  std::vector<Unwritten> unwritten;  // metadata only, in the order of writing: HDF5 reads its own metadata back
};

// What travels in the access properties (copied byte by byte by HDF5).
struct Properties {
  const std::shared_ptr<WriteState>* state;
};

File& file_of(H5FD_t* file) {
  return *static_cast<File*>(file);
}
const File& file_of(const H5FD_t* file) {
  return *static_cast<const File*>(file);
}

H5FD_t* open_file(const char* name, unsigned flags, hid_t access, haddr_t) {
  const auto* properties = static_cast<const Properties*>(H5Pget_driver_info(access));
  if (properties == nullptr) return nullptr;
  const int create = (flags & H5F_ACC_CREAT ? O_CREAT : 0) | (flags & H5F_ACC_TRUNC ? O_TRUNC : 0) | (flags & H5F_ACC_EXCL ? O_EXCL : 0);
  const int fd = ::open(name, O_RDWR | O_CLOEXEC | create, 0666);
  auto* file = fd < 0 ? nullptr : new (std::nothrow) File{};
  if (file == nullptr) {
    if (fd < 0)
      (*properties->state)->open_error = errno;
    else
      ::close(fd);
    return nullptr;
  }
  file->state = *properties->state;
  file->state->descriptor = file->fd = fd;
  ::fstat(fd, &file->info);
  file->eof = static_cast<haddr_t>(file->info.st_size);
  return file;
}

herr_t close_file(H5FD_t* base) {
  File& file = file_of(base);
  if (::close(file.fd) != 0 && file.state->error == 0) file.state->error = errno;
  file.state->descriptor = -1;
  delete &file;
  return 0;
}

int compare(const H5FD_t* a, const H5FD_t* b) {
  const struct stat &x = file_of(a).info, &y = file_of(b).info;
  if (x.st_dev != y.st_dev) return x.st_dev < y.st_dev ? -1 : 1;
  return x.st_ino < y.st_ino ? -1 : x.st_ino > y.st_ino;
}

herr_t query(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_AGGREGATE_SMALLDATA |
           H5FD_FEAT_POSIX_COMPAT_HANDLE;
#ifdef H5FD_FEAT_DEFAULT_VFD_COMPATIBLE
  *flags |= H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
#endif
  return 0;
}

haddr_t get_eoa(const H5FD_t* file, H5FD_mem_t) {
  return file_of(file).eoa;
}
herr_t set_eoa(H5FD_t* file, H5FD_mem_t, haddr_t at) {
  file_of(file).eoa = at;
  return 0;
}
haddr_t get_eof(const H5FD_t* file, H5FD_mem_t) {
  return file_of(file).eof;
}
herr_t get_handle(H5FD_t* file, hid_t, void** handle) {
  *handle = &file_of(file).fd;
  return 0;
}

herr_t read_file(H5FD_t* base, H5FD_mem_t, hid_t, haddr_t at, std::size_t size, void* out) {
  File& file = file_of(base);
  for (std::size_t done = 0; done < size;) {
    const ssize_t n =
        ::pread(file.fd, static_cast<char*>(out) + done, std::min(size - done, most_bytes_per_call), static_cast<off_t>(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) {  // beyond the end: zeros, as HDF5's own driver gives
      std::memset(static_cast<char*>(out) + done, 0, size - done);
      break;
    }
    done += static_cast<std::size_t>(n);
  }
  for (const Unwritten& piece : file.unwritten) {
    const haddr_t lo = std::max(at, piece.at), hi = std::min(at + size, piece.at + piece.bytes.size());
    if (lo < hi) std::memcpy(static_cast<char*>(out) + (lo - at), piece.bytes.data() + (lo - piece.at), hi - lo);
  }
  return 0;
}

herr_t write_file(H5FD_t* base, H5FD_mem_t type, hid_t, haddr_t at, std::size_t size, const void* data) {
  File& file = file_of(base);
  const char* from = static_cast<const char*>(data);
  int& error = file.state->error;
  for (std::size_t done = 0; done < size && error == 0;) {
    const ssize_t n = ::pwrite(file.fd, from + done, std::min(size - done, most_bytes_per_call), static_cast<off_t>(at + done));
    if (n > 0)
      done += static_cast<std::size_t>(n);
    else if (n == 0 || errno != EINTR)
      error = n == 0 ? ENOSPC : errno;
  }
  if (error != 0 && type != H5FD_MEM_DRAW) {
    try {
      file.unwritten.push_back({at, {from, from + size}});
    } catch (const std::bad_alloc&) {
      return -1;
    }
  }
  file.eof = std::max(file.eof, at + size);
  return 0;
}

herr_t truncate_file(H5FD_t* base, hid_t, hbool_t) {
  File& file = file_of(base);
  if (file.eoa == file.eof) return 0;
  if (file.state->error == 0 && ::ftruncate(file.fd, static_cast<off_t>(file.eoa)) != 0) file.state->error = errno;
  file.eof = file.eoa;
  return 0;
}

H5FD_class_t driver_class() {
  H5FD_class_t c{};  // members by name: HDF5 1.14 has more of them, in other places
#ifdef H5FD_CLASS_VERSION
  c.version = H5FD_CLASS_VERSION;
  c.value = static_cast<H5FD_class_value_t>(700);  // from the range that HDF5 leaves to everyone
#endif
  c.name = "nsp_output";
  c.maxaddr = (haddr_t{1} << 62) - 1;
  c.fc_degree = H5F_CLOSE_STRONG;
  c.fapl_size = sizeof(Properties);
  c.open = open_file;
  c.close = close_file;
  c.cmp = compare;
  c.query = query;
  c.get_eoa = get_eoa;
  c.set_eoa = set_eoa;
  c.get_eof = get_eof;
  c.get_handle = get_handle;
  c.read = read_file;
  c.write = write_file;
  c.truncate = truncate_file;
  const H5FD_mem_t map[] = H5FD_FLMAP_DICHOTOMY;  // as the default driver
  std::copy(std::begin(map), std::end(map), c.fl_map);
  return c;
}

}  // namespace

Id driver_access(const std::shared_ptr<WriteState>& state, const Check& check) {
  static const H5FD_class_t driver = driver_class();
  Id access = file_access(check);
  const Id id(check(H5FDregister(&driver)), H5FDunregister);  // the properties and the open file count as users too
  const Properties properties{&state};
  check(H5Pset_driver(access.get(), id.get(), &properties));
  return access;
}

}  // namespace nsp::h5
