#include "runtime/export.h"

#include "kernel/c_text.h"
#include "runtime/program.h"

#include <inttypes.h>

typedef struct Exporter {
    const RtProgram *program;
    Str name;
    uint32_t argument_count, result_count;
    const RtExported *arguments, *results;
    StrBuf *header, *source;
} Exporter;

static const char *const element_c[DTYPE_COUNT] = {"double",   "float",    "uint16_t", "uint8_t",
                                                   "uint16_t", "uint32_t", "uint64_t"};

// ---- the header -----------------------------------------------------------------------------

static void field(StrBuf *buf, const RtExported *exported, const char *qualifier) {
    const Shape *shape = &exported->tensor.shape;
    buf_format(buf, "    %s%s *%s; /* %s[", qualifier, element_c[exported->tensor.type],
               exported->name.at, dtype_text(exported->tensor.type));
    for (uint32_t i = 0; i < shape->rank; i++)
        buf_format(buf, "%s%" PRId64, i ? ", " : "", shape->extent[i]);
    buf_text(buf, "] */\n");
}

static void write_header(const Exporter *e) {
    StrBuf *buf = e->header;
    const char *name = e->name.at;
    buf_format(buf,
               "/* %s, exported by presk. Tensors are row-major; bf16 elements are the upper 16 "
               "bits of an f32. */\n#ifndef PRESK_EXPORT_%s\n#define PRESK_EXPORT_%s\n\n"
               "#include <stddef.h>\n#include <stdint.h>\n\nstruct %s_arguments {\n",
               name, name, name, name);
    for (uint32_t i = 0; i < e->argument_count; i++)
        field(buf, &e->arguments[i], "const ");
    if (!e->argument_count)
        buf_text(buf, "    char none;\n");
    buf_format(buf, "};\n\nstruct %s_results {\n", name);
    for (uint32_t i = 0; i < e->result_count; i++)
        field(buf, &e->results[i], "");
    buf_format(buf,
               "};\n\n/* Bytes of workspace, aligned to 64. */\n#define %s_WORKSPACE ((size_t)%zu)"
               "\n\nvoid %s(const struct %s_arguments *arguments, const struct %s_results "
               "*results,\n        void *workspace);\n\n#endif\n",
               name, MAX(e->program->summary.peak_bytes, (size_t)64), name, name, name);
}

// ---- places ---------------------------------------------------------------------------------

static const RtExported *argument_at(const Exporter *e, const void *data) {
    for (uint32_t i = 0; i < e->argument_count; i++)
        if (e->arguments[i].tensor.data == data)
            return &e->arguments[i];
    return NULL;
}

static void buffer_place(const Exporter *e, uint32_t buffer) {
    const RtBuffer *at = &e->program->buffers.at[buffer];
    const RtExported *argument = at->external ? argument_at(e, at->external) : NULL;
    if (argument)
        buf_format(e->source, "(void *)(uintptr_t)arguments->%s", argument->name.at);
    else if (at->external)
        buf_format(e->source, "(void *)(uintptr_t)constant_%u", buffer);
    else
        buf_format(e->source, "work + %zu", at->offset);
}

// Constants as bytes in a union that aligns them.
static void write_constants(const Exporter *e) {
    for (uint32_t i = 1; i < e->program->buffers.count; i++) {
        const RtBuffer *at = &e->program->buffers.at[i];
        if (!at->external || argument_at(e, at->external))
            continue;
        buf_format(e->source, "static const uint64_t constant_%u[] = {", i);
        for (size_t byte = 0; byte < MAX(at->bytes, (size_t)1); byte += 8) {
            uint64_t word = 0;
            memcpy(&word, (const char *)at->external + byte, MIN(at->bytes - byte, (size_t)8));
            buf_format(e->source, "%s0x%" PRIx64, byte ? "," : "", word);
        }
        buf_text(e->source, "};\n");
    }
}

// ---- the source -----------------------------------------------------------------------------

static uint32_t kernel_number(const Exporter *e, const RtKernel *kernel) {
    for (uint32_t i = 0; i < e->program->kernels.count; i++)
        if (e->program->kernels.at[i] == kernel)
            return i;
    bug("a launch of a kernel that the program does not have");
}

static void write_launch(const Exporter *e, uint32_t index) {
    const RtLaunch *launch = &e->program->launches.at[index];
    const RtUse *use = &e->program->uses.at[index];
    const Kernel *kernel = launch->kernel->kernel;
    buf_text(e->source, "    {\n        void *b[] = {");
    for (uint32_t i = 0; i < use->count; i++) {
        buf_text(e->source, i ? ", " : "");
        buffer_place(e, use->buffer[i]);
    }
    for (uint32_t i = use->count; i < kernel->buffers.count; i++) {
        // Scratch stands where the first worker has it.
        const char *base = e->program->block;
        buf_format(e->source, ", work + %zu", (size_t)((char *)launch->buffers[0][i] - base));
    }
    buf_format(e->source, "};\n        kernel_%u(b);\n    }\n", kernel_number(e, launch->kernel));
}

// A result is copied from where the program has left it, which may be an argument.
static void write_result(const Exporter *e, const RtExported *result) {
    size_t bytes = (size_t)shape_count(&result->tensor.shape) * dtype_size(result->tensor.type);
    const RtExported *argument = argument_at(e, result->tensor.data);
    buf_format(e->source, "    memcpy(results->%s, ", result->name.at);
    if (argument) {
        buf_format(e->source, "arguments->%s", argument->name.at);
    } else {
        uint32_t constant = 0;
        for (uint32_t i = 1; i < e->program->buffers.count; i++)
            if (e->program->buffers.at[i].external == result->tensor.data)
                constant = i;
        if (constant)
            buf_format(e->source, "constant_%u", constant);
        else
            buf_format(e->source, "work + %zu",
                       (size_t)((char *)result->tensor.data - (char *)e->program->block));
    }
    buf_format(e->source, ", %zu);\n", bytes);
}

static void write_source(const Exporter *e) {
    StrBuf *buf = e->source;
    const char *name = e->name.at;
    buf_format(buf,
               "/* %s, exported by presk: %u launches, %u kernels. C99; link with -lm.\n"
               "   Any optimization level and -march are fine; fast-math flags are not. */\n"
               "#include \"%s.h\"\n\n",
               name, e->program->launches.count, e->program->kernels.count, name);
    krn_c_prelude(buf);
    write_constants(e);
    for (uint32_t i = 0; i < e->program->kernels.count; i++) {
        Str kernel = str_format(e->program->arena, "kernel_%u", i);
        krn_c_function(e->program->kernels.at[i]->kernel, kernel.at, buf);
        buf_char(buf, '\n');
    }
    buf_format(buf,
               "void %s(const struct %s_arguments *arguments, const struct %s_results *results,\n"
               "        void *workspace) {\n    char *const work = workspace;\n"
               "    (void)arguments;\n    (void)work;\n",
               name, name, name);
    for (uint32_t i = 0; i < e->program->launches.count; i++)
        write_launch(e, i);
    for (uint32_t i = 0; i < e->result_count; i++)
        write_result(e, &e->results[i]);
    buf_text(buf, "}\n");
}

void rt_export(const RtProgram *program, Str name, uint32_t argument_count,
               const RtExported *arguments, uint32_t result_count, const RtExported *results,
               StrBuf *header, StrBuf *source) {
    Exporter e = {program, name, argument_count, result_count, arguments, results, header, source};
    write_header(&e);
    write_source(&e);
}
