// The symbol alone, without the note.
#include "tests/bad_plugins/sample.hpp"

#undef NSP_NOTE_ASM
#define NSP_NOTE_ASM(cls, cpu, kind, name, version) static_assert(true)
LEAVE_TRACE("no_note");
static const nsp_option rows[] = {{"rate", "float", "0.5", "a number"}};
NSP_PLUGIN("optimizer", "no_note", "0.1.0", "a sample", nsp::Optimizer, Idle, rows);
