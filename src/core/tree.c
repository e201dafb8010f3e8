// Parameter trees: hash-consed, substituted, looked into by path and listed leaf by leaf.
//
// A tree names its module and dimension arguments; its fields' types are the module's with the
// arguments in place. A sequence's items are named 0, 1, …
#include "core/tables.h"

static CoreTree intern(CoreProgram *program, const CoreTreeNode *node) {
    struct CoreTables *tables = program->tables;
    Arena *arena = program->arena;
    CoreKey *key = &tables->key;
    key->count = 0;
    vec_push(arena, key, node->module);
    for (uint32_t i = 0; i < node->count; i++)
        vec_push(arena, key, node->module ? node->dims[i] : node->items[i]);
    uint32_t *slot;
    if (core_key_find(tables->tree_ids, key, &slot))
        return *slot;
    CoreTree id = *slot = tables->trees.count;
    CoreTreeNode *copy = arena_copy(arena, node, sizeof *node);
    if (node->module)
        copy->dims = arena_copy(arena, node->dims, node->count * sizeof *node->dims);
    else
        copy->items = arena_copy(arena, node->items, node->count * sizeof *node->items);
    vec_push(arena, &tables->trees, copy);
    return id;
}

CoreTree core_tree_module(CoreProgram *program, CoreModuleId module, uint32_t count,
                          const Extent *dims) {
    check_that(module >= 1 && module < program->modules.count);
    return intern(program, &(CoreTreeNode){.module = module, .count = count, .dims = dims});
}

CoreTree core_tree_sequence(CoreProgram *program, uint32_t count, const CoreTree *items) {
    return intern(program, &(CoreTreeNode){.count = count, .items = items});
}

const CoreTreeNode *core_tree(const CoreProgram *program, CoreTree tree) {
    check_that(tree >= 1 && tree < program->tables->trees.count);
    return program->tables->trees.at[tree];
}

CoreTree core_tree_substitute(CoreProgram *program, CoreTree tree, const Extent *by_dim) {
    const CoreTreeNode *node = core_tree(program, tree);
    if (!by_dim)
        return tree;
    uint32_t *parts = arena_array(program->arena, uint32_t, node->count);
    for (uint32_t i = 0; i < node->count; i++) {
        parts[i] = node->module ? extent_substitute(program->extents, node->dims[i], by_dim)
                                : core_tree_substitute(program, node->items[i], by_dim);
        if (!parts[i])
            return 0;
    }
    return node->module ? core_tree_module(program, node->module, node->count, parts)
                        : core_tree_sequence(program, node->count, parts);
}

// The map from the module's dimensions to a tree's arguments.
static const Extent *arguments(CoreProgram *program, const CoreTreeNode *node) {
    const CoreModule *module = &program->modules.at[node->module];
    Extent *by_dim = arena_array(program->arena, Extent, extent_dim_count(program->extents) + 1);
    for (uint32_t i = 0; i < node->count && i < module->dims.count; i++)
        by_dim[module->dims.at[i]] = node->dims[i];
    return by_dim;
}

static const CoreField *field_named(const CoreProgram *program, CoreModuleId module, Name name) {
    const CoreModule *at = &program->modules.at[module];
    for (uint32_t i = 0; i < at->fields.count; i++)
        if (at->fields.at[i].name == name)
            return &at->fields.at[i];
    return NULL;
}

// A sequence's item by its decimal name without leading zeros; count where there is none.
static uint32_t item_named(const CoreProgram *program, const CoreTreeNode *node, Name name) {
    Str text = name_str(program->context->names, name);
    uint64_t index = 0;
    bool ok = text.size > 0 && text.size < 10 && (text.size == 1 || text.at[0] != '0');
    for (uint32_t i = 0; ok && i < text.size; i++) {
        ok = text.at[i] >= '0' && text.at[i] <= '9';
        index = index * 10 + (uint64_t)(text.at[i] - '0');
    }
    return ok && index < node->count ? (uint32_t)index : node->count;
}

