#include "core/data/prepare.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iomanip>
#include <locale>
#include <sstream>
#include <utility>

#include "core/data/document_reader.hpp"
#include "core/data/file_search.hpp"
#include "core/data/split_writer.hpp"
#include "core/data/staged_folder.hpp"
#include "core/data/survey.hpp"
#include "nsp/error.hpp"
#include "nsp/xxhash64.hpp"

namespace nsp {
namespace {

// Of both readings; a file that may be the only document is read once more, to cut it. A file whose size is not known counts as
// nothing, and its reader says what is wrong.
int64_t bytes_to_read(const std::vector<std::string>& files) {
  int64_t total = 0;
  std::error_code unknown;
  for (const std::string& file : files)
    if (const auto bytes = std::filesystem::file_size(file, unknown); !unknown) total += static_cast<int64_t>(bytes);
  return total * (files.size() == 1 ? 3 : 2);
}

std::string listed(const std::map<std::string, int64_t>& skipped) {
  std::string text;
  for (const auto& [why, count] : skipped) text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + why;
  return text;
}

Survey survey_inputs(const PrepareOptions& options, const FoundFiles& found, ReadMeter& meter) {
  Survey survey = survey_files(found.files, {options.text_key, options.seed, options.threads}, meter);
  for (const auto& [why, count] : found.skipped) survey.skipped[why] += count;
  int64_t bytes = 0;
  for (const TextFileFacts& file : survey.files) bytes += file.bytes;
  meter.expect(bytes);  // files that gave nothing are not read again
  if (survey.hashes.empty())
    throw Error(ErrorKind::input, "there is no text to prepare (empty corpus). Nothing was left of the inputs after passing over " +
                                      listed(survey.skipped) + ". Give text files with --input.");
  return survey;
}

// Documents whose hash is below the limit are held out. The bounds keep the smallest hash held out and the largest not.
uint64_t held_out_limit(const std::vector<uint64_t>& hashes, double fraction) {
  if (fraction <= 0) return 0;
  const auto [smallest, largest] = std::minmax_element(hashes.begin(), hashes.end());
  const auto limit = static_cast<uint64_t>(std::ldexp(fraction, 64));  // fraction < 1, so it fits
  return std::clamp(limit, *smallest + 1, *largest);
}

// Encodes one document that comes in pieces.
class PieceEncoder {
 public:
  explicit PieceEncoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  struct Encoded {
    std::span<const int32_t> tokens;  // valid until the next call
    int64_t original_bytes;
  };
  Encoded encode(std::string_view text, bool ends) {
    tokens_.clear();
    if (!rest_.empty()) {
      rest_ += text;
      text = rest_;
    }
    const std::size_t ready = ends ? text.size() : tokenizer_.independent_prefix(text);
    tokenizer_.encode(text.substr(0, ready), tokens_);
    rest_ = std::string(text.substr(ready));
    if (ends) tokens_.push_back(tokenizer_.end_of_document());
    return {tokens_, static_cast<int64_t>(ready)};
  }

 private:
  const Tokenizer& tokenizer_;
  std::string rest_;  // the end of the last piece, whose tokens depend on what follows
  std::vector<int32_t> tokens_;
};

// The second reading: every document's tokens go to its split.
class Preparation {
 public:
  Preparation(const PrepareOptions& options, const Tokenizer& tokenizer, const Survey& survey, const std::string& folder, ReadMeter& meter)
      : options_(options),
        tokenizer_(tokenizer),
        survey_(survey),
        meter_(meter),
        train_(folder, "train", tokenizer, options.shard_tokens),
        val_(folder, "val", tokenizer, options.shard_tokens) {}

  void write(PrepareReport& report) {
    const auto [smallest, largest] = std::minmax_element(survey_.hashes.begin(), survey_.hashes.end());
    if (options_.val_fraction > 0 && *smallest == *largest)
      write_one_document(report);
    else
      write_documents(report);
    report.index.train = train_.finish();
    report.index.val = val_.finish();
  }

 private:
  using Piece = std::function<void(std::string_view text, bool begins, bool ends)>;

  // Reads the documents of one file once more; `at` counts documents over all files.
  void read_again(const TextFileFacts& file, std::size_t& at, const Piece& piece) const {
    XxHash64 hash(options_.seed);
    const std::size_t end = at + static_cast<std::size_t>(file.documents);
    bool any = false;
    const auto take = [&](std::string_view text, bool ends) {
      const bool begins = !any && !text.empty();
      any = any || begins;
      hash.add(text.data(), text.size());
      if (any && at >= end) changed(file.path);
      if (any) piece(text, begins, ends);
      if (!ends) return;
      if (any && hash.value() != survey_.hashes[at++]) changed(file.path);
      hash = XxHash64(options_.seed);
      any = false;
    };
    read_documents(file.path, options_.text_key, take, [&](std::size_t bytes) { meter_.add(static_cast<int64_t>(bytes)); });
    if (at != end) changed(file.path);
  }

  [[noreturn]] void changed(const std::string& path) const {
    throw Error(ErrorKind::input,
                path +
                    " changed while it was read. Its second reading gave other text than the first. Run prepare again when "
                    "no program writes to it.");
  }

