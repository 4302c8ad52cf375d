#include "core/data/token_source.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include "core/data/content_hash.hpp"
#include "core/data/corpus_list.hpp"
#include "core/data/file_search.hpp"
#include "core/data/mix_schedule.hpp"
#include "core/data/prepared_index.hpp"
#include "nsp/error.hpp"

namespace nsp {
namespace {

namespace fs = std::filesystem;

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

std::vector<TokenFile> open_plain(const std::vector<std::string>& inputs, const char* key) {
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

// The windows of one corpus for training, or those that are held out.
class CorpusReader {
 public:
  CorpusReader(const TokenSourceOptions& options, bool many) : options_(options), many_(many) {}

  TokenStream train(const CorpusEntry& entry) const {
    constexpr const char* cure = "Give more text (data.path) or lower train.context.";
    const std::string& path = entry.paths.front();
    if (is_prepared_folder(path)) return whole(open_prepared(path, read_prepared_index(path).train), path, "the training data", cure);
    std::vector<TokenFile> files = open_plain(entry.paths, "data.path");
    const int64_t windows = windows_of(files, options_.context), held = options_.val_path.empty() ? held_out(windows) : 0;
    return held == 0 ? whole(std::move(files), path, "the training data", cure) : part(std::move(files), 0, windows - held);
  }

  // Nothing where nothing is held out.
  std::optional<TokenStream> val(const CorpusEntry& entry) const {
    constexpr const char* cure = "Hold out more (prepare --val-fraction, data.val_path) or lower train.context.";
    const std::string& path = entry.paths.front();
    const bool named = !options_.val_path.empty();
    if (is_prepared_folder(path)) {
      std::vector<TokenFile> files = open_prepared(path, read_prepared_index(path).val);
      if (!files.empty()) {
        if (many_ && windows_of(files, options_.context) == 0) return std::nullopt;  // other corpora of the mixture stand for it
        return whole(std::move(files), path, "the held-out data", cure);
      }
      if (!named) return std::nullopt;
      throw Error(ErrorKind::input,
                  path +
                      " has no held-out split. It was prepared with --val-fraction 0. Prepare it with a larger one, or name "
                      "its shards: --data.val_path '" +
                      path + "/*.tokens'");
    }
    std::vector<TokenFile> files = open_plain(entry.paths, named ? "data.val_path" : "data.path");
    if (named) return whole(std::move(files), path, "the held-out data", cure);
    const int64_t windows = windows_of(files, options_.context), held = held_out(windows);
    if (held == 0) return std::nullopt;
    return part(std::move(files), windows - held, held);
  }

 private:
  TokenStream whole(std::vector<TokenFile> files, const std::string& path, const char* what, const char* cure) const {
    const int64_t windows = windows_of(files, options_.context);
    if (windows == 0)
      throw Error(ErrorKind::input, std::string(what) + (many_ ? " of " + path : "") +
                                        " is too short: " + std::to_string(tokens_of(files)) + " tokens, one window takes " +
                                        std::to_string(options_.context + 1) + " (train.context + 1). " + cure);
    return part(std::move(files), 0, windows);
  }

  TokenStream part(std::vector<TokenFile> files, int64_t first, int64_t count) const {
    if (options_.verify)
      for (const TokenFile& file : files) file.verify();
    return TokenStream(std::move(files), options_.context, first, count);
  }

  // Windows at the end of plain token files that training leaves out.
  int64_t held_out(int64_t windows) const {
    if (options_.val_fraction <= 0 || windows < 2) return 0;
    return std::clamp<int64_t>(std::llround(static_cast<double>(windows) * options_.val_fraction), 1, windows - 1);
  }

  const TokenSourceOptions& options_;
  const bool many_;
};

void check_alike(const TokenStream& a, const TokenStream& b, const char* key) {
  const TokenFileFacts &fa = a.facts(), &fb = b.facts();
  if (fa.tokenizer == fb.tokenizer && fa.vocabulary == fb.vocabulary) return;
  throw Error(ErrorKind::input, a.path() + " and " + b.path() + " do not belong together: tokenizer " + fa.tokenizer + " with vocabulary " +
                                    std::to_string(fa.vocabulary) + ", and " + fb.tokenizer + " with " + std::to_string(fb.vocabulary) +
                                    ". One run reads tokens of one tokenizer. Change " + key + ".");
}

std::unique_ptr<TokenSource> together(std::vector<TokenStream> streams, const std::vector<CorpusEntry>& entries, int64_t context,
                                      const char* key, bool interleaved) {
  std::vector<double> wanted;
  for (std::size_t c = 0; c < streams.size(); ++c) {
    check_alike(streams.front(), streams[c], key);
    wanted.push_back(entries[c].weight > 0 ? entries[c].weight : static_cast<double>(streams[c].samples()));
  }
  const std::vector<int64_t> weights = whole_weights(wanted);
  std::vector<CorpusShare> corpora;
  for (std::size_t c = 0; c < streams.size(); ++c) {
    const std::vector<std::string>& paths = entries[c].paths;
    const std::string more = paths.size() > 1 ? " and " + std::to_string(paths.size() - 1) + " more" : "";
    corpora.push_back({paths.front() + more, streams[c].samples(), weights[c]});
  }
  return std::make_unique<TokenSource>(std::move(streams), std::move(corpora), context, interleaved);
}

}  // namespace

TokenSource::TokenSource(std::vector<TokenStream> streams, std::vector<CorpusShare> corpora, int64_t context, bool interleaved)
    : streams_(std::move(streams)), corpora_(std::move(corpora)), begins_{0}, context_(context) {
  NSP_REQUIRE(!streams_.empty() && streams_.size() == corpora_.size(), "a source has corpora, each a stream");
  XxHash64 hash;
  int64_t tokens = 0, original = 0;
  for (std::size_t c = 0; c < streams_.size(); ++c) {
    begins_.push_back(begins_.back() + streams_[c].samples());
    tokens += streams_[c].tokens();
    original += streams_[c].original_bytes();
    // With other weights other samples would be next.
    hash.add(streams_[c].fingerprint().data(), streams_[c].fingerprint().size());
    hash.add(static_cast<uint64_t>(corpora_[c].weight));
  }
  fingerprint_ = streams_.size() == 1 ? streams_.front().fingerprint() : hash_text(hash.value());
  if (knows_documents() && tokens > 0) bytes_per_token_ = static_cast<double>(original) / static_cast<double>(tokens);
  if (interleaved && streams_.size() > 1) interleave();
}

// Only a first part is put in order: an evaluation reads that much at most, except for the verb eval, which reads all.
void TokenSource::interleave() {
  constexpr int64_t most = int64_t{1} << 20;
  std::vector<int64_t> weights, taken(corpora_.size(), 0);
  for (const CorpusShare& corpus : corpora_) weights.push_back(corpus.weight);
  const MixSchedule schedule(weights);
  for (int64_t n = 0; n < most && static_cast<int64_t>(order_.size()) < samples(); ++n) {
    const MixSchedule::Place place = schedule.at(n);
    if (place.index >= corpora_[place.corpus].samples) continue;
    order_.push_back(begins_[place.corpus] + place.index);
    ++taken[place.corpus];
  }
  for (std::size_t c = 0; c < corpora_.size(); ++c)
    for (int64_t sample = begins_[c] + taken[c]; sample < begins_[c + 1]; ++sample) order_.push_back(sample);
}

void TokenSource::limit_vocabulary(int64_t model_vocabulary) {
  NSP_REQUIRE(model_vocabulary > 0, "a model has a vocabulary");
  if (vocabulary() > model_vocabulary)
    throw Error(ErrorKind::usage, "model.vocab is " + std::to_string(model_vocabulary) + ", the data needs " +
                                      std::to_string(vocabulary()) + ". Tokens of " + streams_.front().path() +
                                      " would have no embedding. Raise model.vocab.");
  vocabulary_limit_ = model_vocabulary;
}

void TokenSource::read(int64_t sample, int32_t* tokens, int32_t* document_start) {
  NSP_REQUIRE(sample >= 0 && sample < samples(), "a sample is read from within the source");
  if (!order_.empty()) sample = order_[static_cast<std::size_t>(sample)];
  const auto corpus = static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), sample) - begins_.begin() - 1);
  // The data's own vocabulary is the tighter bound: an id beyond it is damage even if the model has a row for it.
  streams_[corpus].read(sample - begins_[corpus], vocabulary() > 0 ? vocabulary() : vocabulary_limit_, tokens, document_start);
}

