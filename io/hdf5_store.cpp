#include "io/hdf5_store.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "io/durable.hpp"
#include "io/hdf5_reader.hpp"
#include "io/hdf5_shard.hpp"
#include "io/manifest.hpp"
#include "io/step_folder.hpp"
#include "io/utc_time.hpp"

namespace nsp {
namespace {

namespace fs = std::filesystem;

void require_run_id(const std::string& run) {
  const auto plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-' || c == '_';
  };
  NSP_REQUIRE(!run.empty() && run.size() <= 100 && run.front() != '.' && std::all_of(run.begin(), run.end(), plain),
              "the id of a run, '" + run + "', becomes part of file names");
}

std::string parent_of(const std::string& path) {
  const fs::path parent = fs::path(path).lexically_normal().parent_path();
  return parent.empty() ? "." : parent.string();
}

// Names of finished shards without a record in the new manifest: of an earlier checkpoint of the same step. Unfinished ones too.
void remove_strangers(const std::string& folder, const std::set<std::string>& shards) noexcept {
  try {
    for (const std::string& name : store_files_in(folder)) {
      if (shards.count(name) == 0) remove_quietly(folder + "/" + name);
    }
  } catch (...) {  // out of memory: they only take room until the step is pruned
  }
}

bool readable(const std::string& folder) {
  try {
    read_manifest(folder + "/" + manifest_name);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::unique_ptr<ShardWriter> Hdf5Store::begin(int64_t step, int rank, const std::string& run, int64_t bytes) {
  require_run_id(run);
  NSP_REQUIRE(step >= 0 && rank >= 0 && bytes >= 0, "steps, ranks and sizes count from zero");
  const std::string folder = where(step);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw Error(ErrorKind::io,
                "cannot create the checkpoint folder " + folder + ". " + error.message() + ". Check the path and your permissions.");
  if (const int64_t room = free_bytes(folder); bytes > room) {
    fs::remove(folder, error);  // only if empty
    throw Error(ErrorKind::io, "there is no room for checkpoint " + folder + ". This rank needs " + std::to_string(bytes) + " bytes, " +
                                   std::to_string(room) + " are free. Free some space, or lower train.keep.");
  }
  return std::make_unique<Hdf5Shard>(folder, step, rank, run, bytes);
}

void Hdf5Store::commit(int64_t step, const std::string& run, const Attributes& attributes, const std::vector<PieceRecord>& pieces) {
  require_run_id(run);
  const std::string folder = where(step), manifest_path = folder + "/" + manifest_name;
  const PieceIndex index(pieces, ErrorKind::inconsistent, "checkpoint " + folder);
  if (const std::string gap = index.first_gap(); !gap.empty())
    throw Error(ErrorKind::inconsistent,
                "checkpoint " + folder + " is incomplete: " + gap + ". A rank did not write its part. Please report it.");
  std::set<std::string> shards;
  for (const PieceRecord& piece : index.pieces()) {
    if (piece.count > 0) shards.insert(shard_name(run, step, piece.rank));
  }
  h5::OutputFile file(manifest_path + unfinished_suffix, 0);
  write_manifest(file, {step, run, utc_now(), attributes, {}}, index);
  file.finish(true);
  // From here on only names change. Between the two syncs a crash leaves no checkpoint of this step, never a wrong one.
  if (has_manifest(folder)) {
    remove_quietly(manifest_path);
    sync_directory(folder);
  }
  for (const std::string& name : shards) rename_file(folder + "/" + name + unfinished_suffix, folder + "/" + name);
  sync_directory(folder);
  rename_file(manifest_path + unfinished_suffix, manifest_path);
  sync_directory(folder);
  sync_directory(dir_);
  sync_directory(parent_of(dir_));
  last_commit_ = step;
  remove_strangers(folder, shards);
}

void Hdf5Store::rollback(int64_t step) noexcept {
  remove_uncommitted(where(step));
}

std::vector<int64_t> Hdf5Store::list() {
  std::vector<int64_t> steps = steps_in(dir_);
  std::erase_if(steps, [this](int64_t step) { return !has_manifest(where(step)); });
  return steps;
}

std::unique_ptr<CheckpointReader> Hdf5Store::open(int64_t step) {
  auto reader = std::make_unique<Hdf5Reader>(where(step));
  if (reader->step() != step)
    throw Error(ErrorKind::input, "checkpoint " + where(step) + " is of step " + std::to_string(reader->step()) +
                                      ". Its folder was renamed. Give it its old name back, or use another checkpoint.");
  return reader;
}

void Hdf5Store::prune(int keep, int64_t keep_every) {
  const std::vector<int64_t> steps = steps_in(dir_);
  int kept = 0;
  for (auto at = steps.rbegin(); at != steps.rend(); ++at) {
    const std::string folder = where(*at);
    if (last_commit_ >= 0 && *at > last_commit_ && has_manifest(folder)) {
      remove_step(folder);
      continue;
    }
    if (!has_manifest(folder) || !readable(folder)) {
      if (kept > 0) remove_step(folder);  // older than a good one: a left-over; newer: perhaps being written, or worth a look
      continue;
    }
    ++kept;
    if (kept > std::max(keep, 1) && !(keep_every > 0 && *at % keep_every == 0)) remove_step(folder);
  }
  if (kept > 0) sync_directory(dir_);
}

std::string Hdf5Store::where(int64_t step) const {
  return step_folder(dir_, step);
}

}  // namespace nsp
