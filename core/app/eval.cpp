// nsp_app eval: loss, perplexity and bits per byte of a checkpoint on held-out data.
#include <cmath>
#include <cstdio>

#include "core/app/inference.hpp"
#include "core/app/verbs.hpp"
#include "core/data/token_source.hpp"

namespace nsp {

int run_eval(Session& session) {
  Inference inference(session);
  const Options& data = session.config().section("data");
  const auto value = [&](const char* name) {
    const auto it = inference.stored().find(std::string("data.") + name);
    return data.given(name) || it == inference.stored().end() ? data.text(name) : it->second.text;
  };
  TokenSourceOptions options;
  options.path = value("path") == "auto" ? session.config().section("run").text("dir") + "/data" : value("path");
  // Data that is named here is what is evaluated, not the validation data that the run had beside its own.
  options.val_path = data.given("path") ? data.text("val_path") : value("val_path");
  options.val_fraction = parse::number(value("val_fraction"));
  options.context = inference.context();
  const std::unique_ptr<TokenSource> source = open_val(options);
  if (!source)
    throw Error(ErrorKind::input, options.path + " holds nothing out. There is no validation data. Name some with --data.val_path.");
  const Attributes& attributes = inference.checkpoint().attributes();
  if (attributes.count("data.tokenizer") && attributes.at("data.tokenizer") != source->tokenizer())
    throw Error(ErrorKind::usage,
                "the data's tokenizer is " + source->tokenizer() + ", and the run was trained with " + attributes.at("data.tokenizer") +
                    " (" + (options.val_path.empty() ? options.path : options.val_path) +
                    "). Token ids would change their meaning. Name data of the run's tokenizer with --data.path or --data.val_path.");
  source->limit_vocabulary(inference.spec().vocab);
  const bool documents = parse::flag(value("boundaries")) && source->knows_documents();
  TrainParts& parts = inference.job().parts();
  BatchLoader loader(inference.device(), parts.stream, inference.world().wait(), inference.job().shape(), documents,
                     inference.spec().vocab);
  DeviceScalars loss(inference.device(), parts.stream, inference.world().wait(), 1, "loss");
  const Job::Drain drain(inference.job());  // nothing queued may outlive the loader's memory when an evaluation fails
  const EvalResult result = evaluate(parts, loader, *source, source->samples(), loss);
  std::printf("step %lld: loss %.6f nats per token, perplexity %.4f", static_cast<long long>(inference.checkpoint().step()), result.loss,
              std::exp(result.loss));
  if (source->bytes_per_token() > 0) std::printf(", %.4f bits per byte", result.loss / std::log(2.0) / source->bytes_per_token());
  std::printf(", on %lld tokens\n", static_cast<long long>(result.tokens));
  return exit_code::done;
}

}  // namespace nsp
