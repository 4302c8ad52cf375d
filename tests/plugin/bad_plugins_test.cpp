// A folder full of bad modules: each is refused with its own text, the code of those that a note or a check gives away
// never runs, and the good ones among them work.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/plugin/instance.hpp"
#include "core/plugin/listing.hpp"
#include "core/plugin/registry.hpp"
#include "nsp/error.hpp"
#include "nsp/optimizer.hpp"

namespace nsp {
namespace {

namespace fs = std::filesystem;

void* no_object(const void*) {
  return nullptr;
}
void no_destroy(void*) {}

nsp_plugin_v1 builtin(const char* kind, const char* name) {
  return {NSP_PLUGIN_MAGIC, sizeof(nsp_plugin_v1), NSP_ABI_CXX, NSP_ABI_MAJOR, NSP_ABI_MINOR, 0,      0, kind, name, "0.1.0",
          NSP_STAMP,        "a built-in",          nullptr,     no_object,     no_destroy,    nullptr};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class BadPlugins : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/nsp_bad_plugins_XXXXXX";
    folder_ = mkdtemp(name);
    trace_ = folder_ + "/trace";
    setenv("NSP_TEST_TRACE", trace_.c_str(), 1);
    const std::string good = std::string(NSP_BAD_PLUGIN_DIR) + "/libnsp_optimizer_good.so";
    std::ofstream(folder_ + "/libnsp_optimizer_junk.so") << "this is not a module\n";
    std::ofstream(folder_ + "/libnsp_optimizer_empty.so");
    std::ofstream(folder_ + "/README") << "no module at all";
    fs::copy_file(good, folder_ + "/libnsp_optimizer_cut.so");
    fs::resize_file(folder_ + "/libnsp_optimizer_cut.so", 100);
    fs::create_directory(folder_ + "/libnsp_optimizer_folder.so");
  }
  void TearDown() override { fs::remove_all(folder_); }

  Registry registry() const {
    Host host;
    host.cpu_features = 7;
    host.cpu_feature_names = [](uint64_t bits) { return bits == uint64_t{1} << 40 ? std::string("teleportation") : std::string("others"); };
    return Registry({&ddp_, &dp_, &resident_, &adamw_}, {NSP_BAD_PLUGIN_DIR, std::string(NSP_BAD_PLUGIN_DIR) + "/second", folder_}, host);
  }
  static const PluginEntry* find(const Registry& registry, const std::string& name) {
    for (const PluginEntry& entry : registry.entries()) {
      if (entry.note.name == name) return &entry;
    }
    return nullptr;
  }
  // Why the plug-in cannot be selected.
  std::string refusal(const std::string& name) const {
    Registry all = registry();
    try {
      all.select({name});
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::plugin) << e.what();
      return e.what();
    }
    return "";
  }
  // Names of the modules whose code has run.
  std::string trace() const {
    std::ostringstream text;
    std::ifstream file(trace_);
    text << file.rdbuf();
    return file ? text.str() : "";
  }
  static std::string start_failure(Registry* all, const std::string& name) {
    const Options options(name, {});
    Quiet log;
    try {
      create<Optimizer>(all->open("optimizer", name), {options, log});
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::plugin);
      return e.what();
    }
    return "";
  }
  struct Quiet : Log {
    void info(const std::string&) override {}
    void warning(const std::string&) override {}
  };

  std::string folder_, trace_;
  nsp_plugin_v1 ddp_ = builtin("sync", "ddp"), dp_ = builtin("parallel", "dp"), resident_ = builtin("memory", "resident"),
                adamw_ = builtin("optimizer", "adamw");
};

