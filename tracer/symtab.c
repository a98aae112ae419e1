/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symtab.c - functions of the process, found without the loader: at the end it has done with
 * libraries, and would begin them once more if it were asked to open one. And those that are linked
 * into the program, of which it never knew.
 */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "state.h"
#include "unobserved.h"

struct file {
    const char *bytes;
    size_t size;
};

static bool holds(const struct file *f, uint64_t at, uint64_t bytes)
{
    return at <= f->size && bytes <= f->size - at;
}

/* ---- libraries ---- */

struct symbols {
    const ElfW(Sym) * symbol;
    const char *names;
    const uint32_t *gnu_hash, *hash; /* NULL without */
};

/* Most loaders have made the addresses in it those of the process. */
static const void *pointer(const struct dl_phdr_info *o, ElfW(Addr) address)
{
    return (const void *)(address < o->dlpi_addr ? o->dlpi_addr + address : address);
}

static bool read_dynamic(const struct dl_phdr_info *o, struct symbols *ret)
{
    const ElfW(Dyn) *d = NULL;
    *ret = (struct symbols){0};
    for (unsigned i = 0; i < o->dlpi_phnum; i++)
        if (o->dlpi_phdr[i].p_type == PT_DYNAMIC)
            d = (const void *)(o->dlpi_addr + o->dlpi_phdr[i].p_vaddr);
    for (; d && d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_SYMTAB)
            ret->symbol = pointer(o, d->d_un.d_ptr);
        else if (d->d_tag == DT_STRTAB)
            ret->names = pointer(o, d->d_un.d_ptr);
        else if (d->d_tag == DT_GNU_HASH)
            ret->gnu_hash = pointer(o, d->d_un.d_ptr);
        else if (d->d_tag == DT_HASH)
            ret->hash = pointer(o, d->d_un.d_ptr);
    }
    return ret->symbol && ret->names && (ret->gnu_hash || ret->hash);
}

static bool is_it(const struct symbols *s, uint32_t i, const char *name)
{
    return s->symbol[i].st_shndx != SHN_UNDEF && (s->symbol[i].st_info & 15) == STT_FUNC &&
           strcmp(s->names + s->symbol[i].st_name, name) == 0;
}

/* Words: buckets, first symbol, bloom filter's length (64-bit words), shift; then filter, buckets
 * and one word a symbol, whose lowest bit ends a bucket's run. */
static uint32_t find_by_gnu_hash(const struct symbols *s, const char *name)
{
    uint32_t h = 5381;
    for (const char *p = name; *p; p++)
        h = h * 33 + (unsigned char)*p;
    const uint32_t *t = s->gnu_hash, first = t[1];
    const uint32_t *buckets = t + 4 + t[2] * (sizeof(ElfW(Addr)) / 4), *chain = buckets + t[0];
    uint32_t i = t[0] ? buckets[h % t[0]] : 0;
    for (; i >= first && i != 0; i++) {
        if ((chain[i - first] | 1) == (h | 1) && is_it(s, i, name))
            return i;
        if (chain[i - first] & 1)
            break;
    }
    return 0;
}

struct search {
    const char *name;
    const void *own; /* this library, which has such names too */
    void *found;
};

static int look_in(struct dl_phdr_info *o, size_t size, void *data)
{
    struct search *search = data;
    struct symbols s;
    (void)size;
    bool is_library = o->dlpi_name && strchr(o->dlpi_name, '/'); /* not the kernel's own */
    if (!is_library || (const void *)o->dlpi_addr == search->own || !read_dynamic(o, &s))
        return 0;
    uint32_t found = s.gnu_hash ? find_by_gnu_hash(&s, search->name) : 0;
    for (uint32_t i = 1; !s.gnu_hash && !found && i < s.hash[1]; i++)
        found = is_it(&s, i, search->name) ? i : 0;
    if (found)
        search->found = (void *)(o->dlpi_addr + s.symbol[found].st_value);
    return found != 0;
}

void *rs_unseen_in_libraries(const char *name)
{
    Dl_info own;
    struct search search = {.name = name};
    if (!dladdr((const void *)rs_unseen_in_libraries, &own))
        return NULL;
    search.own = own.dli_fbase;
    dl_iterate_phdr(look_in, &search);
    return search.found;
}

/* ---- the program ---- */

static int take_base(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    *(uintptr_t *)data = info->dlpi_addr;
    return 1; /* the first is the program */
}

/* To look through many names takes a process's end longer than tools and helpers may be held up:
 * theirs are only looked at where a launcher made the process a rank. */
#define FEW_NAMES_BYTES ((uint64_t)1 << 20)

/* The name's place in a table of names, 0 none: its first byte is always NUL. */
static uint64_t find_name(const struct file *f, const ElfW(Shdr) * names, const char *name)
{
    char needle[128] = "";
    size_t n = strlen(name);
    if (n + 2 > sizeof(needle) || !holds(f, names->sh_offset, names->sh_size) ||
        (names->sh_size > FEW_NAMES_BYTES && rs_env.rank < 0))
        return 0;
    memcpy(needle + 1, name, n);
    const char *table = f->bytes + names->sh_offset;
    const char *found = memmem(table, names->sh_size, needle, n + 2);
    return found ? (uint64_t)(found + 1 - table) : 0;
}

/* Linkers may let a short name be the end of a longer one: then it isn't found, which is no harm.
 */
static uintptr_t find_function(const struct file *f, const ElfW(Shdr) * symbols, uint64_t name)
{
    const ElfW(Sym) *s = (const void *)(f->bytes + symbols->sh_offset);
    for (uint64_t i = 0; i < symbols->sh_size / sizeof(*s); i++)
        if (s[i].st_name == name && s[i].st_shndx != SHN_UNDEF && (s[i].st_info & 15) == STT_FUNC)
            return s[i].st_value;
    return 0;
}

static uintptr_t find_in(const struct file *f, const char *name)
{
    const ElfW(Ehdr) *head = (const void *)f->bytes;
    if (f->size < sizeof(*head) || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
        head->e_shentsize != sizeof(ElfW(Shdr)) ||
        !holds(f, head->e_shoff, (uint64_t)head->e_shnum * sizeof(ElfW(Shdr))) ||
        head->e_shoff % _Alignof(ElfW(Shdr)))
        return 0;
    const ElfW(Shdr) *sections = (const void *)(f->bytes + head->e_shoff);
    for (unsigned i = 0; i < head->e_shnum; i++) {
        const ElfW(Shdr) *s = &sections[i];
        if (s->sh_type != SHT_SYMTAB || s->sh_link >= head->e_shnum ||
            !holds(f, s->sh_offset, s->sh_size) || s->sh_offset % _Alignof(ElfW(Sym)))
            continue;
        uint64_t at = find_name(f, &sections[s->sh_link], name);
        return at ? find_function(f, s, at) : 0;
    }
    return 0;
}

void *rs_unseen_in_program(const char *name)
{
    struct stat st;
    uintptr_t base = 0, value = 0;
    rs_quiet++;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    void *p = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0)
        p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0)
        close(fd);
    rs_quiet--;
    if (p == MAP_FAILED)
        return NULL;
    const struct file f = {p, (size_t)st.st_size};
    value = find_in(&f, name);
    munmap(p, (size_t)st.st_size);
    dl_iterate_phdr(take_base, &base);
    return value ? (void *)(base + value) : NULL;
}
