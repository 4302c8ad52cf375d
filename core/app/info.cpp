// nsp_app plugins and nsp_app info.
#include <cstdio>

#include "core/app/verbs.hpp"
#include "core/plugin/listing.hpp"
#include "core/version.hpp"

namespace nsp {

int run_plugins(Session& session) {
  session.configure({});
  session.registry().open_all();
  std::fputs(plugin_listing(session.registry()).c_str(), stdout);
  return exit_code::done;
}

int run_info(Session& session) {
  session.configure({});
  World world(session, true);
  std::printf("nsp %s, built as %s\n%s", version(), build_stamp(), host_text(world.host()).c_str());
  const RankDevice device = open_device(session, world, true);
  const DeviceInfo info = device.device->info();
  std::printf("device: %s, backend %s, matmul peak %.0f GFLOP/s %s\n%s\n", info.name.c_str(), device.backend.c_str(),
              device.topology.peak_gflops(), session.config().section("train").text("dtype").c_str(), device.share.text.c_str());
  return exit_code::done;
}

}  // namespace nsp
