// nsp_app generate: continues a prompt, with the keys and values of what was read kept, in one process.
#include <cstdio>
#include <iostream>
#include <iterator>

#include "core/app/inference.hpp"
#include "core/app/verbs.hpp"
#include "core/data/byte_tokenizer.hpp"
#include "core/data/tokenizer.hpp"
#include "core/train/text_generator.hpp"

namespace nsp {
namespace {

std::vector<MemoryLine> memory_of_text(const ModelSpec& spec, const JobPlan& plan) {
  return {{"keys and values", "", "device", TextGenerator::cache_bytes(spec, plan.context, plan.dtype)},
          {"logits", "", "device", 4 * spec.padded_vocab()},
          {"staging: logits", "", "pinned", 4 * spec.padded_vocab()}};
}

std::unique_ptr<Tokenizer> tokenizer_of(const Attributes& attributes) {
  const std::string id = attributes.count("data.tokenizer") ? attributes.at("data.tokenizer") : "";
  if (id != ByteTokenizer().id())
    throw Error(
        ErrorKind::input,
        "the run was trained on tokens of '" + id +
            "', which nsp cannot turn into text. It has the byte tokenizer only. Generate with a run whose data nsp_app prepare made.");
  return make_tokenizer(id);
}

std::string read_prompt(const std::string& given) {
  if (given != "-") return given;
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void continue_prompt(Session& session, World& world) {
  Inference inference(session, world, {1, memory_of_text});
  const Options& verb = session.config().section("generate");
  const std::unique_ptr<Tokenizer> tokenizer = tokenizer_of(inference.checkpoint().attributes());
  const std::string prompt = read_prompt(verb.text("prompt"));
  std::vector<int32_t> tokens;
  tokenizer->encode(prompt, tokens);
  if (tokens.empty()) tokens.push_back(tokenizer->end_of_document());
  BatchLoader loader(inference.device(), inference.job().parts().stream, world.wait(), inference.job().shape(), false,
                     inference.spec().vocab);
  TextGenerator generator(inference.job().parts(), loader, TextGenerator::Cache::keys_and_values);
  const Job::Drain drain(inference.job());
  print(prompt);
  const Sampling sampling{verb.number("temperature"), verb.integer("top-k"), static_cast<uint64_t>(verb.integer("seed")),
                          tokenizer->vocabulary()};
  generator.generate(tokens, verb.integer("tokens"), sampling, [&](int32_t token) {
    if (token == tokenizer->end_of_document()) return false;
    print(tokenizer->decode(std::span<const int32_t>(&token, 1)));
    return true;
  });
  print("\n");
}

}  // namespace

int run_generate(Session& session) {
  World world(session, true);
  try {
    continue_prompt(session, world);
  } catch (const std::exception& e) {
    return end_with_error(world, e);
  }
  world.close();
  return exit_code::done;
}

}  // namespace nsp
