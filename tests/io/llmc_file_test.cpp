#include "io/llmc_file.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "nsp/error.hpp"
#include "temp_folder.hpp"

namespace nsp::test {
namespace {

std::string golden() {
  const char* source = std::getenv("NSP_TEST_SOURCE_DIR");
  return std::string(source != nullptr ? source : ".") + "/tests/golden/llmc_tiny/gpt2_124M.bin";
}

class LlmcFile : public testing::Test {
 protected:
  LlmcFile() {
    std::ifstream in(golden(), std::ios::binary);
    whole_.assign(std::istreambuf_iterator<char>(in), {});
  }
  int32_t word(std::size_t i) const {
    int32_t value = 0;
    std::memcpy(&value, whole_.data() + 4 * i, 4);
    return value;
  }
  float value(std::size_t i) const {  // the i-th float of the file's parameters
    float v = 0;
    std::memcpy(&v, whole_.data() + 1024 + 4 * i, 4);
    return v;
  }
  std::string write(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
    return path_;
  }
  std::string with(std::size_t i, int32_t value) {
    std::string bytes = whole_;
    std::memcpy(bytes.data() + 4 * i, &value, 4);
    return write(bytes);
  }
  std::string refusal(const std::string& path, ErrorKind kind = ErrorKind::input) {
    try {
      read_llmc_model(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind);
      return error.what();
    }
    ADD_FAILURE() << "read";
    return {};
  }
  TempFolder folder_;
  std::string path_ = folder_ / "model.bin", whole_;
};

TEST_F(LlmcFile, SizesAndTensorsByName) {
  ASSERT_GT(whole_.size(), 1024u) << golden();
  const LlmcModel m = read_llmc_model(golden());
  EXPECT_EQ(m.context, 64);
  EXPECT_EQ(m.vocab, 500);
  EXPECT_EQ(m.padded_vocab, 512);
  EXPECT_EQ(m.layers, 2);
  EXPECT_EQ(m.heads, 4);
  EXPECT_EQ(m.channels, 64);
  ASSERT_EQ(m.tensors.size(), 4u + 2 * 12);
  // Places computed here by llm.c's order: all layers of one kind before the next kind.
  const std::size_t c = 64, wpe = 512 * c, ln1w = wpe + 64 * c, ln1b = ln1w + 2 * c, qkvw = ln1b + 2 * c, qkvb = qkvw + 2 * 3 * c * c,
                    projw = qkvb + 2 * 3 * c, projb = projw + 2 * c * c, ln2w = projb + 2 * c, ln2b = ln2w + 2 * c, fcw = ln2b + 2 * c,
                    fcb = fcw + 2 * 4 * c * c, fcpw = fcb + 2 * 4 * c, fcpb = fcpw + 2 * 4 * c * c, lnfw = fcpb + 2 * c, lnfb = lnfw + c;
  struct Place {
    const char* name;
    std::size_t at;
    std::vector<int64_t> shape;
  };
  for (const Place& place : std::vector<Place>{{"embedding.wte", 0, {500, 64}},
                                               {"embedding.wpe", wpe, {64, 64}},
                                               {"blocks.0.ln1.weight", ln1w, {64}},
                                               {"blocks.1.ln1.bias", ln1b + c, {64}},
                                               {"blocks.1.attn.qkv.weight", qkvw + 3 * c * c, {192, 64}},
                                               {"blocks.1.attn.qkv.bias", qkvb + 3 * c, {192}},
                                               {"blocks.0.attn.proj.weight", projw, {64, 64}},
                                               {"blocks.1.attn.proj.bias", projb + c, {64}},
                                               {"blocks.1.ln2.weight", ln2w + c, {64}},
                                               {"blocks.0.ln2.bias", ln2b, {64}},
                                               {"blocks.1.mlp.fc.weight", fcw + 4 * c * c, {256, 64}},
                                               {"blocks.1.mlp.fc.bias", fcb + 4 * c, {256}},
                                               {"blocks.1.mlp.proj.weight", fcpw + 4 * c * c, {64, 256}},
                                               {"blocks.0.mlp.proj.bias", fcpb, {64}},
                                               {"head.ln.weight", lnfw, {64}},
                                               {"head.ln.bias", lnfb, {64}}}) {
    ASSERT_TRUE(m.tensors.count(place.name)) << place.name;
    const LlmcTensor& tensor = m.tensors.at(place.name);
    EXPECT_EQ(tensor.shape, place.shape) << place.name;
    std::size_t n = 1;
    for (int64_t size : place.shape) n *= static_cast<std::size_t>(size);
    ASSERT_EQ(tensor.values.size(), n) << place.name;
    EXPECT_EQ(tensor.values.front(), value(place.at)) << place.name;
    EXPECT_EQ(tensor.values.back(), value(place.at + n - 1)) << place.name;
  }
  EXPECT_EQ((lnfb + c) * 4 + 1024, whole_.size());
  EXPECT_TRUE(is_llmc_model(golden()));
}

TEST_F(LlmcFile, Version5HoldsTheUpperHalves) {
  std::string bytes = whole_.substr(0, 1024);
  bytes[4] = 5;
  for (std::size_t at = 1024; at < whole_.size(); at += 4) bytes += whole_.substr(at + 2, 2);  // cut, so that the expected bits are plain
  const LlmcModel fp32 = read_llmc_model(golden()), bf16 = read_llmc_model(write(bytes));
  ASSERT_EQ(bf16.tensors.size(), fp32.tensors.size());
  EXPECT_EQ(bf16.padded_vocab, 512);
  for (const auto& [name, tensor] : fp32.tensors) {
    const LlmcTensor& half = bf16.tensors.at(name);
    ASSERT_EQ(half.shape, tensor.shape) << name;
    for (std::size_t i = 0; i < tensor.values.size(); ++i) {
      uint32_t wanted, got;
      std::memcpy(&wanted, &tensor.values[i], 4);
      std::memcpy(&got, &half.values[i], 4);
      ASSERT_EQ(got, wanted & 0xffff0000u) << name << " " << i;
    }
  }
  refusal(write(bytes.substr(0, bytes.size() - 2)));
  refusal(with(1, 5));  // the sizes of fp32 under the version of bf16
}

TEST_F(LlmcFile, WhatIsNoSuchFile) {
  EXPECT_NE(refusal(with(0, 20240520)).find("20240326"), std::string::npos);
  EXPECT_FALSE(is_llmc_model(path_));
  EXPECT_NE(refusal(with(1, 4)).find("version 4; versions 3 (fp32) and 5 (bf16) are read"), std::string::npos);
  EXPECT_NE(refusal(write("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")).find("LFS"), std::string::npos);
  refusal(write(""));
  refusal(write("\x16\xd7"));
  refusal(folder_ / "absent", ErrorKind::io);
  refusal(folder_.path(), ErrorKind::io);
}

TEST_F(LlmcFile, TornFiles) {
  for (std::size_t length : {std::size_t{8}, std::size_t{1023}, std::size_t{1024}, whole_.size() - 4, whole_.size() - 1})
    refusal(write(whole_.substr(0, length)));
  refusal(write(whole_ + "1234"));
}

TEST_F(LlmcFile, ImpossibleSizes) {
  for (std::size_t i = 2; i < 8; ++i) {
    for (int32_t value : {0, -1, INT32_MIN, INT32_MAX}) refusal(with(i, value));
  }
  EXPECT_NE(refusal(with(5, 5)).find("heads 5"), std::string::npos);           // does not divide 64 channels
  EXPECT_NE(refusal(with(3, 513)).find("vocabulary 513"), std::string::npos);  // more than its padding
  refusal(with(4, 3));                                                         // a layer more than there is
}

}  // namespace
}  // namespace nsp::test
