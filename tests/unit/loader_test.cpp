// The registry's choices and the checks, without any module file.
#include <gtest/gtest.h>

#include "core/plugin/checks.hpp"
#include "core/plugin/instance.hpp"
#include "core/plugin/registry.hpp"
#include "core/plugin/search_path.hpp"
#include "nsp/error.hpp"

namespace nsp {
namespace {

void* some_object(const void*) {
  static int object;
  return &object;
}
void no_destroy(void*) {}
int64_t refuses_silently(char*, uint64_t) {
  return 0;
}
int64_t overflows(char* reason, uint64_t size) {
  for (uint64_t i = 0; i < size; ++i) reason[i] = 'x';
  return -1;
}

nsp_plugin_v1 builtin(const char* kind, const char* name) {
  return {NSP_PLUGIN_MAGIC, sizeof(nsp_plugin_v1), NSP_ABI_CXX, NSP_ABI_MAJOR, NSP_ABI_MINOR, 0,      0, kind, name, "0.1.0",
          NSP_STAMP,        "a built-in",          nullptr,     some_object,   no_destroy,    nullptr};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class RegistryTest : public testing::Test {
 protected:
  Registry registry() const {
    return Registry({&ddp_, &dp_, &resident_, &adamw_, &self_, &desloc_, &autosp_}, {"/no/such/folder"}, Host{});
  }
  std::string refusal(const std::vector<std::string>& names, ErrorKind kind) const {
    Registry all = registry();
    try {
      all.select(names);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), kind) << e.what();
      return e.what();
    }
    return "";
  }
  nsp_plugin_v1 ddp_ = builtin("sync", "ddp"), dp_ = builtin("parallel", "dp"), resident_ = builtin("memory", "resident"),
                adamw_ = builtin("optimizer", "adamw"), self_ = builtin("comm", "self"), desloc_ = builtin("sync", "desloc"),
                autosp_ = builtin("parallel", "autosp");
};

TEST_F(RegistryTest, KindsThatAreNotNamedGetTheirDefault) {
  Registry all = registry();
  const Selection usual = all.select({});
  EXPECT_EQ(usual.sync->note.name, "ddp");
  EXPECT_EQ(usual.parallel->note.name, "dp");
  EXPECT_EQ(usual.memory->note.name, "resident");
  EXPECT_EQ(usual.optimizer->note.name, "adamw");
  const Selection named = all.select({"autosp", "desloc", "desloc"});
  EXPECT_EQ(named.sync->note.name, "desloc");
  EXPECT_EQ(named.parallel->note.name, "autosp");
}

TEST_F(RegistryTest, TwoOfAKindAreNamed) {
  EXPECT_EQ(refusal({"desloc", "ddp"}, ErrorKind::usage),
            "The plug-ins desloc and ddp are both of kind sync. A run has one. Remove one of them from --plugins.");
  EXPECT_TRUE(has(refusal({"dp", "autosp"}, ErrorKind::usage), "dp and autosp are both of kind parallel. This version of nsp uses one"));
}

TEST_F(RegistryTest, UnknownNamesGetTheNearestWhatThereIsAndWhereItWasLookedFor) {
  EXPECT_EQ(
      refusal({"deslok"}, ErrorKind::plugin),
      "There is no plug-in 'deslok'. Available: ddp, dp, resident, adamw, desloc, autosp; looked in /no/such/folder (no such folder). "
      "Did you mean desloc?");
  EXPECT_TRUE(has(refusal({"zebra"}, ErrorKind::plugin), "--plugin-path"));
}

TEST_F(RegistryTest, CommunicatorsAndBackendsHaveTheirOwnKey) {
  EXPECT_EQ(refusal({"self"}, ErrorKind::usage), "The plug-in self is not chosen with --plugins. It is of kind comm. Write --comm self.");
  Registry all = registry();
  EXPECT_EQ(all.open("comm", "self").state, PluginEntry::State::loaded);
  EXPECT_THROW(all.open("comm", "ddp"), Error);
  EXPECT_THROW(all.choose_backend("auto"), Error);
  EXPECT_THROW(all.choose_backend("cpu"), Error);
}

TEST_F(RegistryTest, BuiltInsAreCheckedLikeModules) {
  const nsp_plugin_v1 reserved = builtin("sync", "train");
  nsp_plugin_v1 stale = builtin("sync", "stale");
  stale.abi_major = 9;
  nsp_plugin_v1 silent = builtin("sync", "silent"), loud = builtin("sync", "loud");
  silent.probe = refuses_silently;
  loud.probe = overflows;
  Registry all({&reserved, &stale, &silent, &loud}, {}, Host{});
  EXPECT_EQ(all.entries()[0].state, PluginEntry::State::refused);
  EXPECT_EQ(all.entries()[1].state, PluginEntry::State::refused);
  all.open_all();
  EXPECT_EQ(all.entries()[2].reason, "It does not run here: it gives no reason.");
  EXPECT_EQ(all.entries()[3].state, PluginEntry::State::refused);
  EXPECT_LT(all.entries()[3].reason.size(), 600u);
}

TEST(Checks, NamesMustBeUsableAsSections) {
  Note note = note_of(builtin("sync", "fine_2"));
  EXPECT_EQ(check_name(note, "sync", "fine_2"), "");
  for (const char* name : {"model", "comm", "plugins", "generate", "a.b", "Big", "", "a-b", "a b"}) {
    note.name = name;
    EXPECT_NE(check_name(note, "sync", name), "") << name;
  }
  note = note_of(builtin("magic", "x"));
  EXPECT_TRUE(has(check_name(note, "magic", "x"), "no plug-ins of kind magic"));
}

TEST(Checks, BackendsMayBeOfAnotherMinorVersionAndCompiler) {
  Note note = note_of(builtin("backend", "x"));
  note.abi_class = NSP_ABI_C;
  note.abi_minor = NSP_ABI_MINOR + 3;
  note.stamp = "whatever";
  EXPECT_EQ(check_abi(note, Host{}), "");
  note.abi_major = NSP_ABI_MAJOR + 1;
  EXPECT_NE(check_abi(note, Host{}), "");
  Note cxx = note_of(builtin("sync", "x"));
  EXPECT_EQ(check_abi(cxx, Host{}), "");
  cxx.abi_minor = NSP_ABI_MINOR + 3;
  EXPECT_NE(check_abi(cxx, Host{}), "") << "C++ interfaces are not stable over minor versions";
}

TEST(Checks, CpuFeatures) {
  Note note = note_of(builtin("backend", "x"));
  note.cpu_features = 5;
  Host host;
  host.cpu_features = 7;
  EXPECT_EQ(check_cpu(note, host), "");
  host.cpu_features = 1;
  EXPECT_TRUE(has(check_cpu(note, host), "feature bits 0x4"));
  host.cpu_feature_names = [](uint64_t bits) { return bits == 4 ? std::string("AVX-512") : std::string("?"); };
  EXPECT_TRUE(has(check_cpu(note, host), "lacks: AVX-512."));
}

TEST(Checks, DescriptorsThatAreNone) {
  nsp_plugin_v1 plugin = builtin("sync", "x");
  const Note note = note_of(plugin);
  EXPECT_EQ(check_symbol(note, &plugin), "");
  EXPECT_NE(check_symbol(note, nullptr), "");
  plugin.create = nullptr;
  EXPECT_NE(check_symbol(note, &plugin), "");
  plugin = builtin("sync", "x");
  plugin.size = 8;
  EXPECT_NE(check_symbol(note, &plugin), "");
  plugin = builtin("sync", "x");
  plugin.magic = 1;
  EXPECT_NE(check_symbol(note, &plugin), "");
  plugin = builtin(nullptr, "x");
  EXPECT_TRUE(has(check_symbol(note, &plugin), "kind 'sync' and '(null)'"));
}

TEST(Checks, OptionRowsWithHoles) {
  nsp_plugin_v1 plugin = builtin("sync", "x");
  plugin.option_count = 1;
  EXPECT_NE(check_options(plugin), "");
  nsp_option row{"n", "int", "1", nullptr};
  plugin.options = &row;
  EXPECT_EQ(check_options(plugin), "");
  EXPECT_EQ(plugin_rows("x", plugin.options, 1)[0].help, "");
  row.default_value = nullptr;
  EXPECT_NE(check_options(plugin), "");
  row = {"a.b", "int", "1", ""};
  EXPECT_NE(check_options(plugin), "");
}

TEST(SearchPath, OrderAndNeverTheCurrentDirectory) {
  EXPECT_EQ(plugin_search_path("/a:/b/", "/c::/a", "/opt/nsp/bin/nsp_app"),
            (std::vector<std::string>{"/a", "/b/", "/c", std::string("/opt/nsp/") + NSP_MODULE_DIR}));
  EXPECT_EQ(plugin_search_path("", "", "/opt/bin/nsp_app"), std::vector<std::string>{std::string("/opt/") + NSP_MODULE_DIR});
  EXPECT_TRUE(has(program_path(), "loader_test"));
}

}  // namespace
}  // namespace nsp
