#include "core/data/token_source.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/data/content_hash.hpp"
#include "core/data/file_search.hpp"
#include "core/data/prepared_index.hpp"
#include "nsp/error.hpp"

namespace nsp {
namespace {

namespace fs = std::filesystem;

int64_t tokens_of(const std::vector<TokenFile>& files) {
  int64_t tokens = 0;
  for (const TokenFile& file : files) tokens += file.facts().tokens;
  return tokens;
}

int64_t windows_of(const std::vector<TokenFile>& files, int64_t context) {
  return std::max<int64_t>(0, (tokens_of(files) - 1) / context);
}

// Shards of one split of a prepared folder. A shard that is whole but not the one that was prepared is found here.
std::vector<TokenFile> open_prepared(const std::string& folder, const std::vector<PreparedShard>& shards) {
  std::vector<TokenFile> files;
  for (const PreparedShard& shard : shards) {
    TokenFile& file = files.emplace_back((fs::path(folder) / shard.name).string());
    if (file.facts().tokens != shard.tokens || file.facts().checksum != shard.checksum || file.facts().documents != shard.documents)
      throw Error(ErrorKind::input, file.path() + " is not the shard that " + prepared_index_path(folder) + " lists: it has " +
                                        std::to_string(file.facts().tokens) + " tokens and checksum " + hash_text(file.facts().checksum) +
                                        ", listed are " + std::to_string(shard.tokens) + " and " + hash_text(shard.checksum) +
                                        ". Files of two prepared folders were mixed. Run nsp_app prepare again.");
  }
  return files;
}

// "a.bin,b/*.tokens"; a file whose name has a comma may be given alone.
std::vector<std::string> split_list(const std::string& text) {
  std::error_code error;
  if (fs::exists(text, error)) return {text};
  std::vector<std::string> items;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    if (comma > at) items.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return items;
}

std::vector<TokenFile> open_plain(const std::string& path, const char* key) {
  const std::vector<std::string> inputs = split_list(path);
  if (inputs.empty())
    throw Error(ErrorKind::input, std::string(key) +
                                      " is empty. It names the training data. Give a prepared folder, token "
                                      "files or auto.");
  for (const std::string& input : inputs)
    if (std::error_code error; fs::is_directory(input, error)) {
      if (fs::exists(prepared_index_path(input), error))
        throw Error(ErrorKind::input, input +
                                          " is not a prepared folder. Its prepare.ini does not begin as nsp writes it, so it is damaged or "
                                          "of another program. Run nsp_app prepare again, or change " +
                                          key + ".");
      throw Error(ErrorKind::input,
                  input + " is not a prepared folder. It has no prepare.ini. Prepare text with: nsp_app prepare --input " + input +
                      " --output data/mine, or name token files themselves, as in --" + key + " '" + input + "/*.bin'");
    }
  std::vector<TokenFile> files;
  for (const std::string& file : find_files(inputs).files) files.emplace_back(file);
  for (const TokenFile& file : files) {
    const TokenFileFacts &a = files.front().facts(), &b = file.facts();
    if (a.tokenizer == b.tokenizer && a.vocabulary == b.vocabulary) continue;
    throw Error(ErrorKind::input, files.front().path() + " and " + file.path() + " do not belong together: tokenizer " + a.tokenizer +
                                      " with vocabulary " + std::to_string(a.vocabulary) + ", and " + b.tokenizer + " with " +
                                      std::to_string(b.vocabulary) + ". One run reads tokens of one tokenizer. Change " + key + ".");
  }
  return files;
}

void verify(const std::vector<TokenFile>& files, bool wanted) {
  if (!wanted) return;
  for (const TokenFile& file : files) file.verify();
}

std::unique_ptr<TokenSource> whole(std::vector<TokenFile> files, const TokenSourceOptions& options, const char* what, const char* cure) {
  const int64_t windows = windows_of(files, options.context);
  if (windows == 0)
    throw Error(ErrorKind::input, std::string(what) + " is too short: " + std::to_string(tokens_of(files)) + " tokens, one window takes " +
                                      std::to_string(options.context + 1) + " (train.context + 1). " + cure);
  verify(files, options.verify);
  return std::make_unique<TokenSource>(std::move(files), options.context, 0, windows);
}

// Windows at the end of plain token files that training leaves out.
int64_t held_out(int64_t windows, double fraction) {
  if (fraction <= 0 || windows < 2) return 0;
  return std::clamp<int64_t>(std::llround(static_cast<double>(windows) * fraction), 1, windows - 1);
}

}  // namespace

TokenSource::TokenSource(std::vector<TokenFile> files, int64_t context, int64_t first, int64_t count)
    : files_(std::move(files)), context_(context), first_(first), samples_(count) {
  NSP_REQUIRE(!files_.empty() && context >= 1 && first >= 0 && count >= 0, "a source has files and windows");
  NSP_REQUIRE(first + count <= windows_of(files_, context), "the windows of a source lie in its files");
  ContentHash hash;
  int64_t tokens = 0, original = 0;
  for (const TokenFile& file : files_) {
    begins_.push_back(tokens);
    tokens += file.facts().tokens;
    original += file.facts().original_bytes;
    hash.add(file.identity());
  }
  // A part of the stream is other data than the whole, so that a run does not go on after another part was held out.
  if (first != 0 || count != windows_of(files_, context)) {
    hash.add(static_cast<uint64_t>(first));
    hash.add(static_cast<uint64_t>(count));
  }
  fingerprint_ = hash_text(hash.value());
  if (knows_documents() && tokens > 0) bytes_per_token_ = static_cast<double>(original) / static_cast<double>(tokens);
}

void TokenSource::limit_vocabulary(int64_t model_vocabulary) {
  NSP_REQUIRE(model_vocabulary > 0, "a model has a vocabulary");
  if (vocabulary() > model_vocabulary)
    throw Error(ErrorKind::usage, "model.vocab is " + std::to_string(model_vocabulary) + ", the data needs " +
                                      std::to_string(vocabulary()) + ". Tokens of " + files_.front().path() +
                                      " would have no embedding. Raise model.vocab.");
  vocabulary_limit_ = model_vocabulary;
}

void TokenSource::read(int64_t sample, int32_t* tokens, int32_t* document_start) {
  NSP_REQUIRE(sample >= 0 && sample < samples_, "a sample is read from within the source");
  const int64_t begin = (first_ + sample) * context_, end = begin + context_ + 1;  // in the stream
  // The data's own vocabulary is the tighter bound: an id beyond it is damage even if the model has a row for it.
  const int64_t limit = vocabulary() > 0 ? vocabulary() : vocabulary_limit_;
  int32_t current = 0;  // start of the document that the position belongs to, in the window
  int64_t written = 0;  // document_start[0, written) is known
  auto shard = static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), begin) - begins_.begin() - 1);
  for (int64_t at = begin; at < end; ++shard) {
    const TokenFile& file = files_[shard];
    const int64_t from = at - begins_[shard], count = std::min(end - at, file.facts().tokens - from);
    file.read(from, count, limit, tokens + (at - begin));
    if (document_start != nullptr) {
      const auto starts = file.document_starts();
      auto next = std::lower_bound(starts.begin(), starts.end(), static_cast<uint64_t>(from));
      for (; next != starts.end() && static_cast<int64_t>(*next) < from + count; ++next) {
        const int64_t position = at - begin + static_cast<int64_t>(*next) - from;
        if (position >= context_) break;  // the last label may begin a document, it is no input
        std::fill(document_start + written, document_start + position, current);
        current = static_cast<int32_t>(position);
        written = position;
      }
    }
    at += count;
  }
  if (document_start != nullptr) std::fill(document_start + written, document_start + context_, current);
}

