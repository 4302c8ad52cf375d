#include "core/app/model_source.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>

#include "io/hdf5_store.hpp"

namespace nsp {
namespace {

int64_t size_of_key(const Options& model, const std::string& name) {
  const std::string text = model.text(name);
  return text.empty() || text == "auto" ? 0 : parse::integer(text);
}

ModelSpec spec_of(const Config& config) {
  const Options& model = config.section("model");
  ModelSpec s;
  s.family = model.text("family");
  s.layers = size_of_key(model, "layers");
  s.hidden = size_of_key(model, "hidden");
  s.heads = size_of_key(model, "heads");
  s.head_dim = size_of_key(model, "head_dim");
  s.ffn = size_of_key(model, "ffn");
  s.vocab = size_of_key(model, "vocab");
  s.context = size_of_key(model, "context");
  s.norm_eps = model.number("norm_eps");
  s.window = model.integer("window");
  return s;
}

// The file decides every size; what the user gave must agree.
void check_given(const Config& config, const ModelSpec& file, const std::string& path) {
  const Options& model = config.section("model");
  const ModelSpec given = spec_of(config);
  const std::map<std::string, std::pair<int64_t, int64_t>> sizes = {
      {"layers", {given.layers, file.layers}},       {"hidden", {given.hidden, file.hidden}}, {"heads", {given.heads, file.heads}},
      {"head_dim", {given.head_dim, file.head_dim}}, {"ffn", {given.ffn, file.ffn}},          {"vocab", {given.vocab, file.vocab}},
      {"context", {given.context, file.context}}};
  for (const auto& [name, values] : sizes)
    if (model.given(name) && values.first != 0 && values.first != values.second)
      throw Error(ErrorKind::usage, "model." + name + " = " + std::to_string(values.first) + " disagrees with " + path + ", which has " +
                                        std::to_string(values.second) + ". A model.init file sets every size. Leave model." + name +
                                        " out, or choose another file.");
  if (model.given("preset"))
    throw Error(ErrorKind::usage,
                "model.preset and model.init = " + path + " are both given. The file sets every size. Leave one of them out.");
}

}  // namespace

std::string spec_text(const ModelSpec& s) {
  std::ostringstream out;
  out.precision(17);
  out << "family=" << s.family << " layers=" << s.layers << " hidden=" << s.hidden << " heads=" << s.heads << " head_dim=" << s.head_dim
      << " ffn=" << s.ffn << " vocab=" << s.vocab << " context=" << s.context << " norm_eps=" << s.norm_eps << " window=" << s.window;
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
    s.family = values.at("family");
    s.layers = parse::integer(values.at("layers"));
    s.hidden = parse::integer(values.at("hidden"));
    s.heads = parse::integer(values.at("heads"));
    s.head_dim = parse::integer(values.at("head_dim"));
    s.ffn = parse::integer(values.at("ffn"));
    s.vocab = parse::integer(values.at("vocab"));
    s.context = parse::integer(values.at("context"));
    s.norm_eps = parse::number(values.at("norm_eps"));
    s.window = parse::integer(values.at("window"));
  } catch (const std::out_of_range&) {
    throw Error(ErrorKind::input,
                "the checkpoint does not say the sizes of its model. It was written by another version of nsp or is damaged. Use an older "
                "checkpoint.");
  }
  return s;
}

std::unique_ptr<CheckpointReader> open_checkpoint(const std::string& path) {
  namespace fs = std::filesystem;
  const std::string name = fs::path(path).lexically_normal().filename().string();
  if (name.rfind("step_", 0) == 0) {
    const std::string digits = name.substr(5);
    if (digits.empty() || !std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; }))
      throw Error(
          ErrorKind::usage,
          path + " is not a checkpoint. A checkpoint's folder is named step_ and eight digits. Name one of them, or a run directory.");
    Hdf5Store store(fs::path(path).lexically_normal().parent_path().string());
    return store.open(std::stoll(digits));
  }
  Hdf5Store store(path + "/checkpoints");
  std::string failures;
  std::vector<int64_t> steps = store.list();
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    try {
      return store.open(*step);
    } catch (const Error& e) {
      failures += std::string(" ") + e.what();
    }
  }
  throw Error(ErrorKind::input, "no usable checkpoint in " + path + "." + (failures.empty() ? " There is none in it." : failures) +
                                    " Name a run directory that holds one (--run.dir), or train first.");
}

ModelSource model_source(const Config& config, const std::optional<ModelSpec>& resumed) {
  ModelSource out;
  if (resumed) {
    out.spec = *resumed;
    return out;
  }
  const std::string init = config.section("model").text("init");
  if (init == "random") {
    out.spec = spec_of(config).completed();
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
    out.checkpoint = open_checkpoint(init);
    const auto it = out.checkpoint->attributes().find("model");
    out.spec = parse_spec(it == out.checkpoint->attributes().end() ? "" : it->second);
  } else {
    out.llmc = read_llmc_model(init);  // throws what is wrong with the file
  }
  check_given(config, out.spec, init);
  return out;
}

void ModelSource::fill(Job& job, uint64_t seed) const {
  if (llmc) {
    job.set_weights([&](const Param& param, int64_t offset, int64_t count, float* values) {
      std::copy_n(llmc->tensors.at(param.name).values.begin() + offset, count, values);
    });
  } else if (checkpoint) {
    restore_model(job.parts(), *checkpoint);
  } else {
    job.initialize_weights(seed);
  }
}

}  // namespace nsp
