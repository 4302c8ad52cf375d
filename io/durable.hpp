// Files that survive a power cut: fsync of files and folders, and removal that never throws.
#pragma once

#include <cstdint>
#include <string>

namespace nsp {

// "No space left on device (errno 28)"
std::string errno_text(int error);
// Makes the contents of a file durable; Error(io).
void sync_file(const std::string& path);
// Makes the names in a folder durable; Error(io). File systems that cannot sync folders are left alone.
void sync_directory(const std::string& path);
// rename(2); Error(io). Both in the same file system; the folder still has to be synced.
void rename_file(const std::string& from, const std::string& to);
void remove_quietly(const std::string& path) noexcept;
// Bytes that this user may still write in the file system of an existing folder; Error(io).
int64_t free_bytes(const std::string& folder);

}  // namespace nsp
