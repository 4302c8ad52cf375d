#include "core/data/prepared_index.hpp"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <locale>
#include <map>
#include <sstream>

#include "core/data/content_hash.hpp"
#include "core/data/output_file.hpp"
#include "nsp/error.hpp"

namespace nsp {
namespace {

constexpr const char* first_line = "# token shards prepared by nsp; the shards are listed in the order of the token stream";

// Takes apart one prepare.ini and remembers where it is, for the error text.
class IndexReader {
 public:
  IndexReader(const std::string& path, PreparedIndex& index) : path_(path), index_(index) {}

  void line(const std::string& text) {
    ++number_;
    if (text.empty() || text[0] == '#') return;
    if (text.front() == '[' && text.back() == ']') {
      section_ = text.substr(1, text.size() - 2);
      if (section_ != "prepared" && section_ != "train" && section_ != "val") fail("a section that nsp does not know");
      return;
    }
    const std::size_t equals = text.find(" = ");
    if (equals == std::string::npos) fail("no 'name = value'");
    const std::string name = text.substr(0, equals), value = text.substr(equals + 3);
    if (section_ == "prepared")
      values_[name] = value;
    else
      shard(name, value);
  }

  void end() {
    if (values_["version"] != "1") fail("version '" + values_["version"] + "', this nsp reads 1");
    index_.tokenizer = values_["tokenizer"];
    index_.vocabulary = number<int64_t>(values_["vocabulary"]);
    index_.seed = number<uint64_t>(values_["seed"]);
    index_.val_fraction = number<double>(values_["val_fraction"]);
    index_.original_bytes = number<int64_t>(values_["original_bytes"]);
    if (values_["fingerprint"] != index_.fingerprint()) fail("a fingerprint that does not fit the shards listed");
  }

 private:
  void shard(const std::string& name, const std::string& value) {
    // A name with a path in it would read files outside the folder.
    if (section_.empty() || name.find('/') != std::string::npos) fail("no shard name");
    std::istringstream words(value);
    std::string tokens, documents, checksum;
    words >> tokens >> documents >> checksum;
    PreparedShard shard{name, number<int64_t>(tokens), number<int64_t>(documents), number<uint64_t>(checksum, 16)};
    (section_ == "train" ? index_.train : index_.val).push_back(shard);
  }

  template <class Number, class... Base>
  Number number(const std::string& text, Base... base) const {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base...);
    if (error != std::errc() || end != text.data() + text.size() || text.empty()) fail("'" + text + "', which is not a number");
    return value;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::input, path_ + " is not a list of shards that nsp wrote: line " + std::to_string(number_) + " has " + what +
                                      ". It was changed or cut. Run nsp_app prepare again.");
  }

  const std::string& path_;
  PreparedIndex& index_;
  std::string section_;
  std::map<std::string, std::string> values_;
  int number_ = 0;
};

void list_shards(std::ostream& out, const char* section, const std::vector<PreparedShard>& shards) {
  out << "[" << section << "]\n";
  for (const PreparedShard& shard : shards)
    out << shard.name << " = " << shard.tokens << " " << shard.documents << " " << hash_text(shard.checksum) << "\n";
}

}  // namespace

std::string PreparedIndex::fingerprint() const {
  XxHash64 hash;
  for (const auto* split : {&train, &val}) {
    hash.add(split->size());
    for (const PreparedShard& shard : *split) {
      hash.add(static_cast<uint64_t>(shard.tokens));
      hash.add(shard.checksum);
    }
  }
  return hash_text(hash.value());
}

std::string prepared_index_path(const std::string& folder) {
  return (std::filesystem::path(folder) / "prepare.ini").string();
}

bool is_prepared_folder(const std::string& folder) noexcept {
  try {
    std::ifstream in(prepared_index_path(folder));
    std::string line;
    return std::getline(in, line) && line == first_line;
  } catch (...) {
    return false;
  }
}

PreparedIndex read_prepared_index(const std::string& folder) {
  const std::string path = prepared_index_path(folder);
  std::ifstream in(path);
  if (!in)
    throw Error(ErrorKind::input, "cannot read " + path + ". Without it " + folder +
                                      " is not a prepared folder. Make one with: nsp_app "
                                      "prepare --input TEXT --output " +
                                      folder);
  PreparedIndex index;
  IndexReader reader(path, index);
  for (std::string line; std::getline(in, line);) reader.line(line);
  reader.end();
  return index;
}

void write_prepared_index(const PreparedIndex& index, const std::string& folder) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  char fraction[32];
  const auto fraction_end = std::to_chars(fraction, fraction + sizeof fraction, index.val_fraction).ptr;
  out << first_line << "\n[prepared]\nversion = 1\ntokenizer = " << index.tokenizer << "\nvocabulary = " << index.vocabulary
      << "\nseed = " << index.seed << "\nval_fraction = " << std::string(fraction, fraction_end)
      << "\noriginal_bytes = " << index.original_bytes << "\nfingerprint = " << index.fingerprint()
      << "\n# name = tokens documents checksum\n";
  list_shards(out, "train", index.train);
  list_shards(out, "val", index.val);
  OutputFile file(prepared_index_path(folder));
  file.append(out.str().data(), out.str().size());
  file.commit();
}

}  // namespace nsp
