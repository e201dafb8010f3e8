// Relocatable ELF64 x86-64 objects to executable memory. See loader.h.
//
// One mapping holds everything, so that 32-bit distances reach: first the sections, then a slot
// for each symbol. A slot is `jmp *8(slot)` and the symbol's address: calls of outside functions
// go to the jump, GOT relocations to the address (System V ABI, AMD64 supplement, 4.4).
#include "native/loader.h"

#include <elf.h>
#include <math.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SLOT = 16, SECTION_LIMIT = 1 << 12, SYMBOL_LIMIT = 1 << 20 };

typedef struct Loader {
    const uint8_t *file;
    size_t size;
    Elf64_Ehdr head;
    uint64_t *place;    // of each section within the mapping; NOT_LOADED: it has none
    Elf64_Shdr symbols; // header of the symbol table
    uint64_t symbol_count;
    uint64_t slots; // where the slots begin in the mapping
    uint8_t *base;  // the mapping
    size_t mapped;
    char *error;
    size_t error_size;
} Loader;

static const uint64_t NOT_LOADED = UINT64_MAX;

static bool refuse(Loader *l, const char *what, uint64_t number) {
    snprintf(l->error, l->error_size, "%s (%llu)", what, (unsigned long long)number);
    return false;
}

static bool within(uint64_t offset, uint64_t length, uint64_t size) {
    return offset <= size && length <= size - offset;
}

// Copies, since nothing in a file need be aligned.
static bool read_at(Loader *l, uint64_t offset, void *to, size_t length) {
    if (!within(offset, length, l->size))
        return refuse(l, "the file is too short", offset);
    memcpy(to, l->file + offset, length);
    return true;
}

static bool read_section(Loader *l, uint64_t index, Elf64_Shdr *section) {
    if (index >= l->head.e_shnum)
        return refuse(l, "no such section", index);
    return read_at(l, l->head.e_shoff + index * sizeof *section, section, sizeof *section);
}

static bool read_head(Loader *l) {
    if (!read_at(l, 0, &l->head, sizeof l->head))
        return false;
    const Elf64_Ehdr *head = &l->head;
    if (memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != ELFCLASS64 ||
        head->e_ident[EI_DATA] != ELFDATA2LSB || head->e_type != ET_REL ||
        head->e_machine != EM_X86_64 || head->e_shentsize != sizeof(Elf64_Shdr))
        return refuse(l, "not a relocatable x86-64 file", head->e_machine);
    if (head->e_shnum == 0 || head->e_shnum > SECTION_LIMIT)
        return refuse(l, "too many sections", head->e_shnum);
    if (!within(head->e_shoff, head->e_shnum * sizeof(Elf64_Shdr), l->size))
        return refuse(l, "the section table lies outside of the file", head->e_shoff);
    return true;
}

// ---- layout -----------------------------------------------------------------------------------

// Decides where a section goes, at `*end` or just after; sections of no use at run time (symbols,
// relocations, unwind tables, notes) go nowhere.
static bool place_section(Loader *l, uint64_t index, const Elf64_Shdr *section, uint64_t *end) {
    l->place[index] = NOT_LOADED;
    if (!(section->sh_flags & SHF_ALLOC) || section->sh_size == 0 ||
        section->sh_type == SHT_X86_64_UNWIND || section->sh_type == SHT_NOTE)
        return true;
    if (section->sh_type != SHT_PROGBITS || section->sh_flags & (SHF_TLS | SHF_WRITE))
        return refuse(l, "a section is neither code nor constants", index);
    if (!within(section->sh_offset, section->sh_size, l->size))
        return refuse(l, "a section lies outside of the file", index);
    uint64_t align = section->sh_addralign ? section->sh_addralign : 1;
    if (align > 4096 || align & (align - 1))
        return refuse(l, "a section's alignment is wrong", align);
    *end = (*end + align - 1) & ~(align - 1);
    l->place[index] = *end;
    *end += section->sh_size;
    return true;
}

static bool find_symbols(Loader *l, uint64_t index, const Elf64_Shdr *section) {
    if (section->sh_type != SHT_SYMTAB)
        return true;
    if (section->sh_entsize != sizeof(Elf64_Sym) ||
        !within(section->sh_offset, section->sh_size, l->size) ||
        section->sh_size / sizeof(Elf64_Sym) > SYMBOL_LIMIT || l->symbol_count)
        return refuse(l, "the symbol table is wrong", index);
    l->symbols = *section;
    l->symbol_count = section->sh_size / sizeof(Elf64_Sym);
    return true;
}