std::unique_ptr<TokenSource> open_train(const TokenSourceOptions& options) {
  constexpr const char* cure = "Give more text (data.path) or lower train.context.";
  NSP_REQUIRE(options.context >= 1, "a window has at least one token");
  if (is_prepared_folder(options.path))
    return whole(open_prepared(options.path, read_prepared_index(options.path).train), options, "the training data", cure);
  std::vector<TokenFile> files = open_plain(options.path, "data.path");
  if (!options.val_path.empty()) return whole(std::move(files), options, "the training data", cure);
  const int64_t windows = windows_of(files, options.context), held = held_out(windows, options.val_fraction);
  if (held == 0) return whole(std::move(files), options, "the training data", cure);
  verify(files, options.verify);
  return std::make_unique<TokenSource>(std::move(files), options.context, 0, windows - held);
}

std::unique_ptr<TokenSource> open_val(const TokenSourceOptions& options) {
  constexpr const char* cure = "Hold out more (prepare --val-fraction, data.val_path) or lower train.context.";
  NSP_REQUIRE(options.context >= 1, "a window has at least one token");
  const std::string& path = options.val_path.empty() ? options.path : options.val_path;
  if (is_prepared_folder(path)) {
    std::vector<TokenFile> files = open_prepared(path, read_prepared_index(path).val);
    if (!files.empty()) return whole(std::move(files), options, "the held-out data", cure);
    if (options.val_path.empty()) return nullptr;
    throw Error(ErrorKind::input,
                path +
                    " has no held-out split. It was prepared with --val-fraction 0. Prepare it with a larger one, or name "
                    "its shards: --data.val_path '" +
                    path + "/*.tokens'");
  }
  std::vector<TokenFile> files = open_plain(path, options.val_path.empty() ? "data.path" : "data.val_path");
  if (!options.val_path.empty()) return whole(std::move(files), options, "the held-out data", cure);
  const int64_t windows = windows_of(files, options.context), held = held_out(windows, options.val_fraction);
  if (held == 0) return nullptr;
  verify(files, options.verify);
  return std::make_unique<TokenSource>(std::move(files), options.context, windows - held, held);
}

}  // namespace nsp
