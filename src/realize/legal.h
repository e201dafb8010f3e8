// The conditions under which a nest can run under a layout. A layout that fails one is refused,
// never adjusted: what is timed and reported is what was stated.
//
// Conditions have the numbers of the plan reference:
//   1  the nest exists                     2  the decision belongs to the nest, its value to the
//   3  division: the tile and the k-block     domain
//      divide their axes (or `tail` is     4  lanes are legal for the types, divide the tile's
//      "peel"); a row-wise contraction        columns (or `rows`), and lie along J in memory
//      has no tile                         5  workers are the machine's or half of them (native)
//   6  an epilogue applies                 7  sums kept in the output, and two softmax passes, need
//   8  a split loop is parallel and has       the storage type to be the accumulation type
//      two iterations                      9  a pack of rows is for an operand 1 not along J
//   10 the target has the value
#ifndef PRESK_REALIZE_LEGAL_H
#define PRESK_REALIZE_LEGAL_H

#include "realize/decision.h"

typedef struct RlzFault {
    uint32_t condition; // 0: the layout is legal
    RlzDecision decision;
    Str why; // what is the matter, and what is legal
} RlzFault;

// The machine on which a layout is to run.
typedef struct RlzMachine {
    RlzTarget target;
    uint32_t workers;
    bool native; // else condition 5 does not apply, and lanes are one by default
} RlzMachine;

// Conditions 3, 4, 6, 7, 9 and 10 of a layout whose values belong to their domains. 8 is known once
// the kernel exists (rlz_split_fault), 5 is a plan's (rlz_workers_fault).
RlzFault rlz_layout_fault(const RlzNest *nest, const RlzLayout *layout, RlzTarget target,
                          Arena *arena);
RlzFault rlz_split_fault(const RlzLayout *layout, int64_t iterations, Arena *arena);
RlzFault rlz_workers_fault(const RlzLayout *layout, const RlzMachine *machine, Arena *arena);

#endif
