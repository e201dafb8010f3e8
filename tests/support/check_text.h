// Programs of tests, given as source text, checked.
#ifndef PRESK_TESTS_CHECK_TEXT_H
#define PRESK_TESTS_CHECK_TEXT_H

#include "check/check.h"

typedef struct Checked {
    Context context;
    ChkProgram *program; // null: it has errors
} Checked;

// Checks a text and verifies its Core; it may be wrong.
void check_text(Checked *checked, const char *text);
// The same; prints the diagnostics and fails the test where there is an error.
void check_good(Checked *checked, const char *text);
void check_end(Checked *checked);
// The function `name` prints as `expected`, to the byte.
void expect_function(const Checked *checked, const char *name, const char *expected);
// One program with one function, which prints as expected.
void expect_core(const char *text, const char *name, const char *expected);
// A text has exactly these codes, in order of position: "E2001 E2003", "" for none.
void expect_codes(const char *text, const char *codes);

#endif
