// nsp_app generate: continues a prompt.
#include <cstdio>

#include "core/app/inference.hpp"
#include "core/app/verbs.hpp"
#include "core/data/byte_tokenizer.hpp"
#include "core/data/tokenizer.hpp"

namespace nsp {

int run_generate(Session& session) {
  Inference inference(session);
  const Options& verb = session.config().section("generate");
  const Attributes& attributes = inference.checkpoint().attributes();
  const std::string id = attributes.count("data.tokenizer") ? attributes.at("data.tokenizer") : "";
  if (id != ByteTokenizer().id())
    throw Error(
        ErrorKind::input,
        "the run was trained on tokens of '" + id +
            "', which nsp cannot turn into text. It has the byte tokenizer only. Generate with a run whose data nsp_app prepare made.");
  const std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(id);
  const std::string prompt = verb.text("prompt");
  std::vector<int32_t> tokens;
  tokenizer->encode(prompt, tokens);
  if (tokens.empty()) tokens.push_back(tokenizer->end_of_document());
  BatchLoader loader(inference.device(), inference.job().parts().stream, inference.world().wait(), inference.job().shape(), false,
                     inference.spec().vocab);
  TextGenerator generator(inference.job().parts(), loader);
  const Job::Drain drain(inference.job());
  std::fputs(prompt.c_str(), stdout);
  generator.generate(tokens, verb.integer("tokens"),
                     {verb.number("temperature"), verb.integer("top-k"), static_cast<uint64_t>(verb.integer("seed")), tokenizer->vocabulary()},
                     [&](int32_t token) {
                       if (token == tokenizer->end_of_document()) return false;
                       const std::string text = tokenizer->decode(std::span<const int32_t>(&token, 1));
                       std::fwrite(text.data(), 1, text.size(), stdout);
                       std::fflush(stdout);
                       return true;
                     });
  std::fputc('\n', stdout);
  return exit_code::done;
}

}  // namespace nsp
