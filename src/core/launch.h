// Which lets launch a nest: the one rule that executors, launch counts and dumps share.
#ifndef PRESK_CORE_LAUNCH_H
#define PRESK_CORE_LAUNCH_H

#include "core/core.h"

// True where a let launches: not a FREE or CALL let; with fusion, not an interior member of a
// group; not a permute that contractions alone read, since they take strides.
bool core_let_launches(const CoreFn *fn, CoreLetId let, bool fusion);
// A permute that contractions alone read: its value is its operand under other strides.
bool core_permute_is_view(const CoreFn *fn, CoreLetId let);

#endif
