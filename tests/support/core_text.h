// Core programs of tests, given as text.
#ifndef PRESK_TESTS_CORE_TEXT_H
#define PRESK_TESTS_CORE_TEXT_H

#include "core/core.h"

// Reads a program; prints the diagnostics and aborts where it is malformed.
CoreProgram *core_of_text(Context *context, const char *text);
// The same, then core_verify: prints the errors and aborts where it is illegal.
CoreProgram *core_of_legal_text(Context *context, const char *text);

#endif
