// Nests for readers: kind, axes, layout on one line.
#include "realize/dump.h"

Str rlz_nest_shape(const RlzNest *nest, Arena *arena) {
    StrBuf buf = {.arena = arena};
    for (uint32_t i = 0; i < nest->axes; i++)
        buf_format(&buf, "%s%lld", i ? "x" : "", (long long)nest->extent[i]);
    return nest->axes ? buf_str(&buf) : STR("1");
}

Str rlz_nest_line(const RlzNest *nest, const RlzLayout *layout, Arena *arena) {
    StrBuf buf = {.arena = arena};
    buf_text(&buf, rlz_kind_text(nest->kind));
    if (nest->nodes > 1)
        buf_format(&buf, " of %u to %s", nest->nodes, core_prims[nest->prim].text);
    else
        buf_format(&buf, " %s%s", core_prims[nest->prim].text, nest->epilogue ? "+add" : "");
    buf_format(&buf, " %s ", dtype_text(nest->output.type));
    if (nest->leaves)
        buf_format(&buf, " of %u lea%s ", nest->leaves, nest->leaves == 1 ? "f" : "ves");
    for (uint32_t i = 0; i < nest->axes; i++)
        buf_format(&buf, "  %s %lld", rlz_role_text(nest->role[i]), (long long)nest->extent[i]);
    buf_format(&buf, "   %s", rlz_layout_text(nest, layout, arena).at);
    return buf_str(&buf);
}
