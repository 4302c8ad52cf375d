#include "core/app/open_checkpoint.hpp"

#include <algorithm>
#include <filesystem>

#include "core/train/checkpoint_names.hpp"
#include "io/hdf5_store.hpp"

namespace nsp {
namespace {

// A damaged checkpoint has a line for each piece; the first one names the shard and the cause, checkpoint verify prints all.
std::string first_line(const std::string& damage) {
  const std::size_t end = damage.find('\n');
  return end == std::string::npos ? damage : damage.substr(0, end) + " More is damaged: nsp_app checkpoint verify lists all.";
}

}  // namespace

CheckpointPath checkpoint_path(const std::string& path) {
  const std::filesystem::path plain = std::filesystem::path(path + "/.").lexically_normal().parent_path();
  const std::string name = plain.filename().string();
  if (name.rfind("step_", 0) != 0) return {path + "/checkpoints", -1};
  const std::string digits = name.substr(5);
  if (digits.empty() || digits.size() > 18 || !std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; }))
    throw Error(
        ErrorKind::usage,
        path + " is not a checkpoint. A checkpoint's folder is named step_ and eight digits. Name one of them, or a run directory.");
  const std::string parent = plain.parent_path().string();
  return {parent.empty() ? "." : parent, std::stoll(digits)};
}

std::string damage_of(CheckpointReader& reader, Needed needed) {
  if (needed == Needed::everything) return first_line(reader.verify());
  try {
    // The first read of a piece compares its checksum, however little is asked for.
    for (const PieceRecord& piece : reader.pieces()) {
      if (piece.count == 0 || piece.name.rfind(model_prefix, 0) != 0) continue;
      char element[8];
      reader.get(piece.name, piece.dtype, piece.offset, 1, element);
    }
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

std::unique_ptr<CheckpointReader> newest_good(CheckpointStore& store, Needed needed, std::vector<std::string>& passed_over) {
  const std::vector<int64_t> steps = store.list();
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    std::string damage;
    try {
      std::unique_ptr<CheckpointReader> reader = store.open(*step);
      damage = damage_of(*reader, needed);
      if (damage.empty()) return reader;
    } catch (const Error& e) {
      damage = e.what();
    }
    passed_over.push_back("the checkpoint " + store.where(*step) + " cannot be used and is passed over: " + damage);
  }
  return nullptr;
}

std::unique_ptr<CheckpointReader> open_checkpoint(const std::string& path, Log& log) {
  const CheckpointPath place = checkpoint_path(path);
  Hdf5Store store(place.folder);
  if (place.step >= 0) return store.open(place.step);
  std::vector<std::string> passed_over;
  std::unique_ptr<CheckpointReader> reader = newest_good(store, Needed::model, passed_over);
  if (!reader)
    throw Error(ErrorKind::input, "no usable checkpoint in " + path + ". " +
                                      (passed_over.empty() ? "There is none in it." : "The newest: " + passed_over.front()) +
                                      " Name a run directory that holds one (--run.dir), or train first.");
  for (const std::string& line : passed_over) log.warning(line);
  return reader;
}

}  // namespace nsp
