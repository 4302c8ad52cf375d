#include "tests/model/llama_tiny.hpp"

#include <hdf5.h>

#include <cstdlib>
#include <string>

#include "nsp/error.hpp"

namespace nsp::test {
namespace {

// All values of a data set, whatever their type, as T's.
template <class T>
std::vector<T> read(hid_t file, const std::string& path, hid_t type) {
  const hid_t data = H5Dopen2(file, path.c_str(), H5P_DEFAULT);
  NSP_REQUIRE(data >= 0, "llama_tiny.h5 has " + path);
  const hid_t space = H5Dget_space(data);
  std::vector<T> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
  NSP_REQUIRE(H5Dread(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0, "llama_tiny.h5 can be read: " + path);
  H5Sclose(space);
  H5Dclose(data);
  return values;
}

// The tensors of one group; what nsp holds in one matrix are the rows of several there.
Params read_tensors(hid_t file, const std::string& group, int64_t layers) {
  Params params;
  const auto take = [&](const std::string& name, const std::vector<std::string>& parts) {
    Values& values = params[name];
    for (const std::string& part : parts) {
      const Values rows = read<double>(file, group + "/" + part + ".weight", H5T_NATIVE_DOUBLE);
      values.insert(values.end(), rows.begin(), rows.end());
    }
  };
  take("embedding.wte", {"model.embed_tokens"});
  for (int64_t l = 0; l < layers; ++l) {
    const std::string block = "blocks." + std::to_string(l) + ".", layer = "model.layers." + std::to_string(l) + ".";
    take(block + "norm1.weight", {layer + "input_layernorm"});
    take(block + "attn.qkv.weight", {layer + "self_attn.q_proj", layer + "self_attn.k_proj", layer + "self_attn.v_proj"});
    take(block + "attn.proj.weight", {layer + "self_attn.o_proj"});
    take(block + "norm2.weight", {layer + "post_attention_layernorm"});
    take(block + "mlp.gate_up.weight", {layer + "mlp.gate_proj", layer + "mlp.up_proj"});
    take(block + "mlp.proj.weight", {layer + "mlp.down_proj"});
  }
  take("head.norm.weight", {"model.norm"});
  take("head.lm_head.weight", {"lm_head"});
  return params;
}

std::vector<std::vector<int32_t>> by_step(const std::vector<int32_t>& flat) {
  constexpr int64_t rows = LlamaTiny::batch * LlamaTiny::tokens;
  std::vector<std::vector<int32_t>> steps;
  for (auto at = flat.begin(); at != flat.end(); at += rows) steps.emplace_back(at, at + rows);
  return steps;
}

}  // namespace

LlamaTiny read_llama_tiny() {
  LlamaTiny tiny;
  ModelSpec& s = tiny.spec;
  s = ModelSpec::of_family("llama");
  s.layers = 2;
  s.hidden = 64;
  s.heads = 4;
  s.kv_heads = 2;
  s.ffn = 176;
  s.vocab = 320;
  s.context = 128;
  s = s.completed();

  const char* root = std::getenv("NSP_TEST_SOURCE_DIR");
  const std::string path = std::string(root != nullptr ? root : ".") + "/tests/golden/llama_tiny/llama_tiny.h5";
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  NSP_REQUIRE(file >= 0, "the reference data is there: " + path);
  tiny.parameters = read_tensors(file, "parameters", s.layers);
  tiny.gradients = read_tensors(file, "gradients_batch0", s.layers);
  tiny.parameters_after = read_tensors(file, "parameters_after", s.layers);
  tiny.logits = read<double>(file, "logits_batch0", H5T_NATIVE_DOUBLE);
  tiny.loss = read<double>(file, "loss_batch0", H5T_NATIVE_DOUBLE).at(0);
  tiny.losses = read<double>(file, "losses", H5T_NATIVE_DOUBLE);
  tiny.grad_norms = read<double>(file, "grad_norms", H5T_NATIVE_DOUBLE);
  tiny.inputs = by_step(read<int32_t>(file, "inputs", H5T_NATIVE_INT32));
  tiny.targets = by_step(read<int32_t>(file, "targets", H5T_NATIVE_INT32));
  H5Fclose(file);
  return tiny;
}

}  // namespace nsp::test
