#include "core/config/core_options.hpp"

#include <algorithm>

#include "core/config/presets.hpp"
#include "nsp/error.hpp"

namespace nsp {
namespace {

OptionRow row(const char* section, const char* name, const char* type, const char* value, const char* help) {
  return {section, name, type, value, help};
}
OptionRow at_least(double low, OptionRow r) {
  r.low = low;
  return r;
}
OptionRow between(double low, double high, OptionRow r) {
  r.low = low;
  r.high = high;
  return r;
}
OptionRow not_stored(OptionRow r) {
  r.stored = false;
  return r;
}
OptionRow repeatable(OptionRow r) {
  r.repeatable = true;
  return r;
}
OptionRow of_verb(OptionRow r) {
  r.of_verb = true;
  return not_stored(r);
}

std::string preset_type() {
  std::string type = "choice:";
  for (const std::string& name : preset_names()) type += (type.back() == ':' ? "" : "|") + name;
  return type;
}

void append(std::vector<OptionRow>* to, std::vector<OptionRow> rows) {
  for (OptionRow& r : rows) to->push_back(std::move(r));
}

std::vector<OptionRow> top_rows() {
  return {
      row("", "plugins", "string", "", "plug-ins to use, of any kind: a,b,c; a kind that is not named gets its default"),
      not_stored(row("", "plugin-path", "string", "", "folders to look for plug-ins first, separated by ':'")),
      not_stored(repeatable(row("", "config", "string", "", "INI file with keys; may be given several times, later files win"))),
      row("", "backend", "string", "auto", "compute backend; auto = the best one for this machine"),
      row("", "comm", "string", "auto", "communicator; auto = mpi under a launcher, else self"),
      not_stored(row("", "help", "switch", "", "print this help and exit")),
      not_stored(row("", "version", "switch", "", "print the version and exit")),
  };
}

std::vector<OptionRow> model_rows() {
  OptionRow preset = row("model", "preset", "", "nano", "named set of sizes");
  preset.type = preset_type();
  return {
      preset,
      row("model", "family", "choice:gpt2|llama", "gpt2", "architecture"),
      at_least(1, row("model", "layers", "int", "", "blocks")),
      at_least(1, row("model", "hidden", "int", "", "width of the residual stream")),
      at_least(1, row("model", "heads", "int", "", "attention heads")),
      at_least(1, row("model", "kv_heads", "auto|int", "auto", "key/value heads, shared by groups of attention heads; auto = heads")),
      at_least(1, row("model", "head_dim", "auto|int", "auto", "size of a head; auto = hidden / heads")),
      at_least(1, row("model", "ffn", "int", "", "width of the feed-forward layer")),
      at_least(1, row("model", "vocab", "int", "", "tokens in the vocabulary")),
      at_least(1, row("model", "context", "int", "", "longest sequence, in tokens")),
      at_least(0, row("model", "rope_theta", "float", "10000", "base of the rotary angles (llama)")),
      between(0, 1, row("model", "norm_eps", "float", "1e-5", "epsilon of the norms")),
      row("model", "tied", "auto|bool", "auto", "the head uses the token table; auto = true for gpt2, false for llama"),
      row("model", "qkv_bias", "auto|bool", "auto", "bias of queries, keys and values; auto = true for gpt2, false for llama"),
      at_least(0, row("model", "window", "int", "0", "attention window in tokens; 0 = full")),
      row("model", "init", "string", "random", "random, or a file with weights (an llm.c model file, an nsp checkpoint)"),
  };
}

std::vector<OptionRow> data_rows() {
  return {
      row("data", "path", "string", "auto",
          "prepared folder or token files, or several with weights, as in a:3,b:1; auto = the C and C++ headers of this machine"),
      row("data", "val_path", "string", "", "validation data; empty = a part of the training data"),
      between(0, 0.9, row("data", "val_fraction", "float", "0.05", "part of the data that is held out if val_path is empty")),
      row("data", "shuffle", "bool", "true", "permute the samples of each epoch; false = file order"),
      row("data", "boundaries", "bool", "true", "attention stops at document borders (not given: false for llm.c files)"),
  };
}

std::vector<OptionRow> train_rows() {
  return {
      at_least(1, row("train", "steps", "int", "1000", "steps to train; this default holds if the preset sets none")),
      at_least(1, row("train", "tokens", "auto|size", "auto", "tokens to train on, instead of steps; auto = use steps")),
      at_least(1, row("train", "global_batch", "int", "24", "sequences a step over all replicas")),
      at_least(1, row("train", "micro_batch", "auto|int", "auto",
                      "most sequences at once on one rank; auto = about 2048 tokens, fewer where memory is short")),
      at_least(1, row("train", "context", "auto|int", "auto", "tokens of a training sequence; auto = model.context")),
      row("train", "dtype", "choice:fp32|bf16", "fp32", "type of weights and activations; bf16 keeps fp32 master weights"),
      at_least(0, row("train", "lr", "float", "3e-4", "peak learning rate")),
      between(0, 1, row("train", "min_lr_ratio", "float", "0.1", "last learning rate as a part of the peak")),
      at_least(0, row("train", "warmup", "int", "100", "steps of linear warm-up")),
      row("train", "schedule", "choice:constant|cosine|linear|wsd", "cosine", "learning rate after the warm-up"),
      between(0, 1, row("train", "wsd_decay", "float", "0.1", "part of the steps that wsd decays over")),
      at_least(0, row("train", "clip", "float", "1.0", "largest gradient norm; 0 = no clipping")),
      at_least(0, row("train", "seed", "int", "1", "seed of weights and sample order")),
      at_least(0, row("train", "eval_every", "int", "250", "steps between evaluations; 0 = only at the end")),
      at_least(1, row("train", "eval_batches", "int", "20", "batches of an evaluation")),
      at_least(0, row("train", "checkpoint_every", "int", "500", "steps between checkpoints; 0 = only at the end")),
      at_least(1, row("train", "keep", "int", "3", "newest checkpoints to keep")),
      at_least(0, row("train", "keep_every", "int", "0", "keep every checkpoint whose step is a multiple of this; 0 = none")),
      at_least(1, row("train", "max_bad_steps", "int", "20", "steps with non-finite values in a row that end the run")),
      at_least(0, row("train", "max_hours", "float", "0", "stop with a checkpoint after this time; 0 = no limit")),
      // The OpenMP pool of Kokkos has a table of 512 and does not look whether it is full.
      between(1, 512, row("train", "threads", "auto|int", "auto", "compute threads of a CPU rank; auto = its share of the cores")),
  };
}

std::vector<OptionRow> run_rows() {
  return {
      not_stored(row("run", "dir", "string", "nsp-run", "run directory")),
      not_stored(row("run", "resume", "string", "auto", "auto = the newest good checkpoint of the run directory, never, or a checkpoint")),
      at_least(1, row("run", "log_every", "int", "1", "steps between printed lines")),
      row("run", "progress", "auto|bool", "auto", "progress line instead of step lines; auto = on a terminal"),
      row("run", "tensorboard", "bool", "true", "event files for TensorBoard in the run directory"),
      at_least(0, row("run", "verify_every", "int", "100", "steps between comparisons of weight hashes over ranks; 0 = never")),
  };
}

std::vector<OptionRow> comm_rows() {
  return {
      at_least(1, row("comm", "timeout", "time", "600s", "end the job if a collective takes longer")),
      at_least(1, row("comm", "bucket_mib", "int", "25", "size of a communication bucket, in MiB")),
  };
}

}  // namespace

bool Verb::obeys(const OptionRow& row) const {
  if (row.of_verb) return row.section == name;
  const std::vector<OptionRow> core = core_rows();
  const auto same = [&](const OptionRow& r) { return r.key() == row.key(); };
  if (std::none_of(core.begin(), core.end(), same)) return plugin_options;
  if (row.type == "switch") return true;  // help and version
  const std::string section = row.section.empty() ? "" : row.section + ".*";
  return std::any_of(keys.begin(), keys.end(), [&](const std::string& key) { return key == "*" || key == row.key() || key == section; });
}

std::vector<Verb> verbs() {
  return {
      {"train", "", 0, "train a model, or go on with the run in run.dir (the default verb)", {"*"}, true},
      {"plan",
       "",
       0,
       "show what would run where, and the memory it needs; runs nothing",
       {"plugins", "plugin-path", "config", "backend", "model.*", "train.global_batch", "train.micro_batch", "train.context", "train.dtype",
        "train.threads", "comm.bucket_mib"},
       true},
      {"prepare", "", 0, "turn text into token files", {}},
      {"eval",
       "",
       0,
       "loss, perplexity and bits per byte of a checkpoint on data",
       {"plugin-path", "config", "backend", "comm", "data.path", "data.val_path", "data.val_fraction", "data.boundaries",
        "train.global_batch", "train.context", "train.dtype", "train.threads", "run.dir", "run.resume", "comm.timeout"}},
      {"generate",
       "",
       0,
       "continue a prompt with a trained model",
       {"plugin-path", "config", "backend", "train.context", "train.dtype", "train.threads", "run.dir", "run.resume"}},
      {"checkpoint", "ls|verify [RUN]", 2, "list the checkpoints of a run, or check every checksum", {"config", "run.dir"}},
      {"bench",
       "ops",
       1,
       "how fast each op of the backend is on the shapes of a training step",
       {"plugin-path", "config", "backend", "model.*", "train.micro_batch", "train.context", "train.dtype", "train.threads"}},
      {"plugins", "", 0, "list plug-ins: loaded, available, or refused and why", {"plugin-path", "config"}},
      {"info", "", 0, "this build, this machine, its devices", {"plugin-path", "config", "backend", "train.dtype", "train.threads"}},
  };
}

Verb named_verb(const std::string& name) {
  const std::vector<Verb> all = verbs();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Verb& verb) { return verb.name == name; });
  NSP_REQUIRE(found != all.end(), "there is a verb " + name);
  return *found;
}