TEST_F(BadPlugins, NoCodeRunsForModulesThatTheirNoteGivesAway) {
  const Registry all = registry();
  EXPECT_EQ(trace(), "") << "looking at the folder runs nothing";
  for (const char* name : {"wrong_major", "wrong_stamp", "wrong_class", "no_note", "cpu_feature", "junk", "empty", "cut", "folder",
                           "flavour", "train", "misnamed"}) {
    EXPECT_NE(refusal(name), "") << name;
    ASSERT_NE(find(all, name), nullptr) << name;
    EXPECT_EQ(find(all, name)->state, PluginEntry::State::refused) << name;
  }
  EXPECT_EQ(trace(), "");
}

TEST_F(BadPlugins, AGoodOneInTheSameFolderWorks) {
  Registry all = registry();
  const Selection chosen = all.select({"good"});
  EXPECT_EQ(chosen.optimizer->note.name, "good");
  EXPECT_EQ(chosen.optimizer->note.version, "1.2.3");
  EXPECT_EQ(chosen.optimizer->state, PluginEntry::State::loaded);
  EXPECT_EQ(chosen.sync->note.name, "ddp");
  EXPECT_EQ(chosen.parallel->note.name, "dp");
  EXPECT_EQ(chosen.memory->note.name, "resident");
  const std::vector<OptionRow> rows = option_rows({chosen.optimizer});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].key() + " " + rows[0].type + " " + rows[0].default_value, "good.rate float 0.5");
  const Options options("good", {});
  Quiet log;
  {
    const PluginPtr<Optimizer> optimizer = create<Optimizer>(*chosen.optimizer, {options, log});
    EXPECT_EQ(optimizer->bytes_per_parameter(), 0);
  }
  EXPECT_TRUE(has(trace(), "create good\ndestroy\n")) << trace();
}

TEST_F(BadPlugins, NotesThatCannotBeRead) {
  EXPECT_EQ(refusal("junk"), "The plug-in junk (" + folder_ +
                                 "/libnsp_optimizer_junk.so) cannot be used. Its note cannot be read: it is too short for an ELF file. "
                                 "Build it again, or remove the file.");
  EXPECT_TRUE(has(refusal("empty"), "too short for an ELF file"));
  EXPECT_TRUE(has(refusal("cut"), "it ends within its program headers")) << refusal("cut");
  EXPECT_TRUE(has(refusal("folder"), "it is not a regular file"));
  EXPECT_TRUE(has(refusal("no_note"), "it has no nsp note"));
}

TEST_F(BadPlugins, EveryDifferenceOfTheAbiIsNamed) {
  EXPECT_TRUE(has(refusal("wrong_major"), "It was built for another nsp: its ABI version is 7.0 and that of nsp is 1.0. Build it again"))
      << refusal("wrong_major");
  EXPECT_TRUE(has(refusal("wrong_stamp"), "its build stamp is 'nsp0.0.9;gcc4;cxx11abi=0;c++201103L' and that of nsp is '" NSP_STAMP "'"))
      << refusal("wrong_stamp");
  const std::string all = refusal("wrong_class");
  EXPECT_TRUE(has(all, "its ABI class is C and plug-ins of kind optimizer are of class C++")) << all;
  EXPECT_TRUE(has(all, "its ABI version is 7.0")) << all;
  EXPECT_TRUE(has(all, "its build stamp is 'other'")) << all;
}

TEST_F(BadPlugins, OnlyACommunicatorMayAppendToTheStamp) {
  Registry all = registry();
  EXPECT_EQ(all.open("comm", "flavoured").note.stamp, NSP_STAMP ";mpi=test");
  EXPECT_TRUE(has(refusal("flavour"), "its build stamp is '" NSP_STAMP ";mpi=test'")) << refusal("flavour");
}

TEST_F(BadPlugins, MissingCpuFeaturesAreNamed) {
  EXPECT_TRUE(has(refusal("cpu_feature"), "It needs what this processor lacks: teleportation.")) << refusal("cpu_feature");
}

TEST_F(BadPlugins, TheLoadersTextIsShown) {
  const std::string text = refusal("missing_library");
  EXPECT_TRUE(has(text, "The system cannot load it: libnsp_test_absent.so: cannot open shared object file")) << text;
}

