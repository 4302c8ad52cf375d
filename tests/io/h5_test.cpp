#include "io/h5.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "io/h5_driver.hpp"
#include "temp_folder.hpp"

namespace nsp::h5 {
namespace {

TEST(H5Session, LetsOneThreadInAndNests) {
  std::atomic<bool> inside{false};
  std::thread other;
  {
    Session outer;
    Session inner;
    other = std::thread([&] {
      Session session;
      inside = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_FALSE(inside);
  }
  other.join();
  EXPECT_TRUE(inside);
}

TEST(H5Session, GivesBackHowErrorsWerePrinted) {
  H5E_auto2_t before = nullptr, during = nullptr, after = nullptr;
  void* data = nullptr;
  H5Eget_auto2(H5E_DEFAULT, &before, &data);
  {
    Session session;
    H5Eget_auto2(H5E_DEFAULT, &during, &data);
  }
  H5Eget_auto2(H5E_DEFAULT, &after, &data);
  EXPECT_NE(before, nullptr);  // HDF5 prints unless told otherwise
  EXPECT_EQ(during, nullptr);
  EXPECT_EQ(after, before);
}

TEST(H5Check, SaysWhatHdf5Says) {
  Session session;
  const Check check(ErrorKind::io, "cannot open it", "Look elsewhere.");
  try {
    check(H5Fopen("/nowhere/at/all.h5", H5F_ACC_RDONLY, H5P_DEFAULT));
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_EQ(text.rfind("cannot open it. HDF5 says: ", 0), 0u) << text;
    EXPECT_NE(text.find("/nowhere/at/all.h5"), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
}

TEST(H5Id, ClosesOnceAndMoves) {
  Session session;
  hid_t raw = H5I_INVALID_HID;
  {
    Id first(H5Screate(H5S_SCALAR), H5Sclose);
    raw = first.get();
    Id second(std::move(first));
    EXPECT_LT(first.get(), 0);
    first = std::move(second);
    EXPECT_EQ(first.get(), raw);
    EXPECT_GT(H5Iis_valid(raw), 0);
  }
  EXPECT_EQ(H5Iis_valid(raw), 0);
}

// After a failed write HDF5 still finds all of its metadata, also what its cache has dropped, and closes the file.
TEST(H5Driver, AFailedWriteIsTheOwnersAffair) {
  const test::TempFolder folder;
  const auto state = std::make_shared<WriteState>();
  Session session;
  const Check check(ErrorKind::internal, "HDF5 must not notice", "");
  {
    const Id access = driver_access(state, check);
    const Id file(check(H5Fcreate((folder / "a.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get())), H5Fclose);
    state->error = ENOSPC;
    for (int i = 0; i < 2500; ++i) {
      const std::string name = "group" + std::to_string(i);
      Id group(check(H5Gcreate2(file.get(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)), H5Gclose);
      write_attribute(group.get(), "text", std::string(2000, 'x'), check);
      check(H5Gclose(group.release()));
    }
    for (int i = 0; i < 2500; i += 50) {
      const Id group(check(H5Gopen2(file.get(), ("group" + std::to_string(i)).c_str(), H5P_DEFAULT)), H5Gclose);
      EXPECT_EQ(read_text_attribute(group.get(), "text", check).size(), 2000u);
    }
    check(H5Fflush(file.get(), H5F_SCOPE_LOCAL));
  }
  EXPECT_EQ(state->error, ENOSPC);
  EXPECT_EQ(state->descriptor, -1);  // closed
  EXPECT_LT(std::filesystem::file_size(folder / "a.h5"), 100u);
}

}  // namespace
}  // namespace nsp::h5
