#include "io/llmc_file.hpp"

#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "io/durable.hpp"
#include "nsp/bf16.hpp"
#include "nsp/error.hpp"

namespace nsp {
namespace {

constexpr int32_t magic = 20240326, version_fp32 = 3, version_bf16 = 5;
constexpr std::size_t header_words = 256;
using Header = std::array<int32_t, header_words>;

struct CloseFile {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

[[noreturn]] void refuse(const std::string& path, const std::string& why, const std::string& advice) {
  throw Error(ErrorKind::input, "cannot use the model file " + path + ". " + why + ". " + advice);
}

File open_file(const std::string& path) {
  File file(std::fopen(path.c_str(), "rb"));
  if (!file)
    throw Error(ErrorKind::io, "cannot open the model file " + path + ". " + errno_text(errno) + ". Check the path and your permissions.");
  return file;
}

int64_t size_of_file(std::FILE* file, const std::string& path) {
  struct stat info {};
  if (::fstat(::fileno(file), &info) != 0 || !S_ISREG(info.st_mode))
    throw Error(ErrorKind::io, "cannot read the model file " + path + ". It is no plain file. Check the path.");
  return info.st_size;
}

Header read_header(std::FILE* file, const std::string& path) {
  Header header{};
  const std::size_t bytes = std::fread(header.data(), 1, sizeof header, file);
  constexpr char pointer[] = "version https://git-lfs";
  if (bytes >= sizeof pointer - 1 && std::memcmp(header.data(), pointer, sizeof pointer - 1) == 0)
    refuse(path, "It is a Git LFS pointer, not the model itself", "Run `git lfs pull` where it came from");
  if (bytes < 2 * sizeof(int32_t) || header[0] != magic)
    refuse(path, "It does not start with llm.c's model number 20240326",
           "Give a model file of llm.c (gpt2_124M.bin) or a checkpoint of nsp");
  if (header[1] != version_fp32 && header[1] != version_bf16)
    refuse(path, "It has version " + std::to_string(header[1]) + "; versions 3 (fp32) and 5 (bf16) are read",
           "Write it again with llm.c's train_gpt2.py");
  if (bytes < sizeof header) refuse(path, "It ends within its header", "Copy it again");
  return header;
}

LlmcModel sizes_from(const Header& header, const std::string& path) {
  LlmcModel model;
  model.context = header[2], model.vocab = header[3], model.layers = header[4], model.heads = header[5], model.channels = header[6],
  model.padded_vocab = header[7];
  // Bounds far above any model, so that the products below cannot overflow.
  const bool sane = model.context > 0 && model.context <= 1 << 26 && model.vocab > 0 && model.padded_vocab >= model.vocab &&
                    model.padded_vocab <= 1 << 26 && model.layers > 0 && model.layers <= 1 << 14 && model.heads > 0 && model.channels > 0 &&
                    model.channels <= 1 << 18 && model.channels % model.heads == 0;
  if (!sane)
    refuse(path,
           "Its sizes are impossible: context " + std::to_string(model.context) + ", vocabulary " + std::to_string(model.vocab) +
               " (padded " + std::to_string(model.padded_vocab) + "), layers " + std::to_string(model.layers) + ", heads " +
               std::to_string(model.heads) + ", channels " + std::to_string(model.channels),
           "The file is damaged; copy it again");
  return model;
}

// Fills `count` floats from the file, which has them as bf16. The file's bytes go into the upper half of `to` first; widening from
// the front never overtakes what is still to be read.
bool read_bf16(std::FILE* file, float* to, std::size_t count) {
  auto* bytes = reinterpret_cast<unsigned char*>(to);
  const unsigned char* half = bytes + 2 * count;
  if (std::fread(bytes + 2 * count, 2, count, file) != count) return false;
  for (std::size_t i = 0; i < count; ++i) {
    uint16_t bits;
    std::memcpy(&bits, half + 2 * i, sizeof bits);
    const float value = from_bf16(bits);
    std::memcpy(bytes + 4 * i, &value, sizeof value);
  }
  return true;
}

// One kind of tensor in llm.c's order: `copies` of it lie one after the other (one per layer, or a single one).
struct Kind {
  std::string name;  // nsp's, with # for the layer
  std::vector<int64_t> shape;
  int64_t copies;
  int64_t stored;  // floats of one copy in the file; more than the shape's if padded
};

std::vector<Kind> kinds_of(const LlmcModel& m) {
  const int64_t c = m.channels, l = m.layers;
  return {
      {"embedding.wte", {m.vocab, c}, 1, m.padded_vocab * c},
      {"embedding.wpe", {m.context, c}, 1, m.context * c},
      {"blocks.#.ln1.weight", {c}, l, c},
      {"blocks.#.ln1.bias", {c}, l, c},
      {"blocks.#.attn.qkv.weight", {3 * c, c}, l, 3 * c * c},
      {"blocks.#.attn.qkv.bias", {3 * c}, l, 3 * c},
      {"blocks.#.attn.proj.weight", {c, c}, l, c * c},
      {"blocks.#.attn.proj.bias", {c}, l, c},
      {"blocks.#.ln2.weight", {c}, l, c},
      {"blocks.#.ln2.bias", {c}, l, c},
      {"blocks.#.mlp.fc.weight", {4 * c, c}, l, 4 * c * c},
      {"blocks.#.mlp.fc.bias", {4 * c}, l, 4 * c},
      {"blocks.#.mlp.proj.weight", {c, 4 * c}, l, 4 * c * c},
      {"blocks.#.mlp.proj.bias", {c}, l, c},
      {"head.ln.weight", {c}, 1, c},
      {"head.ln.bias", {c}, 1, c},
  };
}

}  // namespace

bool is_llmc_model(const std::string& path) {
  const File file(std::fopen(path.c_str(), "rb"));
  int32_t first = 0;
  return file && std::fread(&first, sizeof first, 1, file.get()) == 1 && first == magic;
}

LlmcModel read_llmc_model(const std::string& path) {
  const File file = open_file(path);
  const int64_t bytes = size_of_file(file.get(), path);
  const Header header = read_header(file.get(), path);
  const bool bf16 = header[1] == version_bf16;
  LlmcModel model = sizes_from(header, path);
  const std::vector<Kind> kinds = kinds_of(model);
  int64_t floats = 0;
  for (const Kind& kind : kinds) floats += kind.copies * kind.stored;
  const int64_t expected = static_cast<int64_t>(sizeof(Header)) + floats * (bf16 ? 2 : 4);
  if (bytes != expected)
    refuse(path, "It has " + std::to_string(bytes) + " bytes, and a model of its sizes has " + std::to_string(expected),
           "The file is torn or damaged; copy it again");
  model.storage.reset(new float[static_cast<std::size_t>(floats)]);  // not value-initialised: it is read over at once
  const auto count = static_cast<std::size_t>(floats);
  const bool read =
      bf16 ? read_bf16(file.get(), model.storage.get(), count) : std::fread(model.storage.get(), sizeof(float), count, file.get()) == count;
  if (!read) throw Error(ErrorKind::io, "cannot read the model file " + path + ". " + errno_text(errno) + ". Check the file system.");
  const float* at = model.storage.get();
  for (const Kind& kind : kinds) {
    std::size_t n = 1;
    for (int64_t size : kind.shape) n *= static_cast<std::size_t>(size);
    for (int64_t layer = 0; layer < kind.copies; ++layer, at += kind.stored) {
      std::string name = kind.name;
      if (const std::size_t mark = name.find('#'); mark != std::string::npos) name.replace(mark, 1, std::to_string(layer));
      model.tensors[name] = {kind.shape, std::span<const float>(at, n)};
    }
  }
  return model;
}

}  // namespace nsp
