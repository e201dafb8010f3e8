// Fusion groups and launches as `presk dump --stage realize` shows them.
#ifndef PRESK_CORE_DUMP_H
#define PRESK_CORE_DUMP_H

#include "core/core.h"

// Launches of one run of a function, counted structurally: a let that launches (core_let_launches)
// once, or once a leaf where it works over a parameter tree; `calls`: with those of the functions
// it calls.
uint64_t core_launches(const CoreProgram *program, CoreFnId fn, bool fusion, bool calls);

// The partition of a function (0: of all): its launches without and with fusion, and each group
// with root, type, members by number and source name, and why it grew no further. With `explain`
// also the values outside every group that had an elementwise reader and did not join it.
Str core_dump_groups(const CoreProgram *program, CoreFnId fn, bool explain, Arena *arena);
// The same for programs (an object with the list "functions"), and for drawing with Graphviz.
Str core_dump_groups_json(const CoreProgram *program, CoreFnId fn, Arena *arena);
Str core_dump_groups_dot(const CoreProgram *program, CoreFnId fn, Arena *arena);

#endif
