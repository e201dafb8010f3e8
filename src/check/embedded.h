// The library modules of std/, embedded in the binary by scripts/embed.sh.
#ifndef PRESK_CHECK_EMBEDDED_H
#define PRESK_CHECK_EMBEDDED_H

#include <stddef.h>

typedef struct Embedded {
    const char *path; // "std/nn.psk"; null ends the list
    const char *text;
    size_t size;
} Embedded;

extern const Embedded presk_embedded[];

#endif
