/* SPDX-License-Identifier: Apache-2.0 */
#include "program-file.h"

#include <elf.h>
#include <string.h>

typedef struct {
    const guint8 *bytes;
    gsize size;
} File;

static gboolean holds(const File *f, guint64 at, guint64 bytes)
{
    return at <= f->size && bytes <= f->size - at;
}

static gboolean read_head(const File *f, Elf64_Ehdr *ret)
{
    if (!holds(f, 0, sizeof *ret))
        return FALSE;
    memcpy(ret, f->bytes, sizeof *ret);
    return memcmp(ret->e_ident, ELFMAG, SELFMAG) == 0 && ret->e_ident[EI_CLASS] == ELFCLASS64 &&
           ret->e_ident[EI_DATA] == (G_BYTE_ORDER == G_LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB) &&
           ret->e_phentsize == sizeof(Elf64_Phdr) &&
           holds(f, ret->e_phoff, (guint64)ret->e_phnum * sizeof(Elf64_Phdr));
}

static gboolean find_segment(const File *f, const Elf64_Ehdr *head, guint32 type, Elf64_Phdr *ret)
{
    for (guint i = 0; i < head->e_phnum; i++) {
        memcpy(ret, f->bytes + head->e_phoff + i * sizeof *ret, sizeof *ret);
        if (ret->p_type == type)
            return TRUE;
    }
    return FALSE;
}

/* Where in the file an address of the running program comes from; 0 unknown. */
static guint64 place_of(const File *f, const Elf64_Ehdr *head, guint64 address)
{
    for (guint i = 0; i < head->e_phnum; i++) {
        Elf64_Phdr p;
        memcpy(&p, f->bytes + head->e_phoff + i * sizeof p, sizeof p);
        if (p.p_type == PT_LOAD && address >= p.p_vaddr && address - p.p_vaddr < p.p_filesz)
            return p.p_offset + (address - p.p_vaddr);
    }
    return 0;
}

static gboolean read_entry(const File *f, const Elf64_Phdr *dynamic, gsize i, Elf64_Dyn *ret)
{
    gsize at = i * sizeof *ret;
    if (at + sizeof *ret > dynamic->p_filesz || !holds(f, dynamic->p_offset + at, sizeof *ret))
        return FALSE;
    memcpy(ret, f->bytes + dynamic->p_offset + at, sizeof *ret);
    return ret->d_tag != DT_NULL;
}

/* The library asked for whose name begins with `prefix`. Returned: free it. */
static gchar *dup_needed(const File *f, const Elf64_Ehdr *head, const gchar *prefix)
{
    Elf64_Phdr dynamic;
    Elf64_Dyn d;
    guint64 names = 0;
    if (!find_segment(f, head, PT_DYNAMIC, &dynamic))
        return NULL;
    for (gsize i = 0; read_entry(f, &dynamic, i, &d); i++)
        if (d.d_tag == DT_STRTAB)
            names = place_of(f, head, d.d_un.d_ptr);
    for (gsize i = 0; names && read_entry(f, &dynamic, i, &d); i++) {
        guint64 at = names + d.d_un.d_val;
        if (d.d_tag != DT_NEEDED || !holds(f, at, 1))
            continue;
        const gchar *name = (const gchar *)f->bytes + at;
        gsize most = f->size - at, n = strnlen(name, most);
        if (n < most && g_str_has_prefix(name, prefix))
            return g_strndup(name, n);
    }
    return NULL;
}

void rs_program_file_read(RsProgramFile *ret, const gchar *program)
{
    *ret = (RsProgramFile){0};
    g_autofree gchar *path = g_find_program_in_path(program);
    g_autoptr(GMappedFile) mapped = path ? g_mapped_file_new(path, FALSE, NULL) : NULL;
    if (!mapped)
        return;
    const File f = {(const guint8 *)g_mapped_file_get_contents(mapped),
                    g_mapped_file_get_length(mapped)};
    Elf64_Ehdr head;
    Elf64_Phdr loader;
    if (!f.bytes || !read_head(&f, &head))
        return;
    ret->is_static = !find_segment(&f, &head, PT_INTERP, &loader);
    ret->asan = dup_needed(&f, &head, "libasan.so");
}

void rs_program_file_clear(RsProgramFile *file)
{
    g_clear_pointer(&file->asan, g_free);
}
