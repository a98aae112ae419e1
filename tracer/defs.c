/* SPDX-License-Identifier: Apache-2.0 */
/*
 * defs.c - definition records, appended to the control file's second part: there they outlive the
 * process until the capture file has them. What is defined before the capture starts waits in
 * `early`: a process that never records must leave nothing.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "ops.h"
#include "state.h"

#define STRING_BUCKETS 4096u
#define GROW           ((size_t)1 << 18)

struct string {
    struct string *next;
    uint64_t hash;
    uint32_t id, bytes;
    char text[];
};

static struct string *strings[STRING_BUCKETS];
static uint32_t string_count;
static struct rs_ring_process *inherited;
static uint64_t inherited_bytes;
static uint64_t op_defined[65536 / 64], op_wanted[65536 / 64];

static unsigned char *area(void)
{
    return (unsigned char *)rs_state.control + RS_RING_DEFS_OFFSET;
}

static bool grow_file(size_t wanted)
{
    char path[RS_RING_PATH_MAX + 16];
    size_t n = strlen(rs_state.control->prefix);
    memcpy(path, rs_state.control->prefix, n);
    memcpy(path + n, ".0", 3);
    errno = ENOENT;
    return rs_state.control_is_file && rs_memory_grow(path, RS_RING_DEFS_OFFSET + wanted);
}

/* What the file doesn't take goes on in memory of this process alone: past the end of the file the
 * mapping must not be touched. */
static bool leave_file(int why)
{
    if (!rs_memory_detach(area() + rs_state.control->defs_capacity,
                          RS_DEFS_MAX - rs_state.control->defs_capacity))
        return false;
    rs_state.defs_grow = false;
    if (rs_state.kill_safe)
        rs_meta_not_kill_safe_locked(why);
    rs_state.kill_safe = false;
    return true;
}

static bool make_space(size_t bytes)
{
    struct rs_ring_process *c = rs_state.control;
    if (c->defs_used + bytes <= c->defs_capacity)
        return true;
    size_t wanted = (c->defs_used + bytes + GROW - 1) / GROW * GROW;
    if (wanted > RS_DEFS_MAX)
        return false;
    if (rs_state.defs_grow && !grow_file(wanted) && !leave_file(errno))
        return false;
    c->defs_capacity = wanted;
    return true;
}

bool rs_defs_append(const void *head, size_t head_bytes, const void *rest, size_t rest_bytes)
{
    struct rs_ring_process *c = rs_state.control;
    size_t whole = (head_bytes + rest_bytes + 7) & ~(size_t)7;
    if (!c)
        return false;
    if (!make_space(whole)) {
        rs_meta_set_locked("off.definitions", "no room for more of them: what is new has no name");
        return false;
    }
    unsigned char *to = area() + c->defs_used; /* zeros until now */
    memcpy(to, head, head_bytes);
    if (rest_bytes)
        memcpy(to + head_bytes, rest, rest_bytes);
    __atomic_store_n(&c->defs_used, c->defs_used + whole, __ATOMIC_RELEASE);
    return true;
}

static uint64_t hash_text(const char *text, size_t bytes)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ (unsigned char)text[i]) * 0x100000001b3u;
    return h;
}

static bool append_string(uint32_t id, const char *text, size_t bytes)
{
    struct rs_def d = {.kind = RS_DEF_STRING, .id = id, .text_bytes = (uint32_t)bytes};
    d.bytes = (uint32_t)((sizeof(d) + bytes + 7) & ~(size_t)7);
    return rs_defs_append(&d, sizeof(d), text, bytes);
}

uint32_t rs_defs_string_locked(const char *text, size_t bytes)
{
    if (bytes == 0 || !rs_state.control)
        return 0;
    if (bytes > 65535)
        bytes = 65535;
    uint64_t hash = hash_text(text, bytes);
    struct string **bucket = &strings[hash % STRING_BUCKETS];
    for (struct string *s = *bucket; s; s = s->next)
        if (s->hash == hash && s->bytes == bytes && memcmp(s->text, text, bytes) == 0)
            return s->id;
    if (!append_string(string_count + 1, text, bytes))
        return 0;
    uint32_t id = ++string_count;
    struct string *s = rs_memory_keep(sizeof(*s) + bytes);
    if (!s) /* the same text gets another id next time */
        return id;
    *s = (struct string){.next = *bucket, .hash = hash, .id = id};
    s->bytes = (uint32_t)bytes;
    memcpy(s->text, text, bytes);
    *bucket = s;
    return id;
}

uint32_t rs_defs_string(const char *text, size_t bytes)
{
    int saved = errno;
    rs_lock();
    uint32_t id = rs_defs_string_locked(text, bytes);
    rs_unlock();
    errno = saved;
    return id;
}

static void define_op(uint16_t op)
{
    const struct rs_op_info *info = rs_op_find(op);
    if (!info || op_defined[op / 64] >> (op % 64) & 1)
        return;
    struct rs_def_op d = {.def = {.kind = RS_DEF_OP, .bytes = sizeof(d), .id = op}};
    d.name = rs_defs_string_locked(info->name, strlen(info->name));
    d.klass = info->klass;
    d.api = info->api;
    if (rs_defs_append(&d, sizeof(d), NULL, 0))
        op_defined[op / 64] |= (uint64_t)1 << (op % 64);
}

void rs_defs_op(uint16_t op)
{
    rs_lock();
    op_wanted[op / 64] |= (uint64_t)1 << (op % 64);
    if (rs_state.control)
        define_op(op);
    rs_unlock();
}

/* What was defined before there was a capture: the parent's definitions, operations that resolved.
 */
void rs_defs_start(void)
{
    if (inherited) {
        rs_defs_append((unsigned char *)inherited + RS_RING_DEFS_OFFSET, inherited_bytes, NULL, 0);
        munmap(inherited, RS_RING_DEFS_OFFSET + RS_DEFS_MAX);
        inherited = NULL;
    }
    for (unsigned op = 0; op < 65536; op++)
        if (op_wanted[op / 64] >> (op % 64) & 1)
            define_op((uint16_t)op);
}

void rs_defs_thread(uint32_t number, uint32_t tid, const char *name)
{
    struct rs_def_thread d = {.def = {.kind = RS_DEF_THREAD, .bytes = sizeof(d), .id = number + 1}};
    d.tid = tid;
    d.name = rs_defs_string_locked(name, strlen(name));
    rs_defs_append(&d, sizeof(d), NULL, 0);
}

void rs_defs_inherit(struct rs_ring_process *parent)
{
    if (inherited)
        munmap(inherited, RS_RING_DEFS_OFFSET + RS_DEFS_MAX);
    inherited = parent;
    inherited_bytes = parent->defs_used; /* what the parent appends from now on isn't ours */
}