  void write_documents(PrepareReport& report) {
    const uint64_t limit = held_out_limit(survey_.hashes, options_.val_fraction);
    PieceEncoder encoder(tokenizer_);
    std::size_t at = 0;
    for (const TextFileFacts& file : survey_.files)
      read_again(file, at, [&](std::string_view text, bool begins, bool ends) {
        SplitWriter& split = survey_.hashes[at] < limit ? val_ : train_;
        if (begins) split.begin_document();
        const auto encoded = encoder.encode(text, ends);
        split.append(encoded.tokens, encoded.original_bytes);
        report.index.original_bytes += encoded.original_bytes;
      });
    report.documents = static_cast<int64_t>(survey_.hashes.size());
    report.files = static_cast<int64_t>(survey_.files.size());
  }

  // Calls take(encoded, begins) for the tokens of the first document.
  void encode_first(const std::function<void(const PieceEncoder::Encoded&, bool)>& take) const {
    PieceEncoder encoder(tokenizer_);
    std::size_t at = 0;
    read_again(survey_.files.front(), at, [&](std::string_view text, bool begins, bool ends) {
      if (at == 0) take(encoder.encode(text, ends), begins);
    });
  }

  void write_one_document(PrepareReport& report) {
    meter_.expect(2 * survey_.files.front().bytes);
    int64_t tokens = 0;
    encode_first([&](const PieceEncoder::Encoded& encoded, bool) { tokens += static_cast<int64_t>(encoded.tokens.size()); });
    const int64_t held = std::clamp<int64_t>(std::llround(static_cast<double>(tokens) * options_.val_fraction), 1, tokens - 1);
    int64_t left = tokens - held;  // for training
    bool val_begins = true;
    encode_first([&](const PieceEncoder::Encoded& encoded, bool begins) {
      if (begins) train_.begin_document();
      const auto first = encoded.tokens.first(std::min(encoded.tokens.size(), static_cast<std::size_t>(left)));
      const auto second = encoded.tokens.subspan(first.size());
      const auto second_bytes = static_cast<int64_t>(tokenizer_.decode(second).size());
      train_.append(first, encoded.original_bytes - second_bytes);
      if (!second.empty() && std::exchange(val_begins, false)) val_.begin_document();
      val_.append(second, second_bytes);
      left -= static_cast<int64_t>(first.size());
      report.index.original_bytes += encoded.original_bytes;
    });
    report.documents = report.files = 1;
    report.notes.push_back("there is one document only: its last " + std::to_string(held) + " of " + std::to_string(tokens) +
                           " tokens are held out");
    if (survey_.hashes.size() > 1) report.skipped["documents equal to another"] += static_cast<int64_t>(survey_.hashes.size()) - 1;
  }

  const PrepareOptions& options_;
  const Tokenizer& tokenizer_;
  const Survey& survey_;
  ReadMeter& meter_;
  SplitWriter train_, val_;
};

std::string counted(int64_t number, const char* noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

int64_t sum(const std::vector<PreparedShard>& shards, int64_t PreparedShard::*member) {
  int64_t total = 0;
  for (const PreparedShard& shard : shards) total += shard.*member;
  return total;
}

}  // namespace

PrepareReport prepare(const PrepareOptions& options) {
  const auto tokenizer = make_tokenizer(options.tokenizer);
  if (!(options.val_fraction >= 0 && options.val_fraction < 1))
    throw Error(ErrorKind::usage, "val_fraction is " + std::to_string(options.val_fraction) +
                                      ". It is the share of the documents that is held "
                                      "out of training. Give a number from 0 to below 1.");
  if (options.inputs.empty() || options.output.empty())
    throw Error(ErrorKind::usage,
                "prepare needs an input and an output. One of them is missing. Use: nsp_app prepare --input notes/ --output "
                "data/mine");
  const FoundFiles found = find_files(options.inputs, [&](const std::filesystem::path& folder) {
    return StagedFolder::belongs_to(folder, options.output) || is_prepared_folder(folder.string());
  });
  StagedFolder staged(options.output);  // before the text is read: a bad place is known at once
  ReadMeter meter(options.progress, bytes_to_read(found.files));
  const Survey survey = survey_inputs(options, found, meter);

  PrepareReport report;
  report.output = options.output;
  report.skipped = survey.skipped;
  report.index.tokenizer = tokenizer->id();
  report.index.vocabulary = tokenizer->vocabulary();
  report.index.seed = options.seed;
  report.index.val_fraction = options.val_fraction;
  Preparation(options, *tokenizer, survey, staged.path(), meter).write(report);
  write_prepared_index(report.index, staged.path());
  staged.commit();
  return report;
}

std::string PrepareReport::text() const {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  const int64_t train = sum(index.train, &PreparedShard::tokens), val = sum(index.val, &PreparedShard::tokens);
  const auto split = [&](const char* name, const std::vector<PreparedShard>& shards, int64_t tokens) {
    out << name << tokens << " tokens (" << std::fixed << std::setprecision(1)
        << 100.0 * static_cast<double>(tokens) / static_cast<double>(train + val) << "%), "
        << counted(sum(shards, &PreparedShard::documents), "document") << ", " << counted(static_cast<int64_t>(shards.size()), "shard")
        << "\n";
  };
  out << "prepared  " << output << "\n";
  out << "read      " << counted(files, "file") << ", " << counted(index.original_bytes, "byte") << ", " << counted(documents, "document")
      << "\n";
  if (!skipped.empty()) out << "skipped   " << listed(skipped) << "\n";
  split("train     ", index.train, train);
  split("held out  ", index.val, val);
  out << "tokenizer " << index.tokenizer << ", vocabulary " << index.vocabulary << ", fingerprint " << index.fingerprint() << "\n";
  for (const std::string& note : notes) out << "note      " << note << "\n";
  return out.str();
}

}  // namespace nsp
