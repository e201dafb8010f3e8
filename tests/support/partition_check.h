// What a fusion partition must be, checked from its definition and not by the pass's way.
#ifndef PRESK_TESTS_PARTITION_CHECK_H
#define PRESK_TESTS_PARTITION_CHECK_H

#include "core/core.h"

// The empty string, or what is wrong: a member that may not be one, an interior value read from
// outside, a group that is too large or too small. With `fresh` (no dead code dropped since) also
// that no group could have taken one more value, and that the remarks are exactly the values that
// had an elementwise reader and did not join.
Str partition_fault(const CoreProgram *program, CoreFnId fn, bool fresh, Arena *arena);

#endif
