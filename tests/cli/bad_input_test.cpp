// Command lines, configuration files, environment and plug-ins that cannot work.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/bad_input_case.hpp"

namespace nsp::test {
namespace {

namespace fs = std::filesystem;

TEST(CommandLine, UnknownOptionNamesTheNearest) {
  expect_refusal(run("$NSP --modl.layers 2"), 2, {"--modl.layers", "is not a known option"}, "Did you mean --model.layers?");
  expect_refusal(run("$NSP --frobnicate"), 2, {"--frobnicate", "is not a known option"}, "--help lists all");
}

TEST(CommandLine, PrefixOfAnOptionIsNotGuessed) {
  expect_refusal(run("$NSP --model.layer 2"), 2, {"--model.layer (command line) is not a known option"}, "Did you mean --model.layers?");
  expect_refusal(run("$NSP plan --mem 10M"), 2, {"--mem"}, "Did you mean --memory?");
}

TEST(CommandLine, OptionOfAPluginThatIsNotInUse) {
  expect_refusal(run("$NSP --desloc.kx 4"), 2, {"--desloc.kx", "no plug-in of that name is in use"}, "add it to --plugins");
}

TEST(CommandLine, UnknownVerbNamesTheNearest) {
  expect_refusal(run("$NSP traim"), 2, {"There is no verb 'traim'", "train, plan, prepare"}, "Did you mean train?");
}

TEST(CommandLine, WordThatStandsAlone) {
  expect_refusal(run("$NSP train more"), 2, {"'more' stands alone"}, "Write --key VALUE");
}

TEST(CommandLine, OptionTwice) {
  expect_refusal(run("$NSP --train.lr 1e-3 --train.lr 2e-3"), 2, {"--train.lr stands twice"}, "Remove one");
}

TEST(CommandLine, OptionWithoutValue) {
  expect_refusal(run("$NSP --train.steps"), 2, {"--train.steps"}, "--key VALUE");
  expect_refusal(run("$NSP --train.steps --train.lr 3"), 2, {"--train.steps has no value", "--train.lr, is an option"},
                 "--train.steps VALUE");
}

TEST(CommandLine, ValueOfTheWrongType) {
  expect_refusal(run("$NSP --train.lr abc"), 2, {"train.lr = abc", "not a number"}, "Write it like");
  expect_refusal(run("$NSP --train.lr nan"), 2, {"train.lr = nan", "not a number"}, "Write it like");
  expect_refusal(run("$NSP --train.steps 1.5"), 2, {"train.steps = 1.5", "not a whole number"}, "Write it like");
  expect_refusal(run("$NSP --data.shuffle maybe"), 2, {"data.shuffle = maybe", "yes-or-no"}, "true or false");
  expect_refusal(run("$NSP --comm.timeout 5x"), 2, {"comm.timeout = 5x", "not a time"}, "600s");
  expect_refusal(run("$NSP --train.schedule cosin"), 2, {"train.schedule = cosin", "constant, cosine"}, "Did you mean cosine?");
  expect_refusal(run("$NSP plan --memory lots"), 2, {"memory = lots", "not a size"}, "80G");
}

TEST(CommandLine, ValueOutOfRange) {
  expect_refusal(run("$NSP --model.layers 0"), 2, {"model.layers = 0", "too small"}, "at least 1");
  expect_refusal(run("$NSP --train.global_batch -4"), 2, {"train.global_batch = -4", "too small"}, "at least 1");
  expect_refusal(run("$NSP plan --train.steps 0"), 2, {"train.steps = 0", "too small"}, "at least 1");
  expect_refusal(run("$NSP plan --train.threads 513"), 2, {"train.threads = 513", "too large"}, "at most 512");
  expect_refusal(run("$NSP --comm.bucket_mib 0"), 2, {"comm.bucket_mib = 0", "too small"}, "at least 1");
  expect_refusal(run("$NSP prepare --input a --output b --val-fraction 2"), 2, {"val-fraction = 2", "too large"}, "at most 0.9");
}

TEST(CommandLine, KeyThatTheVerbDoesNotObey) {
  expect_refusal(run("$NSP prepare --input a --output b --data.val_fraction 0.5"), 2,
                 {"--data.val_fraction has no effect on the verb prepare"}, "Did you mean --val-fraction?");
  expect_refusal(run("$NSP eval --train.eval_batches 3"), 2, {"--train.eval_batches has no effect on the verb eval"},
                 "Did you mean --batches?");
  for (const char* key : {"layers 3", "window 8"})
    expect_refusal(run("$NSP generate --prompt x --model." + std::string(key)), 2,
                   {"--model.", "has no effect on the verb generate", "The model is the checkpoint's"}, "Leave it out");
  expect_refusal(run("$NSP generate --plugins desloc --desloc.kx 4"), 2, {"--desloc.kx has no effect", "It is for other verbs"},
                 "Leave it out here");
  // Only the verb of a training command has to be changed to plan it; but a run that is there would be another one than planned.
  const TempFolder folder;
  const std::string job = "$NSP plan --model.preset nano --train.steps 10 --data.path data --run.dir ";
  EXPECT_EQ(run(job + (folder / "none")).code, 0);
  std::ofstream(folder / "config.ini") << "[model]\n";
  expect_refusal(run(job + std::string(folder / ".")), 2, {"--run.dir has no effect on the verb plan", "reads no run"}, "/config.ini");
  expect_refusal(run("$NSP plan --input text"), 2, {"--input"}, "");
}

TEST(CommandLine, CheckpointVerbWithoutAnAction) {
  expect_refusal(run("$NSP checkpoint"), 2, {"Nothing follows"}, "nsp_app checkpoint ls RUN");
  expect_refusal(run("$NSP checkpoint lst run"), 2, {"'lst' is neither ls nor verify"}, "nsp_app checkpoint ls RUN");
}

TEST(CommandLine, CheckpointVerbWithTwoRuns) {
  expect_refusal(run("$NSP checkpoint ls a --run.dir b"), 2, {"ls a has --run.dir b", "Both name the run"}, "Leave one of them out");
}

TEST(IniFile, MissingOrAFolder) {
  const TempFolder folder;
  expect_refusal(run("$NSP --config " + (folder / "none.ini")), 2, {"none.ini", "No such file"}, "Correct the name behind --config");
  expect_refusal(run("$NSP --config " + folder.path()), 2, {folder.path(), "It is a folder"}, "Correct the name behind --config");
}

TEST(IniFile, UnknownKeyNamesLineAndTheNearest) {
  const TempFolder folder;
  write_file(folder / "a.ini", "[train]\nlr = 1e-3\nstep = 3\n");
  expect_refusal(run("$NSP --config " + (folder / "a.ini")), 2, {"train.step", "a.ini line 3", "not a known option"},
                 "Did you mean train.steps?");
  write_file(folder / "a.ini", "[trian]\nlr = 1e-3\n");
  expect_refusal(run("$NSP --config " + (folder / "a.ini")), 2, {"a.ini line 2", "no section trian"}, "Did you mean train.lr?");
}

TEST(IniFile, BrokenLine) {
  const TempFolder folder;
  write_file(folder / "a.ini", "# a comment\n[train]\nlr 3\n");
  expect_refusal(run("$NSP --config " + (folder / "a.ini")), 2, {"a.ini line 3", "neither a section nor key = value"},
                 "Write it like lr = 3e-4");
  write_file(folder / "a.ini", "[train\nlr = 3\n");
  expect_refusal(run("$NSP --config " + (folder / "a.ini")), 2, {"a.ini line 1", "not a section line"}, "Write it like [train]");
}

TEST(IniFile, BadValueAndKeyTwice) {
  const TempFolder folder;
  write_file(folder / "a.ini", "[train]\nlr = fast\n");
  expect_refusal(run("$NSP --config " + (folder / "a.ini")), 2, {"train.lr = fast", "a.ini line 2", "not a number"}, "Write it like");
  write_file(folder / "a.ini", "[train]\nlr = 1e-3\nsteps = 4\nlr = 2e-3\n");
  expect_refusal(run("$NSP --config " + (folder / "a.ini")), 2, {"train.lr stands twice", "lines 2 and 4"}, "Remove one");
}

TEST(Environment, BadValueNamesTheVariable) {
  expect_refusal(run("env NSP_TRAIN_LR=abc $NSP"), 2, {"train.lr = abc", "environment NSP_TRAIN_LR"}, "Write it like");
}

TEST(Environment, UnknownVariableIsAWarningOnly) {
  const Said said = run("env NSP_TRAIN_STEPZ=1 $NSP plan");
  EXPECT_EQ(said.code, 0) << said.out;
  EXPECT_EQ(said.count("nsp_app: error:"), 0);
  EXPECT_EQ(said.count("nsp_app: warning:"), 1);
  EXPECT_TRUE(said.contains("NSP_TRAIN_STEPZ. Did you mean NSP_TRAIN_STEPS?")) << said.out;
}

TEST(Plugins, TwoOfKindSync) {
  expect_refusal(run("$NSP --plugins ddp,desloc"), 2, {"ddp and desloc are both of kind sync"}, "Remove one of them from --plugins");
}

TEST(Plugins, UnknownNameNamesTheNearest) {
  expect_refusal(run("$NSP --plugins deslok"), 2, {"There is no plug-in 'deslok'", "Available: ", "looked in"}, "Did you mean desloc?");
  expect_refusal(run("$NSP plan --backend cuda9"), 2, {"no backend plug-in 'cuda9'", "Available: "}, "--plugin-path");
  expect_refusal(run("$NSP --comm nccl9"), 2, {"no comm plug-in 'nccl9'", "Available: "}, "--plugin-path");
}

TEST(Plugins, CommunicatorIsNotChosenWithPlugins) {
  expect_refusal(run("$NSP --plugins mpi"), 2, {"mpi is not chosen with --plugins", "kind comm"}, "Write --comm mpi");
}

TEST(Plugins, FileThatIsNoModule) {
  const TempFolder folder;
  write_file(folder / "libnsp_sync_broken.so", "not a program\n");
  expect_refusal(run("$NSP plan --plugin-path " + folder.path() + " --plugins broken"), 2,
                 {"libnsp_sync_broken.so", "cannot be used", "ELF"}, "Build it again, or remove the file");
}

// A program without modules beside it, as after an incomplete installation.
TEST(Plugins, ModulesThatAreMissing) {
  const TempFolder folder;
  fs::create_directory(folder / "bin");
  const std::string app = folder / "bin/nsp_app";
  ASSERT_EQ(run("cp $NSP " + app).code, 0);
  const std::string alone = " env NSP_PLUGIN_PATH= LD_LIBRARY_PATH=$(dirname $NSP)/../lib:$LD_LIBRARY_PATH ";
  expect_refusal(run(alone + app + " plan"), 2, {"There is no compute backend", "looked in " + folder.path()}, "NSP_PLUGIN_PATH");
  expect_refusal(run(alone + "mpirun -np 2 " + app), 2, {"no comm plug-in 'mpi'", "Available: self", "looked in " + folder.path()},
                 "--plugin-path");
}

TEST(Desloc, PeriodZeroAndNegative) {
  expect_refusal(run("$NSP plan --plugins desloc --desloc.kx 0"), 2, {"desloc.kx = 0", "not a period", ">= 1"}, "32 or inf");
  expect_refusal(run("$NSP plan --plugins desloc --desloc.kv -3"), 2, {"desloc.kv = -3", "not a period"}, "32 or inf");
}

TEST(Desloc, StateAveragedMoreOftenThanTheParameters) {
  expect_refusal(run("$NSP plan --plugins desloc --desloc.kx 64 --desloc.ku 32"), 2,
                 {"desloc.ku 32 is less than desloc.kx 64", "at least as often"}, "Set --desloc.ku 192");
}

TEST(Model, HeadsThatDoNotDivideTheWidth) {
  expect_refusal(run("$NSP plan --model.heads 7"), 2, {"model.heads = 7", "model.hidden = 128"}, "Choose heads that divide hidden");
}

TEST(Model, KeyValueHeadsThatDoNotDivideTheHeads) {
  expect_refusal(run("$NSP plan --model.preset llama_15m --model.kv_heads 4"), 2, {"model.kv_heads = 4 does not divide model.heads = 6"},
                 "Choose kv_heads that divide heads");
}

TEST(Model, AnOddHeadCannotBeTurned) {
  expect_refusal(run("$NSP plan --model.family llama --model.head_dim 7"), 2, {"model.head_dim = 7 is odd"}, "give an even model.head_dim");
}

TEST(Model, RotaryBaseOfAModelThatTurnsNothing) {
  expect_refusal(run("$NSP plan --model.rope_theta 500000"), 2, {"model.rope_theta = 500000 has no effect", "family gpt2"},
                 "Leave model.rope_theta out");
  expect_refusal(run("$NSP plan --model.family llama --model.rope_theta 0"), 2, {"model.rope_theta = 0"}, "Give a positive number");
}

TEST(Model, FamilyThatIsNotThere) {
  expect_refusal(run("$NSP plan --model.family lama"), 2, {"model.family = lama", "none of the allowed words"}, "Did you mean llama?");
}

TEST(Model, SequenceLongerThanTheModelsContext) {
  expect_refusal(run("$NSP plan --train.context 256"), 2, {"train.context = 256", "model.context = 128"},
                 "Lower train.context or raise model.context");
}

TEST(Model, UnknownPreset) {
  expect_refusal(run("$NSP plan --model.preset nanno"), 2, {"model.preset = nanno", "none of the allowed words"}, "Did you mean nano?");
}

TEST(Optimizer, CoefficientOutOfRange) {
  expect_refusal(run("$NSP plan --adamw.beta1 1.5"), 2, {"adamw.beta1", "out of range", "0 <= beta1 < 1"}, "Set --adamw.beta1");
}

TEST(Plan, DoesNotFit) {
  expect_refusal(run("$NSP plan --memory 10M"), 3, {"host memory", "is free"}, "Use a smaller model");
  expect_refusal(run("$NSP plan --model.preset gpt2_124m --memory 100M"), 3, {"host memory", "95.4 MiB is free"}, "Use a smaller model");
  expect_refusal(run("$NSP plan --model.hidden 65536 --model.heads 64 --model.layers 100"), 3, {"does not fit into host memory", "TiB"},
                 "Use a smaller model");
}

TEST(Plan, FewerSequencesThanReplicas) {
  expect_refusal(run("$NSP plan --ranks 64"), 2, {"64 replicas cannot share train.global_batch 24"}, "Raise train.global_batch to 64");
}

}  // namespace
}  // namespace nsp::test