std::unique_ptr<TokenSource> open_train(const TokenSourceOptions& options) {
  NSP_REQUIRE(options.context >= 1, "a window has at least one token");
  const std::vector<CorpusEntry> entries = read_corpus_list(options.path, "data.path");
  const CorpusReader reader(options, entries.size() > 1);
  std::vector<TokenStream> streams;
  for (const CorpusEntry& entry : entries) streams.push_back(reader.train(entry));
  return together(std::move(streams), entries, options.context, "data.path", false);
}

std::unique_ptr<TokenSource> open_val(const TokenSourceOptions& options) {
  NSP_REQUIRE(options.context >= 1, "a window has at least one token");
  const char* key = options.val_path.empty() ? "data.path" : "data.val_path";
  const std::vector<CorpusEntry> entries = read_corpus_list(options.val_path.empty() ? options.path : options.val_path, key);
  const CorpusReader reader(options, entries.size() > 1);
  std::vector<TokenStream> streams;
  std::vector<CorpusEntry> found;
  for (const CorpusEntry& entry : entries)
    if (std::optional<TokenStream> stream = reader.val(entry)) {
      streams.push_back(std::move(*stream));
      found.push_back(entry);
    }
  if (streams.empty()) return nullptr;
  return together(std::move(streams), found, options.context, key, true);
}

}  // namespace nsp
