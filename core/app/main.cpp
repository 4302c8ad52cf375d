#include "core/app/verbs.hpp"

int main(int argc, char** argv) {
  return nsp::run_app(argc, argv);
}
