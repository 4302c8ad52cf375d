// The verbs of nsp_app. Each returns its exit code, or throws an Error that main prints.
#pragma once

#include "core/app/session.hpp"
#include "core/app/world.hpp"

namespace nsp {

int run_train(Session& session);
int run_plan(Session& session);
int run_prepare(Session& session);
int run_eval(Session& session);
int run_generate(Session& session);
int run_checkpoint(Session& session);
int run_bench(Session& session);
int run_plugins(Session& session);
int run_info(Session& session);

// Ends a started job after an error on this rank: prints it once and takes all ranks down with its exit code. Returns only in a
// job of one rank. What is no nsp::Error (out of memory, the file system, a plug-in's own exception) is told as one.
int end_with_error(World& world, const std::exception& failure);

// argv to exit code: what main does.
int run_app(int argc, char** argv);

}  // namespace nsp