CoreTypeId core_tree_field(CoreProgram *program, CoreTree tree, uint32_t count, const Name *path) {
    for (uint32_t i = 0; i < count; i++) {
        const CoreTreeNode *node = core_tree(program, tree);
        if (!node->module) {
            uint32_t item = item_named(program, node, path[i]);
            if (item == node->count)
                return 0;
            tree = node->items[item];
            continue;
        }
        const CoreField *field = field_named(program, node->module, path[i]);
        if (!field)
            return 0;
        const Extent *by_dim = arguments(program, node);
        if (field->type)
            return i + 1 == count ? core_type_substitute(program, field->type, by_dim, NULL, 0) : 0;
        tree = core_tree_substitute(program, field->tree, by_dim);
        if (!tree)
            return 0;
    }
    return core_type_params(program, tree);
}

uint32_t core_tree_count(const CoreProgram *program, CoreTree tree) {
    const CoreTreeNode *node = core_tree(program, tree);
    return node->module ? program->modules.at[node->module].fields.count : node->count;
}

Name core_tree_part_name(CoreProgram *program, CoreTree tree, uint32_t index) {
    const CoreTreeNode *node = core_tree(program, tree);
    if (node->module)
        return program->modules.at[node->module].fields.at[index].name;
    return name_of(program->context->names, str_format(program->arena, "%u", index));
}

CoreTypeId core_tree_part(CoreProgram *program, CoreTree tree, uint32_t index) {
    Name name = core_tree_part_name(program, tree, index);
    return core_tree_field(program, tree, 1, &name);
}

typedef Vec(CoreLeaf) Leaves;

static void collect(CoreProgram *program, CoreTree tree, Str path, Arena *arena, Leaves *leaves);

static Str join(Arena *arena, Str path, Str name) {
    return path.size ? str_format(arena, "%s.%s", path.at, name.at) : name;
}

static void collect_module(CoreProgram *program, const CoreTreeNode *node, Str path, Arena *arena,
                           Leaves *leaves) {
    const Extent *by_dim = arguments(program, node);
    for (uint32_t i = 0; i < program->modules.at[node->module].fields.count; i++) {
        CoreField field = program->modules.at[node->module].fields.at[i];
        Str at = join(arena, path, name_str(program->context->names, field.name));
        if (!field.type) {
            CoreTree tree = core_tree_substitute(program, field.tree, by_dim);
            if (tree)
                collect(program, tree, at, arena, leaves);
            continue;
        }
        CoreLeaf leaf = {.path = at, .init = field.init};
        leaf.type = core_type_substitute(program, field.type, by_dim, NULL, 0);
        if (leaf.init.a)
            leaf.init.a = core_scalar_substitute(program, leaf.init.a, by_dim);
        if (leaf.init.b)
            leaf.init.b = core_scalar_substitute(program, leaf.init.b, by_dim);
        vec_push(arena, leaves, leaf);
    }
}

static void collect(CoreProgram *program, CoreTree tree, Str path, Arena *arena, Leaves *leaves) {
    const CoreTreeNode *node = core_tree(program, tree);
    if (node->module) {
        collect_module(program, node, path, arena, leaves);
        return;
    }
    for (uint32_t i = 0; i < node->count; i++)
        collect(program, node->items[i], join(arena, path, str_format(arena, "%u", i)), arena,
                leaves);
}

uint32_t core_tree_leaves(CoreProgram *program, CoreTree tree, Arena *arena, CoreLeaf **leaves) {
    Leaves all = {0};
    collect(program, tree, STR(""), arena, &all);
    *leaves = all.at;
    return all.count;
}

// `Linear{4, 3}`, `Relu`, `[Embed{9}, Block ^ 6]`: equal neighbours of a sequence are counted.
void core_tree_write(const CoreProgram *program, CoreTree tree, const Name *names, StrBuf *buf) {
    const CoreTreeNode *node = core_tree(program, tree);
    if (node->module) {
        buf_add(buf, name_str(program->context->names, program->modules.at[node->module].name));
        for (uint32_t i = 0; i < node->count; i++) {
            buf_text(buf, i ? ", " : "{");
            extent_write(program->extents, node->dims[i], names, buf);
        }
        buf_text(buf, node->count ? "}" : "");
        return;
    }
    buf_char(buf, '[');
    for (uint32_t i = 0, next; i < node->count; i = next) {
        for (next = i + 1; next < node->count && node->items[next] == node->items[i];)
            next++;
        buf_text(buf, i ? ", " : "");
        core_tree_write(program, node->items[i], names, buf);
        if (next - i > 1)
            buf_format(buf, " ^ %u", next - i);
    }
    buf_char(buf, ']');
}