std::vector<OptionRow> core_rows() {
  std::vector<OptionRow> rows = top_rows();
  append(&rows, model_rows());
  append(&rows, data_rows());
  append(&rows, train_rows());
  append(&rows, run_rows());
  append(&rows, comm_rows());
  return rows;
}

std::vector<OptionRow> verb_rows(const std::string& verb) {
  std::vector<OptionRow> rows;
  if (verb == "plan") {
    rows = {
        at_least(1, row("plan", "ranks", "auto|int", "auto", "ranks of the planned job; auto = as many as --devices, or 1")),
        row("plan", "devices", "string", "", "KIND:COUNT,... in rank order, such as h100:32,a6000:32 or cpu:8; empty = this machine"),
        at_least(1, row("plan", "per-host", "auto|int", "auto", "ranks of a host; auto = 8, for cpu this machine's cores")),
        at_least(1, row("plan", "memory", "auto|size", "auto",
                        "device memory of each rank (80G); auto = the kind's, or its share of the host's")),
        at_least(1,
                 row("plan", "host-memory", "auto|size", "auto", "memory of each host (512G); auto = not known, for cpu this machine's")),
    };
  } else if (verb == "prepare") {
    rows = {
        repeatable(row("prepare", "input", "string", "", "file, folder, glob or JSONL file; may be given several times")),
        row("prepare", "output", "string", "", "folder to write"),
        row("prepare", "tokenizer", "string", "bytes", "bytes, the one tokenizer of this version"),
        row("prepare", "text-key", "string", "text", "member of a JSONL object that holds the text"),
        between(0, 0.9, row("prepare", "val-fraction", "float", "0.05", "part of the documents that is held out")),
        at_least(0, row("prepare", "seed", "int", "1", "seed that chooses the held-out documents")),
        between(
            1, 256,
            row("prepare", "threads", "auto|int", "auto", "files read at once; auto = the cores that it may use; the output is the same")),
    };
  } else if (verb == "eval") {
    rows = {
        at_least(1,
                 row("eval", "batches", "auto|int", "auto", "batches of train.global_batch sequences to look at; auto = all of the data")),
        row("eval", "json", "switch", "false", "print one line of JSON instead of text"),
    };
  } else if (verb == "generate") {
    rows = {
        row("generate", "prompt", "string", "", "text to continue; - = standard input"),
        at_least(1, row("generate", "tokens", "int", "200", "tokens to add")),
        at_least(0, row("generate", "temperature", "float", "0.8", "0 = always the most likely token")),
        at_least(0, row("generate", "top-k", "int", "0", "choose among the k most likely tokens; 0 = among all")),
        at_least(0, row("generate", "seed", "int", "1", "seed of the choices")),
    };
  } else if (verb == "bench") {
    rows = {
        at_least(0, row("bench", "seconds", "float", "0.2", "shortest time to measure an op, at least 5 samples")),
        at_least(0, row("bench", "working-set", "auto|size", "auto",
                        "bytes that ops bound by memory rotate over (512M); auto = more than the last-level cache holds")),
        row("bench", "all-dtypes", "switch", "false", "fp32 and bf16, one after the other, instead of train.dtype"),
        row("bench", "only", "string", "",
            "ops to measure, as in matmul,adamw; references = none of them, only what they are compared with"),
        row("bench", "json", "switch", "false", "print JSON objects, one a line, instead of a table"),
    };
  }
  for (OptionRow& r : rows) r = of_verb(r);
  return rows;
}

bool is_core_name(const std::string& name) {
  for (const OptionRow& r : core_rows()) {
    if (r.section == name || (r.section.empty() && r.name == name)) return true;
  }
  for (const Verb& verb : verbs()) {
    if (verb.name == name) return true;
  }
  return false;
}

}  // namespace nsp
