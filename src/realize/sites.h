// Sites by name: "loss/%12".
#ifndef PRESK_REALIZE_SITES_H
#define PRESK_REALIZE_SITES_H

#include "core/core.h"

// A let that launches a nest, by itself or within a group. False: there is no such site.
bool rlz_site_find(const CoreProgram *program, Str site, CoreFnId *fn, CoreLetId *let);
// The nearest spelling of a site that exists, empty where none is near.
Str rlz_site_nearest(const CoreProgram *program, Str site, Arena *arena);

#endif
