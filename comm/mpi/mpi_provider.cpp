// The module libnsp_comm_mpi.so: descriptor, start and end of MPI.
#include <mpi.h>

// Core accepts a module of its own build with any MPI; the suffix says which one, for messages and for `nsp_app plugins`.
#define NSP_MPI_TEXT_(x) #x
#define NSP_MPI_TEXT(x) NSP_MPI_TEXT_(x)
#if defined(OPEN_MPI)
#define NSP_STAMP_SUFFIX ";mpi=openmpi" NSP_MPI_TEXT(OMPI_MAJOR_VERSION)
#elif defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 50000000
#define NSP_STAMP_SUFFIX ";mpi=mpich5"
#elif defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 40000000
#define NSP_STAMP_SUFFIX ";mpi=mpich4"
#elif defined(MPICH_NUMVERSION)
#define NSP_STAMP_SUFFIX ";mpi=mpich3"
#else
#define NSP_STAMP_SUFFIX ";mpi=other"
#endif

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>

#include "comm/exchange.hpp"
#include "comm/mpi/launcher_check.hpp"
#include "comm/mpi/mpi_transport.hpp"
#include "nsp/plugin.hpp"

namespace nsp {
namespace {

std::string library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string version(text, length);
  version.resize(std::min(version.size(), version.find_first_of(",\n")));  // "Open MPI v4.1.4"; the rest is how it was packaged
  std::replace(version.begin(), version.end(), '\t', ' ');                 // "MPICH Version:\t4.0.2"
  return version;
}

class MpiProvider final : public CommProvider {
 public:
  explicit MpiProvider(const PluginContext&) {}

  std::unique_ptr<Communicator> open(const CommContext& context) override {
    session_ = std::make_shared<MpiSession>();
    int size = 0;
    check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size), "asking for the size");
    try {
      check_launcher(size, library_version(), [](const char* name) -> const char* { return std::getenv(name); });
    } catch (const Error&) {
      session_->finalize();
      throw;
    }
    // A copy, so that nsp's messages can never meet those of another user of MPI in this process.
    MPI_Comm world = MPI_COMM_NULL;
    check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &world), "copying the world communicator");
    return std::make_unique<ExchangeCommunicator>(std::make_unique<MpiTransport>(session_, world), "world", context, nullptr);
  }

  void close() noexcept override {
    if (session_) session_->finalize();
  }

 private:
  std::shared_ptr<MpiSession> session_;  // shared with the transports
};

}  // namespace
}  // namespace nsp

NSP_PLUGIN("comm", "mpi", NSP_VERSION, "messages over MPI", nsp::CommProvider, nsp::MpiProvider, nsp::no_options);