TEST_F(BadPlugins, NoteAndSymbolMustAgree) {
  const std::string text = refusal("disagree");
  EXPECT_TRUE(has(text, "Its note and its symbol nsp_plugin disagree: version '0.1.0' and '0.2.0'")) << text;
  EXPECT_TRUE(has(refusal("no_symbol"), "does not export the symbol nsp_plugin")) << refusal("no_symbol");
}

TEST_F(BadPlugins, NamesAreChecked) {
  EXPECT_TRUE(has(refusal("misnamed"), "file name says optimizer misnamed and its note says sync someone")) << refusal("misnamed");
  EXPECT_TRUE(has(refusal("train"), "a word of nsp's own command line")) << refusal("train");
}

TEST_F(BadPlugins, OptionRowsAreChecked) {
  EXPECT_TRUE(has(refusal("bad_default"), "Its option rate has a default that is not of its type float. 'fast' is not a number."))
      << refusal("bad_default");
  EXPECT_TRUE(has(refusal("bad_type"), "'double' is not a type of option")) << refusal("bad_type");
  EXPECT_TRUE(has(refusal("twice"), "Its option rate is declared twice")) << refusal("twice");
}

TEST_F(BadPlugins, TheFirstOfANameWinsAndTheOtherIsReported) {
  Registry all = registry();
  EXPECT_EQ(all.select({"adamw"}).optimizer->path, "") << "the built-in one";
  std::string texts;
  for (const PluginEntry& entry : all.entries()) {
    if (has(entry.reason, "comes first")) texts += entry.path + ": " + entry.reason + "\n";
  }
  const std::string dir = NSP_BAD_PLUGIN_DIR;
  EXPECT_TRUE(has(texts, dir + "/libnsp_optimizer_adamw.so: Another plug-in has this name and comes first: built in")) << texts;
  EXPECT_TRUE(has(
      texts, dir + "/second/libnsp_optimizer_good.so: Another plug-in has this name and comes first: " + dir + "/libnsp_optimizer_good.so"))
      << texts;
  EXPECT_EQ(all.select({"other"}).optimizer->path, dir + "/second/libnsp_optimizer_other.so");
}

TEST_F(BadPlugins, AFailingConstructorNamesThePlugin) {
  Registry all = registry();
  EXPECT_EQ(start_failure(&all, "throws"), "The plug-in throws failed to start: no luck today");
  EXPECT_EQ(start_failure(&all, "throws_usage"), "The plug-in throws_usage failed to start: wrong rate");
  EXPECT_TRUE(has(start_failure(&all, "throws_int"), "not an exception"));
}

TEST_F(BadPlugins, TheBestBackendWinsAndRefusalsAreKept) {
  Registry all = registry();
  const PluginEntry& best = all.choose_backend("auto");
  EXPECT_EQ(best.note.name, "slow_two");
  EXPECT_EQ(backend_table(best).size, sizeof(nsp_backend));
  EXPECT_EQ(find(all, "away")->reason, "It does not run here: no device answers.");
  EXPECT_EQ(all.choose_backend("slow_one").note.name, "slow_one");
  EXPECT_EQ(all.choose_backend("slow").note.name, "slow_two") << "the best of a family";
  EXPECT_THROW(all.choose_backend("away"), Error);
}

TEST_F(BadPlugins, TheListingTellsEverything) {
  Registry all = registry();
  all.open_all();
  const std::string text = plugin_listing(all);
  for (const char* part :
       {"good", "1.2.3", "loaded", "refused: It does not run here: no device answers.", "score 20", "built in",
        "refused: The system cannot load it: libnsp_test_absent.so", "stamp " NSP_STAMP ";mpi=test", "sync:\n", "backend:\n"}) {
    EXPECT_TRUE(has(text, part)) << part << "\n" << text;
  }
  EXPECT_FALSE(has(text, "available")) << "all are opened or refused";
}

}  // namespace
}  // namespace nsp
