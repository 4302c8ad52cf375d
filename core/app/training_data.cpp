#include "core/app/training_data.hpp"

#include "core/data/auto_corpus.hpp"

namespace nsp {

TrainingData open_training_data(Session& session, World& world, const RunDirectory& directory, const ModelSpec& spec, int64_t context,
                                bool verify) {
  const Options& data = session.config().section("data");
  TokenSourceOptions options;
  options.path = data.text("path");
  options.val_path = data.text("val_path");
  options.context = context;
  options.val_fraction = data.number("val_fraction");
  if (options.path == "auto") {
    std::string failure;
    int32_t kind = 0;
    if (world.rank() == 0) {
      try {
        AutoCorpusOptions corpus;
        corpus.val_fraction = options.val_fraction;
        prepare_auto_corpus(directory.path(), corpus, [&](const std::string& line) {
          if (!line.empty()) session.log().info(line);
        });
      } catch (const Error& e) {
        failure = e.what();
        kind = static_cast<int32_t>(e.kind());
      }
    }
    broadcast_now(world.comm(), world.wait(), &kind, sizeof kind, 0);
    world.agree(static_cast<ErrorKind>(kind), failure);
    options.path = directory.path() + "/data";
  }
  options.verify = verify && world.rank() == 0;
  TrainingData out;
  out.train = open_train(options);
  out.validation = open_val(options);
  out.train->limit_vocabulary(spec.vocab);
  if (out.validation) out.validation->limit_vocabulary(spec.vocab);
  if (out.train->vocabulary() > 0 && spec.vocab > out.train->vocabulary())
    session.log().info("the model's vocabulary of " + std::to_string(spec.vocab) + " is larger than the data's of " +
                       std::to_string(out.train->vocabulary()) + "; the rest is never a target");
  out.documents = data.given("boundaries") ? data.flag("boundaries") : data.flag("boundaries") && out.train->knows_documents();
  return out;
}

}  // namespace nsp