// Places all sections and the slots, and makes the mapping, still writable.
static bool map_sections(Loader *l) {
    uint64_t end = 0;
    Elf64_Shdr section;
    for (uint64_t i = 0; i < l->head.e_shnum; i++)
        if (!read_section(l, i, &section) || !place_section(l, i, &section, &end) ||
            !find_symbols(l, i, &section))
            return false;
    l->slots = (end + SLOT - 1) & ~(uint64_t)(SLOT - 1);
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    l->mapped = (l->slots + l->symbol_count * SLOT + page) & ~(page - 1);
    if (l->mapped > INT32_MAX)
        return refuse(l, "the code is too large", l->mapped);
    void *base = mmap(NULL, l->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return refuse(l, "no memory for code", l->mapped);
    l->base = base;
    for (uint64_t i = 0; i < l->head.e_shnum; i++) {
        if (!read_section(l, i, &section))
            return false;
        if (l->place[i] != NOT_LOADED)
            memcpy(l->base + l->place[i], l->file + section.sh_offset, section.sh_size);
    }
    return true;
}

// ---- symbols ----------------------------------------------------------------------------------

static bool read_symbol(Loader *l, uint64_t index, Elf64_Sym *symbol) {
    if (index >= l->symbol_count)
        return refuse(l, "no such symbol", index);
    return read_at(l, l->symbols.sh_offset + index * sizeof *symbol, symbol, sizeof *symbol);
}

// The few functions that compiled kernels may call.
static bool outside_symbol(Loader *l, const Elf64_Sym *symbol, uint64_t *address) {
    static const struct {
        const char *name;
        size_t size; // with the NUL
        void (*function)(void);
    } known[] = {
#define OUTSIDE(name) {#name, sizeof #name, (void (*)(void))name}
        OUTSIDE(fma), OUTSIDE(fmaf), OUTSIDE(memcpy), OUTSIDE(memmove), OUTSIDE(memset),
#undef OUTSIDE
    };
    Elf64_Shdr strings;
    if (!read_section(l, l->symbols.sh_link, &strings))
        return false;
    if (!within(strings.sh_offset, strings.sh_size, l->size))
        return refuse(l, "the symbol names lie outside of the file", symbol->st_name);
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        if (within(symbol->st_name, known[i].size, strings.sh_size) &&
            memcmp(l->file + strings.sh_offset + symbol->st_name, known[i].name, known[i].size) ==
                0) {
            *address = (uint64_t)(uintptr_t)known[i].function;
            return true;
        }
    }
    return refuse(l, "the code refers to an unknown symbol", symbol->st_name);
}

static bool symbol_address(Loader *l, const Elf64_Sym *symbol, uint64_t *address) {
    if (symbol->st_shndx == SHN_UNDEF)
        return outside_symbol(l, symbol, address);
    Elf64_Shdr section;
    if (!read_section(l, symbol->st_shndx, &section))
        return false;
    if (l->place[symbol->st_shndx] == NOT_LOADED || symbol->st_value > section.sh_size)
        return refuse(l, "a symbol lies in no section", symbol->st_shndx);
    *address = (uint64_t)(uintptr_t)(l->base + l->place[symbol->st_shndx]) + symbol->st_value;
    return true;
}

// Fills the slot of a symbol; its own address is where to jump, eight bytes on where to read.
static uint64_t slot_of(Loader *l, uint64_t index, uint64_t address) {
    static const uint8_t jump[8] = {0xFF, 0x25, 2, 0, 0, 0, 0x66, 0x90}; // jmp *2(%rip); nop
    uint8_t *slot = l->base + l->slots + index * SLOT;
    memcpy(slot, jump, sizeof jump);
    memcpy(slot + 8, &address, sizeof address);
    return (uint64_t)(uintptr_t)slot;
}

// ---- relocations ------------------------------------------------------------------------------

static bool put32(Loader *l, uint64_t place, uint64_t value, bool is_signed) {
    if (is_signed ? (int64_t)value != (int32_t)value : value > UINT32_MAX)
        return refuse(l, "a relocation does not fit 32 bits", value);
    uint32_t word = (uint32_t)value;
    memcpy(l->base + place, &word, sizeof word);
    return true;
}

