#include "io/checkpoint_cli.hpp"

#include <cstdio>
#include <filesystem>
#include <iomanip>
#include <ostream>
#include <set>
#include <system_error>

#include "io/hdf5_store.hpp"
#include "io/manifest.hpp"
#include "io/step_folder.hpp"

namespace nsp {
namespace {

namespace fs = std::filesystem;

std::string checkpoints_of(const std::string& run_dir) {
  std::error_code ignored;
  if (!fs::is_directory(run_dir, ignored))
    throw Error(ErrorKind::input,
                "there is no run directory " + run_dir + ". The path does not exist or is no folder. Give the run.dir of a run.");
  return run_dir + "/checkpoints";
}

std::string size_text(int64_t bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

int64_t folder_bytes(const std::string& folder) {
  int64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    const auto size = at->file_size(ignored);
    if (!ignored) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

// Replicas with states of their own, or "common" if replicas held the same.
std::string replicas_of(const Manifest& manifest) {
  std::set<std::string> replicas;
  for (const PieceRecord& piece : manifest.pieces) {
    if (piece.name.rfind("/replica_", 0) == 0) replicas.insert(piece.name.substr(0, piece.name.find('/', 1)));
  }
  return replicas.empty() ? "common" : std::to_string(replicas.size());
}

std::string first_missing_shard(const std::string& folder, const Manifest& manifest) {
  for (const PieceRecord& piece : manifest.pieces) {
    const std::string name = shard_name(manifest.run, manifest.step, piece.rank);
    std::error_code ignored;
    if (piece.count > 0 && !fs::exists(folder + "/" + name, ignored)) return name;
  }
  return {};
}

void print_row(std::ostream& out, const std::string& step, const std::string& size, const std::string& written, const std::string& replicas,
               const std::string& state) {
  out << std::right << std::setw(10) << step << "  " << std::setw(10) << size << "  " << std::left << std::setw(20) << written << "  "
      << std::setw(8) << replicas << "  " << state << "\n";
}

}  // namespace

int checkpoint_ls(const std::string& run_dir, std::ostream& out) {
  const std::string dir = checkpoints_of(run_dir);
  const std::vector<int64_t> steps = steps_in(dir);
  if (steps.empty()) {
    out << "no checkpoints in " << dir << "\n";
    return exit_code::done;
  }
  print_row(out, "step", "size", "written", "replicas", "state");
  for (int64_t step : steps) {
    const std::string folder = step_folder(dir, step), size = size_text(folder_bytes(folder));
    if (!has_manifest(folder)) {
      print_row(out, std::to_string(step), size, "-", "-", "incomplete (being written, or left over)");
      continue;
    }
    try {
      const Manifest manifest = read_manifest(folder + "/" + manifest_name);
      const std::string missing = first_missing_shard(folder, manifest);
      print_row(out, std::to_string(step), size, manifest.written, replicas_of(manifest),
                missing.empty() ? "complete" : "damaged: " + missing + " is missing");
    } catch (const Error&) {
      print_row(out, std::to_string(step), size, "-", "-", "torn");
    }
  }
  return exit_code::done;
}

int checkpoint_verify(const std::string& run_dir, std::ostream& out) {
  const std::string dir = checkpoints_of(run_dir);
  Hdf5Store store(dir);
  const std::vector<int64_t> steps = store.list();
  if (steps.empty())
    throw Error(ErrorKind::input,
                "there is nothing to verify in " + dir + ". It holds no complete checkpoint. Give the run.dir of a run that wrote one.");
  int damaged = 0;
  for (int64_t step : steps) {
    std::string found;
    std::size_t pieces = 0;
    try {
      auto reader = store.open(step);
      pieces = reader->pieces().size();
      found = reader->verify();
    } catch (const Error& error) {
      found = error.what();
    }
    if (found.empty()) {
      out << "step " << step << ": good, " << pieces << " pieces\n";
    } else {
      ++damaged;
      out << "step " << step << ": DAMAGED\n" << found << "\n";
    }
  }
  if (damaged > 0) out << damaged << " of " << steps.size() << " checkpoints are damaged; a resume takes the newest good one\n";
  return damaged > 0 ? exit_code::bad_data : exit_code::done;
}

}  // namespace nsp
