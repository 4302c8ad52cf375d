// nsp_app eval: loss, perplexity and bits per byte of a checkpoint on held-out data. Under a launcher the ranks share the data as
// replicas; the result does not depend on their number.
#include <cmath>
#include <cstdio>

#include "core/app/inference.hpp"
#include "core/app/verbs.hpp"
#include "core/data/token_source.hpp"
#include "core/train/json_line.hpp"

namespace nsp {
namespace {

constexpr int64_t tokens_at_once = 2048;  // of a micro-step: matrix products are at their full speed by then

std::vector<MemoryLine> memory_of_loss(const ModelSpec&, const JobPlan&) {
  return {{"loss", "", "device", DeviceScalars::bytes(1)}, {"loss", "", "pinned", DeviceScalars::bytes(1)}};
}

class Evaluation {
 public:
  Evaluation(Session& session, World& world)
      : session_(session),
        inference_(session, world, {tokens_at_once, memory_of_loss}),
        attributes_(inference_.checkpoint().attributes()) {}

  void run() {
    const std::unique_ptr<TokenSource> source = open_source();
    const bool documents = parse::flag(inference_.value("data", "boundaries")) && source->knows_documents();
    TrainParts& parts = inference_.job().parts();
    BatchLoader loader(inference_.device(), parts.stream, inference_.world().wait(), inference_.job().shape(), documents,
                       inference_.spec().vocab);
    DeviceScalars loss(inference_.device(), parts.stream, inference_.world().wait(), 1, "loss");
    const Job::Drain drain(inference_.job());  // nothing queued may outlive the loader's memory when an evaluation fails
    const EvalResult result = evaluate(parts, loader, *source, sequences(*source), loss);
    if (inference_.world().rank() == 0) print(result, *source);
  }

 private:
  std::unique_ptr<TokenSource> open_source() {
    const Options& data = session_.config().section("data");
    TokenSourceOptions options;
    options.path = inference_.value("data", "path");
    if (options.path == "auto") options.path = inference_.run_directory() + "/data";
    // Data that is named here is what is evaluated, not the validation data that the run had beside its own.
    options.val_path = data.given("path") ? data.text("val_path") : inference_.value("data", "val_path");
    options.val_fraction = parse::number(inference_.value("data", "val_fraction"));
    options.context = inference_.context();
    options.verify = inference_.world().rank() == 0;
    named_ = options.val_path.empty() ? options.path : options.val_path;
    std::unique_ptr<TokenSource> source = open_val(options);
    if (!source)
      throw Error(ErrorKind::input, options.path + " holds nothing out. There is no validation data. Name some with --data.val_path.");
    if (attributes_.count("data.tokenizer") && attributes_.at("data.tokenizer") != source->tokenizer())
      throw Error(ErrorKind::usage,
                  "the data's tokenizer is " + source->tokenizer() + ", and the run was trained with " + attributes_.at("data.tokenizer") +
                      " (" + named_ +
                      "). Token ids would change their meaning. Name data of the run's tokenizer with --data.path or --data.val_path.");
    source->limit_vocabulary(inference_.spec().vocab);
    return source;
  }

  int64_t sequences(const TokenSource& source) const {
    const std::string batches = session_.config().section("eval").text("batches");
    return batches == "auto" ? source.samples() : parse::integer(batches) * parse::integer(inference_.value("train", "global_batch"));
  }

  void print(const EvalResult& result, const TokenSource& source) {
    const int64_t step = inference_.checkpoint().step();
    const double perplexity = std::exp(result.loss);
    const double bits = source.bytes_per_token() > 0 ? result.loss / std::log(2.0) / source.bytes_per_token() : std::nan("");
    if (session_.config().section("eval").flag("json")) {
      const std::string line = JsonLine()
                                   .add("kind", std::string("eval"))
                                   .add("step", step)
                                   .add("loss", result.loss)
                                   .add("perplexity", perplexity)
                                   .add("bits_per_byte", bits)
                                   .add("tokens", result.tokens)
                                   .add("context", inference_.context())
                                   .add("data", named_)
                                   .text();
      std::printf("%s\n", line.c_str());
      return;
    }
    std::printf("step %lld: loss %.6f nats per token, perplexity %.4f", static_cast<long long>(step), result.loss, perplexity);
    if (!std::isnan(bits)) std::printf(", %.4f bits per byte", bits);
    std::printf(", on %lld tokens\n", static_cast<long long>(result.tokens));
  }

  Session& session_;
  Inference inference_;
  const Attributes& attributes_;
  std::string named_;  // the data, as the user or the run named it
};

}  // namespace

int run_eval(Session& session) {
  World world(session, false);
  try {
    Evaluation(session, world).run();
    std::fflush(stdout);
    barrier_now(world.comm(), world.wait());
  } catch (const std::exception& e) {
    return end_with_error(world, e);
  }
  world.close();
  return exit_code::done;
}

}  // namespace nsp