// `place` is an offset in the mapping with `room` bytes of its section left.
static bool relocate(Loader *l, const Elf64_Rela *entry, uint64_t place, uint64_t room) {
    uint64_t index = ELF64_R_SYM(entry->r_info), type = ELF64_R_TYPE(entry->r_info), to;
    Elf64_Sym symbol;
    if (!read_symbol(l, index, &symbol) || !symbol_address(l, &symbol, &to))
        return false;
    uint64_t here = (uint64_t)(uintptr_t)(l->base + place), add = (uint64_t)entry->r_addend;
    bool wide = type == R_X86_64_64 || type == R_X86_64_PC64;
    if (room < (wide ? 8 : 4))
        return refuse(l, "a relocation lies outside of its section", entry->r_offset);
    switch (type) {
    case R_X86_64_PC64:
        to -= here;
        // fall through
    case R_X86_64_64:
        to += add;
        memcpy(l->base + place, &to, sizeof to);
        return true;
    case R_X86_64_32:
    case R_X86_64_32S:
        return put32(l, place, to + add, type == R_X86_64_32S);
    case R_X86_64_PC32:
    case R_X86_64_PLT32:
        if (symbol.st_shndx == SHN_UNDEF)
            to = slot_of(l, index, to);
        return put32(l, place, to + add - here, true);
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX:
        return put32(l, place, slot_of(l, index, to) + 8 + add - here, true);
    default:
        return refuse(l, "unknown kind of relocation", type);
    }
}

static bool relocate_section(Loader *l, const Elf64_Shdr *table) {
    Elf64_Shdr target;
    Elf64_Rela entry;
    if (!read_section(l, table->sh_info, &target))
        return false;
    if (l->place[table->sh_info] == NOT_LOADED)
        return true;
    if (table->sh_entsize != sizeof entry || !within(table->sh_offset, table->sh_size, l->size))
        return refuse(l, "a relocation table is wrong", table->sh_info);
    for (uint64_t at = 0; at + sizeof entry <= table->sh_size; at += sizeof entry) {
        if (!read_at(l, table->sh_offset + at, &entry, sizeof entry))
            return false;
        if (entry.r_offset > target.sh_size)
            return refuse(l, "a relocation lies outside of its section", entry.r_offset);
        if (!relocate(l, &entry, l->place[table->sh_info] + entry.r_offset,
                      target.sh_size - entry.r_offset))
            return false;
    }
    return true;
}

static bool relocate_all(Loader *l) {
    Elf64_Shdr section;
    for (uint64_t i = 0; i < l->head.e_shnum; i++) {
        if (!read_section(l, i, &section))
            return false;
        if (section.sh_type == SHT_REL)
            return refuse(l, "relocations without addends", i);
        if (section.sh_type == SHT_RELA && !relocate_section(l, &section))
            return false;
    }
    return true;
}

// The only global function.
static bool find_function(Loader *l, NatFunction *function) {
    uint64_t found = 0, address;
    for (uint64_t i = 0; i < l->symbol_count; i++) {
        Elf64_Sym symbol;
        Elf64_Shdr section;
        if (!read_symbol(l, i, &symbol))
            return false;
        if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF ||
            ELF64_ST_BIND(symbol.st_info) != STB_GLOBAL)
            continue;
        if (!read_section(l, symbol.st_shndx, &section) || !symbol_address(l, &symbol, &address))
            return false;
        if (!(section.sh_flags & SHF_EXECINSTR) || symbol.st_value >= section.sh_size)
            return refuse(l, "the function is not code", i);
        *function = (NatFunction)(uintptr_t)address;
        found++;
    }
    return found == 1 || refuse(l, "not one function in the object", found);
}

bool nat_load(const void *object, size_t size, NatCode *code, char *error, size_t error_size) {
    Loader l = {.file = object, .size = size, .error = error, .error_size = error_size};
    uint64_t place[SECTION_LIMIT];
    *code = (NatCode){0};
    l.place = place;
    bool done =
        read_head(&l) && map_sections(&l) && relocate_all(&l) && find_function(&l, &code->function);
    if (done && mprotect(l.base, l.mapped, PROT_READ | PROT_EXEC) != 0)
        done = refuse(&l, "the system refuses to make memory executable", l.mapped);
    code->mapping = l.base;
    code->size = l.mapped;
    if (!done)
        nat_unload(code);
    return done;
}

void nat_unload(NatCode *code) {
    if (code->mapping)
        munmap(code->mapping, code->size);
    *code = (NatCode){0};
}
