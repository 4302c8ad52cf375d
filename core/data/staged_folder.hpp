// A folder that appears under its name only when it is whole: filled as OUTPUT.tmp-<process>, then renamed. Destroyed before commit(),
// it is removed with all that is in it. An existing OUTPUT is replaced only if it is empty or holds prepared data and nothing else.
// Errors: Error(input) if OUTPUT cannot be made or must not be replaced, Error(io) if the rename fails. One thread at a time.
#pragma once

#include <filesystem>
#include <string>

namespace nsp {

class StagedFolder {
 public:
  explicit StagedFolder(const std::string& output);
  ~StagedFolder();
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  std::string path() const { return temporary_.string(); }  // to be filled
  void commit();
  // True for the folder that OUTPUT names and for what processes have staged for it: never an input.
  static bool belongs_to(const std::filesystem::path& folder, const std::string& output);

 private:
  std::filesystem::path output_, temporary_;
  bool committed_ = false;
};

}  // namespace nsp
