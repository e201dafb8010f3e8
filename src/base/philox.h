// Random numbers by counter: a block is a function of key and counter alone, so a value does not
// depend on the order in which values are drawn, on threads or on the machine.
#ifndef PRESK_BASE_PHILOX_H
#define PRESK_BASE_PHILOX_H

#include <stdint.h>

typedef struct PhiloxBlock {
    uint32_t word[4];
} PhiloxBlock;

// Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3",
// SC 2011).
PhiloxBlock philox(const uint32_t counter[4], const uint32_t key[2]);

#endif
