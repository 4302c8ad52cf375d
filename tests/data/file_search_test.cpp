#include "core/data/file_search.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "nsp/error.hpp"
#include "tests/data/temporary_folder.hpp"

namespace nsp {
namespace {

// Names below the folder, as find_files gives them for these inputs (relative to it).
std::vector<std::string> found(const TemporaryFolder& folder, const std::vector<std::string>& inputs) {
  std::vector<std::string> paths;
  for (const std::string& input : inputs) paths.push_back(folder / input);
  std::vector<std::string> names;
  for (const std::string& file : find_files(paths).files) names.push_back(file.substr(folder.path().size() + 1));
  return names;
}

using Names = std::vector<std::string>;

void plant(const TemporaryFolder& folder, const Names& names) {
  for (const std::string& name : names) write_text(folder / name, name);
}

TEST(FileSearch, FoldersFilesAndGlobs) {
  const TemporaryFolder folder;
  plant(folder, {"b.py", "a.py", "src/c.py", "src/deep/er/d.py", "src/e.txt", "src/.hidden.py", ".git/f.py"});
  EXPECT_EQ(found(folder, {""}), (Names{"a.py", "b.py", "src/c.py", "src/deep/er/d.py", "src/e.txt"}));
  EXPECT_EQ(found(folder, {"src"}), (Names{"src/c.py", "src/deep/er/d.py", "src/e.txt"}));
  EXPECT_EQ(found(folder, {"src/"}), found(folder, {"src"}));
  EXPECT_EQ(found(folder, {"*.py"}), (Names{"a.py", "b.py"}));
  EXPECT_EQ(found(folder, {"**/*.py"}), (Names{"a.py", "b.py", "src/c.py", "src/deep/er/d.py"}));
  EXPECT_EQ(found(folder, {"src/**/*.py"}), (Names{"src/c.py", "src/deep/er/d.py"}));
  EXPECT_EQ(found(folder, {"**/er/*"}), Names{"src/deep/er/d.py"});
  EXPECT_EQ(found(folder, {"src/**"}), found(folder, {"src"}));
  EXPECT_EQ(found(folder, {"[ab].p?"}), (Names{"a.py", "b.py"}));
  EXPECT_EQ(found(folder, {"src/d*"}), Names{"src/deep/er/d.py"});  // a folder that matches stands for its files
  EXPECT_EQ(found(folder, {"src/.hidden.py"}), Names{"src/.hidden.py"});
}

TEST(FileSearch, OverlappingInputsGiveEachFileOnce) {
  const TemporaryFolder folder;
  plant(folder, {"a.txt", "b.txt"});
  EXPECT_EQ(found(folder, {"b.txt", "", "*.txt", "a.txt"}), (Names{"a.txt", "b.txt"}));
}

TEST(FileSearch, LinksAreFollowedToFilesNotToFolders) {
  const TemporaryFolder folder;
  plant(folder, {"x/a.txt"});
  std::filesystem::create_symlink(folder / "x", folder / "x/again");  // a circle
  std::filesystem::create_symlink(folder / "x/a.txt", folder / "link.txt");
  std::filesystem::create_symlink(folder / "nowhere", folder / "x/dangling");
  const FoundFiles result = find_files({folder.path()});
  EXPECT_EQ(result.files, Names{folder / "link.txt"});
  EXPECT_EQ(result.skipped, (std::map<std::string, int64_t>{
                                {"further names of the same file", 1}, {"links that lead nowhere", 1}, {"links to folders", 1}}));
}

// Folders list their entries in an order of their own; the result does not.
TEST(FileSearch, OrderIsThatOfTheNames) {
  Names names;
  for (int i = 0; i < 60; ++i) names.push_back(std::string(1, static_cast<char>('a' + i % 7)) + "/f" + std::to_string(i * 37 % 60));
  const TemporaryFolder a, b;
  plant(a, names);
  std::reverse(names.begin(), names.end());
  plant(b, names);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(found(a, {""}), names);
  EXPECT_EQ(found(b, {"g", "f", "e", "d", "c", "b", "a"}), names);
}

TEST(FileSearch, NamesWithWildcardsAreFilesFirst) {
  const TemporaryFolder folder;
  plant(folder, {"a[1].txt", "a1.txt"});
  EXPECT_EQ(found(folder, {"a[1].txt"}), Names{"a[1].txt"});
}

TEST(FileSearch, NothingFoundIsAnErrorPerInput) {
  const TemporaryFolder folder;
  plant(folder, {"a.txt", "hidden/.b"});
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, find_files({folder / "a.txt", folder / "*.py"})),
              "no file matches '" + (folder / "*.py") + "' (empty corpus)");
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, find_files({folder / "absent"})), "does not exist");
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, find_files({folder / "hidden"})), "1 hidden files");
}

TEST(FileSearch, SkippedFoldersAreCounted) {
  const TemporaryFolder folder;
  plant(folder, {"a/x", "b/y", "c/d/z"});
  const auto result =
      find_files({folder.path()}, [](const std::filesystem::path& path) { return path.filename() == "b" || path.filename() == "d"; });
  EXPECT_EQ(result.files, Names{folder / "a/x"});
  EXPECT_EQ(result.skipped.at("prepared folders"), 2);
}

}  // namespace
}  // namespace nsp
