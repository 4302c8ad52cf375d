// What prepare leaves behind: replaced folders, and nothing at all after a failure.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/data/prepare.hpp"
#include "nsp/error.hpp"
#include "tests/data/prepared_documents.hpp"

namespace nsp {
namespace {

TEST(Prepare, ReplacesPreparedFoldersOnly) {
  const TemporaryFolder folder;
  plant(folder, 4);
  prepare(options_of({folder / "text/d1000.txt"}, folder / "out"));
  prepare(options_of({folder / "text"}, (folder / "out") + "/"));
  EXPECT_EQ(all_documents(folder / "out").size(), 4u);
  EXPECT_EQ(names_in(folder.path()), (Documents{"out", "text"}));
  write_text(folder / "out/notes.txt", "mine");
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, prepare(options_of({folder / "text"}, folder / "out"))), "it also holds notes.txt");
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, prepare(options_of({folder / "text"}, folder / "text"))), "is not a prepared folder");
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, prepare(options_of({folder / "text"}, folder / "text/d1000.txt"))), "it is not a folder");
  EXPECT_EQ(read_text(folder / "out/notes.txt"), "mine");
  EXPECT_EQ(names_in(folder.path()), (Documents{"out", "text"}));
  std::filesystem::create_directory(folder / "empty");
  prepare(options_of({folder / "text"}, folder / "empty"));
  std::filesystem::create_directory_symlink(folder / "empty", folder / "link");
  prepare(options_of({folder / "text/d1000.txt"}, folder / "link"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(documents_of(folder / "empty", "val").size(), 1u);
}

TEST(Prepare, OutputBelowTheInputIsNoInput) {
  const TemporaryFolder folder;
  plant(folder, 3);
  const auto first = prepare(options_of({folder.path()}, folder / "out"));
  write_text(folder / "out.tmp-1/left.txt", "of a killed process");
  prepare(options_of({folder / "text"}, folder / "elsewhere"));
  const auto again = prepare(options_of({folder.path()}, folder / "out"));
  EXPECT_EQ(again.index.fingerprint(), first.index.fingerprint());
  EXPECT_EQ(again.documents, 3);
}

TEST(Prepare, BadInputsLeaveNothingBehind) {
  const TemporaryFolder folder;
  plant(folder, 1);
  write_text(folder / "nothing/empty", "");
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, prepare(options_of({folder / "*.none"}, folder / "out"))), "empty corpus");
  const std::string text = ERROR_TEXT(ErrorKind::input, prepare(options_of({folder / "nothing"}, folder / "out")));
  EXPECT_SAYS(text, "empty corpus");
  EXPECT_SAYS(text, "1 empty files");
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, prepare(options_of({folder / "text"}, folder / "text/d1000.txt/out"))),
              "cannot create the output folder");
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::usage, prepare(options_of({folder / "text"}, folder / "out", 1.0))), "val_fraction");
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::usage, prepare(options_of({}, folder / "out"))), "needs an input");
  EXPECT_EQ(names_in(folder.path()), (Documents{"nothing", "text"}));
}

TEST(Prepare, FileThatChangesMeanwhileIsRefused) {
  const std::string changing = "/proc/sys/kernel/random/uuid";  // other text each time it is opened
  if (!std::filesystem::exists(changing)) GTEST_SKIP() << "needs Linux";
  const TemporaryFolder folder;
  plant(folder, 2);
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, prepare(options_of({folder / "text", changing}, folder / "out"))), changing + " changed while");
  EXPECT_EQ(names_in(folder.path()), Documents{"text"});
}

// Root reads and writes everything, so the test takes another identity for a while.
class AsNobody {
 public:
  AsNobody() {
    if (::geteuid() == 0 && ::seteuid(65534) != 0) ADD_FAILURE() << "cannot become another user";
  }
  ~AsNobody() {
    if (::getuid() == 0 && ::seteuid(0) != 0) ADD_FAILURE() << "cannot become root again";
  }
};

TEST(Prepare, UnreadableFileAndUnwritableOutput) {
  const TemporaryFolder folder;
  plant(folder, 3);
  ::chmod(folder.path().c_str(), 0777);
  ::chmod((folder / "text/d1001.txt").c_str(), 0);
  std::filesystem::create_directory(folder / "closed");
  ::chmod((folder / "closed").c_str(), 0555);
  {
    const AsNobody nobody;
    EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, prepare(options_of({folder / "text"}, folder / "out"))),
                "cannot read " + (folder / "text/d1001.txt"));
    EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, prepare(options_of({folder / "text/d1000.txt"}, folder / "closed/out"))),
                "cannot create the output folder");
  }
  ::chmod((folder / "text").c_str(), 0);
  {
    const AsNobody nobody;
    EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, prepare(options_of({folder / "text"}, folder / "out"))), "cannot read the folder");
  }
  EXPECT_EQ(names_in(folder.path()), (Documents{"closed", "text"}));
}

// Unmounts also when the test ends early.
struct Mounted {
  std::string path;
  ~Mounted() { EXPECT_EQ(::umount(path.c_str()), 0); }
};

TEST(Prepare, FullDiskKeepsTheOldAndLeavesNothing) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "disk");
  if (::mount("nsp", (folder / "disk").c_str(), "tmpfs", 0, "size=256k") != 0)
    GTEST_SKIP() << "needs the right to mount a small file system";
  const Mounted disk{folder / "disk"};
  plant(folder, 2);
  prepare(options_of({folder / "text"}, folder / "disk/out"));
  const std::string before = read_prepared_index(folder / "disk/out").fingerprint();
  write_text(folder / "large", std::string(1 << 20, 'a'));
  const std::string text = ERROR_TEXT(ErrorKind::io, prepare(options_of({folder / "large"}, folder / "disk/out")));
  EXPECT_SAYS(text, "No space left on device");
  EXPECT_EQ(names_in(folder / "disk"), Documents{"out"});
  EXPECT_EQ(read_prepared_index(folder / "disk/out").fingerprint(), before);
  EXPECT_EQ(all_documents(folder / "disk/out").size(), 2u);
}

}  // namespace
}  // namespace nsp
