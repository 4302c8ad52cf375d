// Writes valid files into FOLDER/<fuzzer>/, from which the fuzzers start: fuzz_seeds FOLDER
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <vector>

#include "core/data/token_file_writer.hpp"
#include "io/hdf5_store.hpp"
#include "tests/io/sample_checkpoint.hpp"

namespace {

namespace fs = std::filesystem;

std::string folder(const std::string& root, const char* name) {
  const std::string path = root + "/" + name;
  fs::create_directories(path);
  return path;
}

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void ini(const std::string& to) {
  write(to + "/a",
        "plugins = desloc, autosp # two\n[train]\nlr = 3e-4\n; comment\nsteps = 10k\n[run]\ndir = \"runs/a # \\\"b\\\" \\\\ \\n\"\n");
}

void jsonl(const std::string& to) {
  write(to + "/a", "{\"text\": \"hello \\u00e9 \\ud83d\\ude00 \\n\", \"n\": [1, -2.5e3, true, null, {\"a\": \"b\"}]}\n{\"text\":\"\"}\n");
}

void token_file(const std::string& to) {
  for (const int64_t vocabulary : {257, 100000}) {
    const std::string path = to + "/shard";
    nsp::TokenFileWriter writer(path, vocabulary, "bytes");
    for (int document = 0; document < 3; ++document) {
      writer.begin_document();
      const std::vector<int32_t> tokens{72, 101, 108, 108, 111, 256};
      writer.append(tokens, 5);
    }
    writer.finish();
    write(to + "/" + std::to_string(vocabulary), "\x01" + read(path));
    fs::remove(path);
  }
  for (const int32_t version : {1, 7}) {
    std::vector<int32_t> header(256, 0);
    header[0] = version == 1 ? 20240520 : 20240801;
    header[1] = version;
    header[2] = 8;
    std::string bytes(1, '\0');
    bytes.append(reinterpret_cast<const char*>(header.data()), 4 * header.size());
    write(to + "/llmc" + std::to_string(version), bytes + std::string(version == 1 ? 16 : 32, '\x07'));
  }
}

void llmc_model(const std::string& to) {
  constexpr int context = 4, vocab = 5, padded = 8, layers = 1, channels = 4;
  for (const int32_t version : {3, 5}) {
    std::vector<int32_t> header(256, 0);
    const int32_t words[] = {20240326, version, context, vocab, layers, 2, channels, padded};
    std::memcpy(header.data(), words, sizeof words);
    const int parameters =
        padded * channels + context * channels + layers * (4 * channels + 12 * channels * channels + 9 * channels) + 2 * channels;
    std::string bytes(reinterpret_cast<const char*>(header.data()), 4 * header.size());
    write(to + "/v" + std::to_string(version), bytes + std::string(static_cast<std::size_t>(parameters) * (version == 3 ? 4 : 2), '\x3c'));
  }
}

void manifest(const std::string& to) {
  nsp::Hdf5Store store(to + "/checkpoints");
  const std::vector<nsp::PieceRecord> pieces = nsp::test::write_shards(store, 1, 2);
  store.commit(1, nsp::test::sample_run, nsp::test::sample_attributes(1), pieces);
  write(to + "/file", std::string(1, '\0') + read(store.where(1) + "/manifest.h5"));
  const std::vector<char> table = nsp::serialize(pieces);
  write(to + "/table", "\x01" + std::string(table.begin(), table.end()));
  fs::remove_all(to + "/checkpoints");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: fuzz_seeds FOLDER\n";
    return 2;
  }
  const std::string root = argv[1];
  ini(folder(root, "ini"));
  jsonl(folder(root, "jsonl"));
  token_file(folder(root, "token_file"));
  llmc_model(folder(root, "llmc_model"));
  manifest(folder(root, "manifest"));
  return 0;
}
