#include "core/app/model_source.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>

#include "core/app/open_checkpoint.hpp"

namespace nsp {
namespace {

int64_t size_of_key(const Options& model, const std::string& name) {
  const std::string text = model.text(name);
  return text.empty() || text == "auto" ? 0 : parse::integer(text);
}

ModelSpec spec_of(const Config& config) {
  const Options& model = config.section("model");
  ModelSpec s = ModelSpec::of_family(model.text("family"));
  s.layers = size_of_key(model, "layers");
  s.hidden = size_of_key(model, "hidden");
  s.heads = size_of_key(model, "heads");
  s.kv_heads = size_of_key(model, "kv_heads");
  s.head_dim = size_of_key(model, "head_dim");
  s.ffn = size_of_key(model, "ffn");
  s.vocab = size_of_key(model, "vocab");
  s.context = size_of_key(model, "context");
  s.rope_theta = model.number("rope_theta");
  s.norm_eps = model.number("norm_eps");
  s.tied = model.flag("tied");
  s.qkv_bias = model.flag("qkv_bias");
  s.window = model.integer("window");
  return s;
}

// A key that the family does not obey is refused where it is given.
void check_obeyed(const Config& config, const ModelSpec& spec) {
  const Options& model = config.section("model");
  if (!spec.is_llama() && model.given("rope_theta"))
    throw Error(ErrorKind::usage,
                "model.rope_theta = " + model.text("rope_theta") + " has no effect on a model of the family " + spec.family +
                    ". It learns a table of positions and turns nothing. Leave model.rope_theta out, or give " + "--model.family llama.");
}

std::string number_text(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

// A file with weights decides everything about the model; what the user gave must agree.
void check_given(const Config& config, const ModelSpec& file, const std::string& path) {
  const Options& model = config.section("model");
  const ModelSpec given = spec_of(config);
  const auto flag = [](bool value) { return std::string(value ? "true" : "false"); };
  const auto size = [](int64_t value) { return std::to_string(value); };
  struct Row {
    const char* key;
    std::string given, file;
  };
  const Row rows[] = {{"family", given.family, file.family},
                      {"layers", size(given.layers), size(file.layers)},
                      {"hidden", size(given.hidden), size(file.hidden)},
                      {"heads", size(given.heads), size(file.heads)},
                      {"kv_heads", size(given.kv_heads), size(file.kv_heads)},
                      {"head_dim", size(given.head_dim), size(file.head_dim)},
                      {"ffn", size(given.ffn), size(file.ffn)},
                      {"vocab", size(given.vocab), size(file.vocab)},
                      {"context", size(given.context), size(file.context)},
                      {"rope_theta", number_text(given.rope_theta), number_text(file.rope_theta)},
                      {"norm_eps", number_text(given.norm_eps), number_text(file.norm_eps)},
                      {"tied", flag(given.tied), flag(file.tied)},
                      {"qkv_bias", flag(given.qkv_bias), flag(file.qkv_bias)},
                      {"window", size(given.window), size(file.window)}};
  for (const Row& row : rows)
    if (model.given(row.key) && model.text(row.key) != "auto" && row.given != row.file)
      throw Error(ErrorKind::usage, std::string("model.") + row.key + " = " + row.given + " disagrees with " + path + ", which has " +
                                        row.file + ". The weights there fit one model only. Leave model." + row.key +
                                        " out, or start from other weights.");
}

void check_preset(const Config& config, const std::string& path) {
  if (config.section("model").given("preset"))
    throw Error(ErrorKind::usage,
                "model.preset and model.init = " + path + " are both given. The file sets every size. Leave one of them out.");
}

}  // namespace

std::string spec_text(const ModelSpec& s) {
  std::ostringstream out;
  out.precision(17);
  out << "family=" << s.family << " layers=" << s.layers << " hidden=" << s.hidden << " heads=" << s.heads << " kv_heads=" << s.kv_heads
      << " head_dim=" << s.head_dim << " ffn=" << s.ffn << " vocab=" << s.vocab << " context=" << s.context
      << " rope_theta=" << s.rope_theta << " norm_eps=" << s.norm_eps << " tied=" << s.tied << " qkv_bias=" << s.qkv_bias
      << " window=" << s.window;
  return out.str();
}

ModelSpec parse_spec(const std::string& text) {
  std::map<std::string, std::string> values;
  std::istringstream in(text);
  for (std::string word; in >> word;) {
    const std::size_t at = word.find('=');
    if (at != std::string::npos) values[word.substr(0, at)] = word.substr(at + 1);
  }
  ModelSpec s;
  try {
    s = ModelSpec::of_family(values.at("family"));
    s.layers = parse::integer(values.at("layers"));
    s.hidden = parse::integer(values.at("hidden"));
    s.heads = parse::integer(values.at("heads"));
    s.head_dim = parse::integer(values.at("head_dim"));
    s.ffn = parse::integer(values.at("ffn"));
    s.vocab = parse::integer(values.at("vocab"));
    s.context = parse::integer(values.at("context"));
    s.norm_eps = parse::number(values.at("norm_eps"));
    s.window = parse::integer(values.at("window"));
    // Checkpoints of the first version do not have these.
    s.kv_heads = values.count("kv_heads") ? parse::integer(values.at("kv_heads")) : s.heads;
    if (values.count("rope_theta")) s.rope_theta = parse::number(values.at("rope_theta"));
    if (values.count("tied")) s.tied = parse::flag(values.at("tied"));
    if (values.count("qkv_bias")) s.qkv_bias = parse::flag(values.at("qkv_bias"));
  } catch (const std::out_of_range&) {
    throw Error(ErrorKind::input,
                "the checkpoint does not say the sizes of its model. It was written by another version of nsp or is damaged. Use an older "
                "checkpoint.");
  }
  return s;
}

ModelSource model_source(World* world, const Config& config, const std::optional<ModelSpec>& resumed, Log& log) {
  ModelSource out;
  if (resumed) {
    out.spec = *resumed;
    check_given(config, out.spec, "the checkpoint of this run");
    return out;
  }
  const std::string init = config.section("model").text("init");
  if (init == "random") {
    out.spec = spec_of(config).completed();
    check_obeyed(config, out.spec);
    return out;
  }
  if (std::error_code unseen; !std::filesystem::exists(init, unseen))
    throw Error(ErrorKind::input,
                "model.init = " + init +
                    " does not exist. It names the file that the weights come from. Correct the path, or leave it out for random weights.");
  if (is_llmc_model(init)) {
    out.llmc = read_llmc_model(init);
    ModelSpec s;
    s.layers = out.llmc->layers;
    s.hidden = out.llmc->channels;
    s.heads = out.llmc->heads;
    s.vocab = out.llmc->vocab;
    s.context = out.llmc->context;
    out.spec = s.completed();
  } else if (std::filesystem::is_directory(init)) {
    out.checkpoint = open_checkpoint(world, init, log);
    const auto it = out.checkpoint->attributes().find("model");
    out.spec = parse_spec(it == out.checkpoint->attributes().end() ? "" : it->second);
  } else {
    out.llmc = read_llmc_model(init);  // throws what is wrong with the file
  }
  check_given(config, out.spec, init);
  check_preset(config, init);
  check_obeyed(config, out.spec);
  return out;
}

void ModelSource::fill(Job& job, uint64_t seed) const {
  if (llmc) {
    set_weights(job.parts(), [&](const Param& param, int64_t offset, int64_t count, float* values) {
      std::copy_n(llmc->tensors.at(param.name).values.begin() + offset, count, values);
    });
  } else if (checkpoint) {
    restore_model(job.parts(), *checkpoint);
  } else {
    job.initialize_weights(seed);
  }
}

}  // namespace nsp
