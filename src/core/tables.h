// The tables behind a program's hash-consed types, trees and scalars; private to core.
//
// Nodes are kept by pointer, so that what core_type() and its kin give stays where it is while the
// tables grow.
#ifndef PRESK_CORE_TABLES_H
#define PRESK_CORE_TABLES_H

#include "core/core.h"

typedef Vec(uint32_t) CoreKey;

struct CoreTables {
    Map *type_ids, *tree_ids, *scalar_ids;
    Vec(CoreType *) types; // at[0] is null, as in the others
    Vec(CoreTreeNode *) trees;
    Vec(CoreScalarNode *) scalars;
    Vec(bool) sound; // by type: core_type_fault has found nothing in it
    CoreKey key;     // scratch
};

// The id under `key` in `ids`: 0 where there is none yet and the caller must store one in *slot.
uint32_t core_key_find(Map *ids, const CoreKey *key, uint32_t **slot);

// Writers that the printer uses with other names for some dimensions (by DimId; null: none).
void core_type_write(const CoreProgram *program, CoreTypeId type, const Name *names, StrBuf *buf);
void core_axes_write(const CoreProgram *program, uint32_t rank, const CoreAxis *axes,
                     const Name *names, StrBuf *buf);
void core_tree_write(const CoreProgram *program, CoreTree tree, const Name *names, StrBuf *buf);
void core_scalar_write(const CoreProgram *program, CoreScalar scalar, const Name *names,
                       StrBuf *buf);

// What is wrong with a type by itself (two packs, two axes of one name, more than RANK_MAX axes,
// a missing extent); the empty string where nothing is.
Str core_type_fault(const CoreProgram *program, CoreTypeId type, Arena *arena);
// May a value of type `given` stand where `wanted` is declared? Equal up to axis names, but an
// idx[n] may stand for an idx[m] where n <= m.
bool core_type_fits(const CoreProgram *program, CoreTypeId given, CoreTypeId wanted);
// Is every value of idx[given] within idx[wanted]?
bool core_bound_fits(const CoreProgram *program, Extent given, Extent wanted);

#endif
